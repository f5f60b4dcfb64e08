//! One connection: messages out, messages in.
//!
//! The messages are those of `postgres-protocol`. A whole driver is not used because drivers ask for values in their binary
//! form, which has to be known for every type there is; the text form is the same for all of them (decision 12).
//!
//! A server is not trusted with this one's memory. Until it has let us in, a message has at most [`BEFORE_LOGIN`] bytes;
//! afterwards one that is no row has at most [`SMALL`], and so has a row without further ado. A larger row waits for
//! [`Room`] before it is read, and one larger than [`LARGEST`] is refused.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::{ErrorResponseBody, Header, Message};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::super::room::{Room, Taken};
use super::super::{Fault, SqlError};
use super::tls::{TlsMode, encrypt};

const BEFORE_LOGIN: u64 = 64 << 10;
const SMALL: u64 = 1 << 20;
/// One row with all its values.
const LARGEST: u64 = 64 << 20;
/// What a row takes while it is read, for each of its bytes: a buffer grows into one of twice its size.
const WEIGHT: u64 = 2;
const ROW: u8 = b'D';
/// Asked of the socket at once.
const CHUNK: usize = 64 << 10;

/// Where a database is, and who asks. Its `Debug` would show the password, so there is none.
#[derive(Clone)]
pub struct Server {
    /// For the server's certificate; the address was found by whoever checked it.
    pub host: String,
    pub user: String,
    pub password: String,
    pub database: String,
    pub tls: TlsMode,
    /// Certificates of the authority, as PEM.
    pub root: Option<String>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(super) struct Connection {
    stream: Stream,
    incoming: BytesMut,
    pub(super) outgoing: BytesMut,
    /// What a request to cancel has to know.
    address: SocketAddr,
    key: Option<(i32, i32)>,
    logged_in: bool,
    /// Its tenant's.
    room: Room,
    /// For the row that was read last.
    taken: Option<Taken>,
}

/// What a connection says in return: a message, or why there is none.
pub(super) type Heard = Result<Message, SqlError>;

fn lost(error: &io::Error) -> SqlError {
    SqlError::Connect(error.to_string())
}

pub(super) fn unwritable(error: io::Error) -> SqlError {
    SqlError::Invalid(format!("it cannot be sent: {error}"))
}

/// An answer that the protocol has no place for.
pub(super) fn out_of_turn() -> SqlError {
    SqlError::Connect("the server answered out of turn".to_owned())
}

impl Connection {
    /// Connects to the first address that answers.
    pub(super) async fn open(server: &Server, addresses: &[SocketAddr], room: &Room) -> Result<Self, SqlError> {
        let mut failed = SqlError::Connect("the name has no address".to_owned());
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Without it a small message may wait for the answer to the one before.
                    let _ = stream.set_nodelay(true);
                    return Self::start(stream, *address, server, room.clone()).await;
                }
                Err(error) => failed = lost(&error),
            }
        }
        Err(failed)
    }

    async fn start(mut stream: TcpStream, address: SocketAddr, server: &Server, room: Room) -> Result<Self, SqlError> {
        let mut outgoing = BytesMut::new();
        let stream = if server.tls == TlsMode::Disable {
            Stream::Plain(stream)
        } else {
            frontend::ssl_request(&mut outgoing);
            stream.write_all_buf(&mut outgoing).await.map_err(|error| lost(&error))?;
            match stream.read_u8().await.map_err(|error| lost(&error))? {
                b'S' => Stream::Tls(Box::new(encrypt(stream, &server.host, server.tls, server.root.as_deref()).await?)),
                _ if server.tls == TlsMode::Prefer && server.root.is_none() => Stream::Plain(stream),
                _ => return Err(SqlError::Connect("the server does not encrypt, and `sslmode` wants it".to_owned())),
            }
        };
        let incoming = BytesMut::new();
        let mut this = Self { stream, incoming, outgoing, address, key: None, logged_in: false, room, taken: None };
        let parameters = [
            ("user", server.user.as_str()),
            ("database", server.database.as_str()),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, YMD"),
            ("standard_conforming_strings", "on"),
            ("application_name", "noetl"),
        ];
        frontend::startup_message(parameters, &mut this.outgoing).map_err(unwritable)?;
        this.send().await?;
        this.authenticate(server).await?;
        this.logged_in = true;
        Ok(this)
    }

    async fn authenticate(&mut self, server: &Server) -> Result<(), SqlError> {
        let mut scram: Option<sasl::ScramSha256> = None;
        let refused = |error: io::Error| SqlError::Refused(error.to_string());
        loop {
            match self.receive().await? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    // Whoever answers in the server's place would have it: encrypted, but to whom?
                    let encrypted = matches!(self.stream, Stream::Tls(_));
                    if !server.tls.trusts(server.root.as_deref(), encrypted, self.address.ip()) {
                        let text = "it wants the password in the clear, and has not proven who it is; \
                                    set `sslmode` to `verify-full`, or give the credential its `sslrootcert`";
                        return Err(SqlError::Refused(text.to_owned()));
                    }
                    frontend::password_message(server.password.as_bytes(), &mut self.outgoing).map_err(unwritable)?;
                    self.send().await?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(server.user.as_bytes(), server.password.as_bytes(), body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.outgoing).map_err(unwritable)?;
                    self.send().await?;
                }
                Message::AuthenticationSasl(body) => {
                    let known = body.mechanisms().any(|name| Ok(name == sasl::SCRAM_SHA_256)).map_err(refused)?;
                    if !known {
                        return Err(SqlError::Refused("it knows no way to log in that we know".to_owned()));
                    }
                    let begun = sasl::ScramSha256::new(server.password.as_bytes(), sasl::ChannelBinding::unsupported());
                    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, begun.message(), &mut self.outgoing)
                        .map_err(unwritable)?;
                    scram = Some(begun);
                    self.send().await?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    let scram = scram.as_mut().ok_or_else(out_of_turn)?;
                    scram.update(body.data()).map_err(refused)?;
                    frontend::sasl_response(scram.message(), &mut self.outgoing).map_err(unwritable)?;
                    self.send().await?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    scram.as_mut().ok_or_else(out_of_turn)?.finish(body.data()).map_err(refused)?;
                }
                Message::BackendKeyData(body) => self.key = Some((body.process_id(), body.secret_key())),
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(refusal(&body)),
                _ => return Err(SqlError::Refused("it wants a way to log in that we do not know".to_owned())),
            }
        }
    }

    /// Sends what was put into `outgoing`.
    pub(super) async fn send(&mut self) -> Result<(), SqlError> {
        self.stream.write_all_buf(&mut self.outgoing).await.map_err(|error| lost(&error))?;
        self.stream.flush().await.map_err(|error| lost(&error))
    }

    /// The next message that is about what was asked.
    pub(super) async fn receive(&mut self) -> Heard {
        // Whoever asks for the next message has done with the one before.
        self.taken = None;
        loop {
            if let Some(header) = Header::parse(&self.incoming).map_err(|error| lost(&error))? {
                self.make_room(header).await?;
            }
            match Message::parse(&mut self.incoming).map_err(|error| lost(&error))? {
                Some(Message::NoticeResponse(_) | Message::ParameterStatus(_) | Message::NotificationResponse(_)) => {}
                Some(message) => return Ok(message),
                None => {
                    self.incoming.reserve(CHUNK);
                    let read = self.stream.read_buf(&mut self.incoming).await.map_err(|error| lost(&error))?;
                    if read == 0 {
                        return Err(SqlError::Connect("the server closed the connection".to_owned()));
                    }
                }
            }
        }
    }

    /// For a message of which the length is known and not much else.
    async fn make_room(&mut self, header: Header) -> Result<(), SqlError> {
        let size = u64::from(header.len().unsigned_abs());
        let most = match (self.logged_in, header.tag()) {
            (false, _) => BEFORE_LOGIN,
            (true, ROW) => LARGEST,
            (true, _) => SMALL,
        };
        if size > most {
            return Err(SqlError::TooLarge(size));
        }
        if size > SMALL && self.taken.is_none() {
            self.taken = Some(self.room.take(size * WEIGHT).await);
        }
        Ok(())
    }

    /// Runs statements without parameters whose rows nobody wants; answers with the state of the transaction.
    pub(super) async fn command(&mut self, text: &str) -> Result<u8, SqlError> {
        frontend::query(text, &mut self.outgoing).map_err(unwritable)?;
        self.send().await?;
        let mut failed = None;
        loop {
            match self.receive().await? {
                Message::ReadyForQuery(body) => return failed.map_or(Ok(body.status()), Err),
                Message::ErrorResponse(body) => failed = Some(SqlError::Sql(Box::new(fault(&body, 0)))),
                _ => {}
            }
        }
    }

    /// How to stop what it does, from outside.
    pub(super) fn canceller(&self) -> Option<Canceller> {
        Some(Canceller { address: self.address, key: self.key? })
    }

    /// Says goodbye, as far as that goes.
    pub(super) async fn close(mut self) {
        frontend::terminate(&mut self.outgoing);
        let _ = self.send().await;
        let _ = self.stream.shutdown().await;
    }
}

/// Asks the server to stop what a connection does. The request goes its own way and is not encrypted, like that of the
/// server's own tools; all it has in it is a number that is good for this.
pub(super) struct Canceller {
    address: SocketAddr,
    key: (i32, i32),
}

impl Canceller {
    pub(super) async fn cancel(self) -> io::Result<()> {
        let mut stream = TcpStream::connect(self.address).await?;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.key.0, self.key.1, &mut request);
        stream.write_all_buf(&mut request).await?;
        // The server closes when it has done it.
        let _ = stream.read_u8().await;
        Ok(())
    }
}

/// What the server says is wrong.
pub(super) fn fault(body: &ErrorResponseBody, statement: u32) -> Fault {
    let mut fault = Fault { statement, ..Fault::default() };
    let mut fields = body.fields();
    // A message that breaks off says what it said so far.
    while let Ok(Some(field)) = fields.next() {
        let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => fault.sqlstate = text,
            b'M' => fault.message = text,
            b'D' => fault.detail = Some(text),
            b'H' => fault.hint = Some(text),
            b'P' => fault.position = text.parse().ok(),
            b'n' => fault.constraint = Some(text),
            b't' => fault.table = Some(text),
            b'c' => fault.column = Some(text),
            _ => {}
        }
    }
    fault
}

/// Why the server lets nobody in: because of who asks, or for now.
fn refusal(body: &ErrorResponseBody) -> SqlError {
    let fault = fault(body, 0);
    match fault.sqlstate.get(..2) {
        Some("28" | "3D" | "42") => SqlError::Refused(fault.message),
        _ => SqlError::Connect(fault.message),
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
