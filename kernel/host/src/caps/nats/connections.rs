//! Connections to NATS, kept from call to call.
//!
//! A connection belongs to one tenant and one login: it is found by the tenant, the server and the credential's alias and
//! revision, so a credential that was changed never serves an old connection, and no tenant another's. Logins that a
//! playbook wrote out are found by the digest of what they are.
//!
//! Which server it is decides who may know: the credential must be meant for the host that is connected to, and the host's
//! addresses are checked by the one resolver there is for that. A server that its credential names with `tls://` is spoken to
//! encrypted, however a playbook writes it.
//!
//! At most [`MOST`] are kept, and at most [`MOST_OF_ONE`] of a tenant's; the one that was not used for the longest goes first,
//! and what was not used for [`UNUSED`] goes by itself. It is closed when its last call ends.

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lru::LruCache;
use noetl_contract::{Digest, Tenant, placeholder};
use noetl_store::nats::{Address, Login, Nats, NatsError};
use noetl_store::wallet::{Credential, Use, Wallet, WalletError, Way};
use parking_lot::Mutex;

use crate::bindings::noetl::nats::nats as wit;
use crate::caps::filling::Place;
use crate::egress::{Addresses, ResolveError, Resolver};
use crate::fair::{Budget, Reservation};

/// Connections that are kept, of all tenants.
const MOST: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
const MOST_OF_ONE: usize = 16;
const UNUSED: Duration = Duration::from_secs(300);
/// Functions at once, of all tenants.
const MOST_FUNCTIONS: usize = 32;
const USUAL_PORT: u16 = 4222;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: Tenant,
    server: Server,
    /// Alias and revision, or the digest of a login.
    who: (String, u64),
}

/// A server as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Server {
    host: String,
    port: u16,
    tls: bool,
}

/// All of them.
pub struct Connections {
    resolver: Resolver,
    kept: Arc<Mutex<LruCache<Key, Kept>>>,
    functions: Budget,
}

struct Kept {
    nats: Arc<Nats>,
    used: Instant,
}

impl Connections {
    pub fn new(addresses: Addresses) -> Self {
        Self {
            resolver: Resolver::new(addresses),
            kept: Arc::new(Mutex::new(LruCache::new(MOST))),
            functions: Budget::new(0, 0, MOST_FUNCTIONS),
        }
    }

    /// One function's, in turn by tenant.
    pub(super) async fn slot(&self, tenant: &Tenant) -> Reservation {
        self.functions.reserve(tenant, 0, 1, false).await
    }

    /// The connection to a server, made if there is none, and which server it is. `using` says who asks; its alias and target
    /// are filled in here.
    pub(super) async fn get(
        &self,
        wallet: &dyn Wallet,
        at: wit::Server,
        using: Use,
    ) -> Result<(Arc<Nats>, Place), wit::NatsError> {
        let tenant = using.tenant.clone();
        let (server, login, who) = match at.credential.clone().filter(|alias| !alias.is_empty()) {
            Some(alias) => by_credential(wallet, alias, &at, using).await?,
            None => by_hand(&at)?,
        };
        let place = Place::Server { host: server.host.clone(), port: server.port, way: Way::Own(USUAL_PORT) };
        let key = Key { tenant, server, who };
        if let Some(kept) = self.kept.lock().get_mut(&key).filter(|kept| kept.nats.is_open()) {
            kept.used = Instant::now();
            return Ok((kept.nats.clone(), place));
        }
        let Server { host, port, tls } = key.server.clone();
        let sockets = match self.resolver.resolve(&key.tenant, &host, port).await {
            Ok(sockets) => sockets,
            Err(ResolveError::Unreachable(refused)) => return Err(wit::NatsError::Denied(refused.to_string())),
            Err(error @ ResolveError::Lookup(_)) => {
                return Err(wit::NatsError::Unavailable(format!("`{host}`: {error}")));
            }
        };
        let open = Arc::new(Nats::connect(Address { name: host, sockets, tls }, login).await.map_err(told)?);
        let mut kept = self.kept.lock();
        make_room(&mut kept, &key.tenant, Instant::now());
        kept.put(key, Kept { nats: open.clone(), used: Instant::now() });
        drop(kept);
        tokio::spawn(close_unused(Arc::downgrade(&self.kept), Arc::downgrade(&open)));
        Ok((open, place))
    }
}

/// Looks after one connection until it is not kept any more, or its owner is gone.
async fn close_unused(kept: Weak<Mutex<LruCache<Key, Kept>>>, which: Weak<Nats>) {
    let mut pause = UNUSED;
    loop {
        tokio::time::sleep(pause).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = kept.lock();
        forget_unused(&mut kept, Instant::now());
        let own = kept.iter().find(|(_, kept)| Weak::as_ptr(&which) == Arc::as_ptr(&kept.nats));
        let Some((_, own)) = own else { return };
        pause = UNUSED.saturating_sub(own.used.elapsed()) + Duration::from_secs(1);
    }
}

fn forget_unused(kept: &mut LruCache<Key, Kept>, now: Instant) {
    while kept.peek_lru().is_some_and(|(_, oldest)| now.saturating_duration_since(oldest.used) > UNUSED) {
        kept.pop_lru();
    }
}

/// For one more of the tenant's.
fn make_room(kept: &mut LruCache<Key, Kept>, tenant: &Tenant, now: Instant) {
    forget_unused(kept, now);
    // The first is the one used last.
    let own: Vec<Key> = kept.iter().map(|(key, _)| key).filter(|key| key.tenant == *tenant).cloned().collect();
    own.iter().skip(MOST_OF_ONE - 1).for_each(|key| drop(kept.pop(key)));
}

type Known = (Server, Login, (String, u64));

async fn by_credential(
    wallet: &dyn Wallet,
    alias: String,
    at: &wit::Server,
    mut using: Use,
) -> Result<Known, wit::NatsError> {
    using.alias.clone_from(&alias);
    using.target = at.url.as_deref().filter(|url| !url.is_empty()).map(without_login).unwrap_or_default();
    let credential = wallet.open(&using).await.map_err(closed)?;
    let url = at.url.as_deref().filter(|url| !url.is_empty()).or_else(|| field(&credential, &["url", "nats_url"]));
    let (mut server, in_url) = match (url, field(&credential, &["host"])) {
        (Some(url), _) => parse(url)?,
        (None, Some(host)) => {
            let port = credential.field("port").map_or(Ok(USUAL_PORT), str::parse);
            let port = port.map_err(|_| invalid(&format!("the port of the credential `{alias}`")))?;
            (Server { host: host.to_ascii_lowercase(), port, tls: false }, Login::default())
        }
        (None, None) => {
            let text = format!("the credential `{alias}` names no server; give it a `url`, or the tool one");
            return Err(wit::NatsError::Credential(text));
        }
    };
    // What a playbook writes says which server, never that a login may be read on the way.
    let own = field(&credential, &["url", "nats_url"]).map(parse).transpose()?;
    server.tls |= own.is_some_and(|(own, _)| own.tls);
    if !credential.may_go_to(&server.host, server.port, Way::Own(USUAL_PORT)) {
        let target = format!("{}:{}", server.host, server.port);
        return Err(closed(WalletError::NotForThere { alias, target }));
    }
    let own = |names: &[&str]| field(&credential, names).map(str::to_owned);
    let login = Login {
        user: own(&["user", "nats_user", "username"]).or(in_url.user),
        password: own(&["password", "nats_password"]).or(in_url.password),
        token: own(&["token", "nats_token"]).or(in_url.token),
    };
    let revision = credential.revision;
    Ok((server, login, (alias, revision)))
}

fn by_hand(at: &wit::Server) -> Result<Known, wit::NatsError> {
    let Some(url) = at.url.as_deref().filter(|url| !url.is_empty()) else {
        return Err(wit::NatsError::Invalid("no server: name a credential with `auth`, or give a `url`".to_owned()));
    };
    let written = [&at.url, &at.user, &at.password, &at.token];
    if written.into_iter().flatten().any(|text| placeholder::may_have(text)) {
        let text = "a secret goes to NATS with the credential it is part of; name that with `auth`";
        return Err(wit::NatsError::Credential(text.to_owned()));
    }
    let (server, in_url) = parse(url)?;
    let login = Login {
        user: at.user.clone().or(in_url.user),
        password: at.password.clone().or(in_url.password),
        token: at.token.clone().or(in_url.token),
    };
    let parts = [&login.user, &login.password, &login.token].map(|part| part.as_deref().unwrap_or_default());
    let digest = Digest::of(parts.join("\0").as_bytes()).hex();
    Ok((server, login, (digest, 0)))
}

fn field<'c>(credential: &'c Credential, names: &[&str]) -> Option<&'c str> {
    names.iter().find_map(|name| credential.field(name)).filter(|text| !text.is_empty())
}

/// `nats://[user[:password]@]host[:port]`; a user without a password is a token.
fn parse(text: &str) -> Result<(Server, Login), wit::NatsError> {
    if text.contains(',') {
        return Err(invalid("it names several; give one"));
    }
    let whole = if text.contains("://") { text.to_owned() } else { format!("nats://{text}") };
    let url = reqwest::Url::parse(&whole).map_err(|error| invalid(&error.to_string()))?;
    let tls = match url.scheme() {
        "nats" => false,
        "tls" => true,
        other => return Err(invalid(&format!("`{other}` is neither `nats` nor `tls`"))),
    };
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid("it has no host"))?;
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let plain = |text: &str| percent_decoded(text).ok_or_else(|| invalid("its login is not well-formed"));
    let user = Some(url.username()).filter(|user| !user.is_empty()).map(plain).transpose()?;
    let password = url.password().map(plain).transpose()?;
    let login = match (user, password) {
        (Some(token), None) => Login { token: Some(token), ..Login::default() },
        (user, password) => Login { user, password, token: None },
    };
    Ok((Server { host, port: url.port().unwrap_or(USUAL_PORT), tls }, login))
}

fn percent_decoded(text: &str) -> Option<String> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// The address as it may be written down.
fn without_login(url: &str) -> String {
    parse(url).map_or_else(
        |_| "a server that cannot be read".to_owned(),
        |(server, _)| format!("{}:{}", server.host, server.port),
    )
}

fn invalid(why: &str) -> wit::NatsError {
    wit::NatsError::Invalid(format!("the address of the server: {why}; write `nats://host:{USUAL_PORT}`"))
}

fn closed(error: WalletError) -> wit::NatsError {
    match error {
        WalletError::NoToken { .. } | WalletError::Unavailable(_) => wit::NatsError::Unavailable(error.to_string()),
        _ => wit::NatsError::Credential(error.to_string()),
    }
}

pub(super) fn told(error: NatsError) -> wit::NatsError {
    match error {
        NatsError::Invalid(text) => wit::NatsError::Invalid(text),
        NatsError::NotFound(text) => wit::NatsError::NotFound(text),
        NatsError::Timeout => wit::NatsError::Timeout,
        NatsError::TooLarge(size) => wit::NatsError::TooLarge(size),
        NatsError::Unavailable(text) => wit::NatsError::Unavailable(text),
        NatsError::Refused(text) => wit::NatsError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_read_with_its_login() {
        let (server, login) = parse("nats://ada:p%40ss@Example.com").expect("an address");
        assert_eq!(server, Server { host: "example.com".to_owned(), port: 4222, tls: false });
        assert_eq!((login.user.as_deref(), login.password.as_deref()), (Some("ada"), Some("p@ss")));
        let (server, login) = parse("tls://secret@[::1]:4443").expect("an address");
        assert_eq!(server, Server { host: "::1".to_owned(), port: 4443, tls: true });
        assert_eq!((login.token.as_deref(), login.user), (Some("secret"), None));
        assert_eq!(parse("127.0.0.1:9").expect("an address").0.port, 9);
        for bad in ["http://a", "nats://", "nats://a,nats://b", "nats://a:99999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_down_of_a_server_has_no_login() {
        assert_eq!(without_login("nats://ada:secret@a.example:1"), "a.example:1");
    }

    #[tokio::test]
    async fn a_private_server_is_out_of_reach_unless_the_operator_opens_the_network() {
        let at = || wit::Server {
            credential: None,
            url: Some("nats://127.0.0.1:1".to_owned()),
            user: None,
            password: None,
            token: None,
        };
        let using = || Use {
            tenant: Tenant::main(),
            alias: String::new(),
            by: "tools/any".to_owned(),
            call: "c".to_owned(),
            target: String::new(),
        };
        let wallet = noetl_store::wallet::Empty;
        let closed = Connections::new(Addresses { private: false });
        let refused = closed.get(&wallet, at(), using()).await.err().expect("refused");
        assert!(matches!(refused, wit::NatsError::Denied(_)), "{refused:?}");
        let named = wit::Server { credential: Some("gone".to_owned()), ..at() };
        let unknown = closed.get(&wallet, named, using()).await.err().expect("refused");
        assert!(matches!(unknown, wit::NatsError::Credential(_)), "{unknown:?}");
    }

    #[tokio::test]
    async fn a_server_that_its_credential_names_with_tls_is_never_spoken_to_in_the_open() {
        struct One;
        #[async_trait::async_trait]
        impl Wallet for One {
            async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
                let fields = [("url".to_owned(), "tls://a.example:4222".to_owned())].into();
                let hosts = vec![noetl_store::wallet::Binding::new("a.example:4222").expect("a pattern")];
                let (alias, kind) = (using.alias.clone(), "nats".to_owned());
                Ok(Arc::new(Credential { alias, kind, fields, hosts, revision: 1 }))
            }
        }
        for url in [None, Some("nats://a.example:4222"), Some("a.example"), Some("tls://a.example")] {
            let at =
                wit::Server { credential: None, url: url.map(str::to_owned), user: None, password: None, token: None };
            let using = Use {
                tenant: Tenant::main(),
                alias: String::new(),
                by: "tools/any".to_owned(),
                call: "c".to_owned(),
                target: String::new(),
            };
            let (server, ..) = by_credential(&One, "a".to_owned(), &at, using).await.expect("known");
            assert!(server.tls, "{url:?}");
        }
    }
}
