//! NATS, as the drivers of the host need it: buckets of values and of objects, and messages of JetStream.
//!
//! The only place that knows the client. It connects to addresses and never to names: whoever connects has looked the name
//! up and checked what it means, and servers that a cluster tells of are not followed for the same reason. The certificate
//! is held against the name all the same ([`tls`]).
//!
//! What is asked for is bounded by whoever asks, with a time around the call; what a server sends, asked or not, is bounded
//! by a [`relay`]. A connection that breaks stays broken: [`Nats::is_open`] says so, and its keeper makes a new one.

mod error;
mod messages;
mod objects;
mod relay;
mod tls;
mod values;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, ServerAddr};

pub use error::NatsError;
pub use messages::{Message, Published, Settlement, StreamState, Which};
pub use objects::{Bytestream, ObjectDetails};
pub use values::Entry;

use relay::Relay;

const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The relay serves one connection; the client knows no smaller number.
const RECONNECTS: usize = 1;

/// A server whose name has been looked up.
#[derive(Debug, Clone)]
pub struct Address {
    /// What its certificate must be for.
    pub name: String,
    pub sockets: Vec<SocketAddr>,
    /// Whether it is only spoken to encrypted. One that asks for it is spoken to encrypted in any case.
    pub tls: bool,
}

/// As whom; a token goes before a name.
#[derive(Clone, Default)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
}

/// A connection. Closed when the last of its users drops it.
pub struct Nats {
    client: Client,
    jetstream: Context,
    relay: Relay,
}

impl Nats {
    pub async fn connect(address: Address, login: Login) -> Result<Self, NatsError> {
        let broken = |error: &dyn std::fmt::Display| NatsError::Unavailable(error.to_string());
        let tls = tls::config(&address.name)?;
        let relay = Relay::start(&address.sockets, CONNECT_TIME).await?;
        let near =
            format!("nats://{}", relay.address).parse::<ServerAddr>().map_err(|error: io::Error| broken(&error))?;
        let mut options = ConnectOptions::new()
            .name("noetl")
            .connection_timeout(CONNECT_TIME)
            .max_reconnects(RECONNECTS)
            .ignore_discovered_servers()
            .require_tls(address.tls)
            .tls_client_config(tls);
        options = match login {
            Login { token: Some(token), .. } => options.token(token),
            Login { user: Some(user), password, .. } => options.user_and_password(user, password.unwrap_or_default()),
            Login { .. } => options,
        };
        let client = options.connect(near).await.map_err(|error| broken(&error))?;
        let jetstream = jetstream::new(client.clone());
        Ok(Self { client, jetstream, relay })
    }

    /// Does the work of one function. A server that sends more for it than is kept in memory ends it.
    pub async fn within<T>(&self, work: impl Future<Output = Result<T, NatsError>>) -> Result<T, NatsError> {
        let _working = self.relay.allowance.begin();
        tokio::select! {
            done = work => done,
            () = self.relay.allowance.exhausted() => Err(NatsError::TooLarge(relay::WINDOW)),
        }
    }

    /// Whether it is worth keeping.
    pub fn is_open(&self) -> bool {
        let connected = self.client.connection_state() != async_nats::connection::State::Disconnected;
        connected && !self.relay.allowance.is_exhausted()
    }
}
