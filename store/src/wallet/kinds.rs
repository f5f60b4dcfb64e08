//! Kinds of credentials: which fields each has, how else they are spelt, and where it goes by itself.
//!
//! One table. What a person writes is brought to the names of the table, so that whoever uses a credential knows one
//! spelling, and everything that is wrong is found when the credential is made and not when it is needed. A field nobody
//! knows is refused: it is a misspelt one.
//!
//! A password, a token or a query inside of an address is taken out of it and becomes a field of its own: addresses are
//! shown to people.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::Url;
use zeroize::Zeroize as _;

use super::Credential;
use super::binding::{Binding, is_this_machine};
use super::scheme::{self, Scheme};

/// One field.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    /// Other spellings.
    pub also: &'static [&'static str],
    pub needed: Needed,
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    Yes,
    No,
    Default(&'static str),
}

/// One kind.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub also: &'static [&'static str],
    pub help: &'static str,
    pub fields: &'static [Field],
}

/// A field that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// `data.password`, `type`, `hosts`.
    pub field: String,
    pub message: String,
}

impl Invalid {
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self { field: field.to_owned(), message: message.into() }
    }

    fn data(field: &str, message: impl std::fmt::Display) -> Self {
        Self::new(&format!("data.{field}"), format!("field `{field}`: {message}"))
    }
}

/// Checked fields of a credential, overwritten in memory when they are dropped.
#[derive(Default, Clone)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn as_map(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    fn set_missing(&mut self, name: &str, value: impl Into<String>) {
        self.0.entry(name.to_owned()).or_insert_with(|| value.into());
    }

    fn set(&mut self, name: &str, value: String) {
        if let Some(mut before) = self.0.insert(name.to_owned(), value) {
            before.zeroize();
        }
    }
}

impl Drop for Fields {
    fn drop(&mut self) {
        self.0.values_mut().for_each(|value| value.zeroize());
    }
}

const fn needed(name: &'static str, also: &'static [&'static str], help: &'static str) -> Field {
    Field { name, also, needed: Needed::Yes, help }
}

const fn optional(name: &'static str, also: &'static [&'static str], help: &'static str) -> Field {
    Field { name, also, needed: Needed::No, help }
}

const fn usually(name: &'static str, value: &'static str, also: &'static [&'static str], help: &'static str) -> Field {
    Field { name, also, needed: Needed::Default(value), help }
}

/// The one field of several lines.
const CERTIFICATES: &str = "sslrootcert";

/// Every kind there is.
#[rustfmt::skip]
pub static KINDS: &[Kind] = &[
    Kind { name: "bearer", also: &["http_bearer", "token"], help: "a token that is sent as `Authorization: Bearer`", fields: &[
        needed("token", &["access_token", "bearer_token"], "the token"),
    ]},
    Kind { name: "basic", also: &["http_basic"], help: "a name and a password that are sent as `Authorization: Basic`", fields: &[
        needed("user", &["username", "login"], "the name"),
        usually("password", "", &["pass"], "the password"),
    ]},
    Kind { name: "api_key", also: &["apikey", "api-key"], help: "a key that is sent in a header", fields: &[
        needed("key", &["api_key", "apikey", "token", "value"], "the key"),
        usually("header", "X-API-Key", &["header_name"], "name of the header"),
    ]},
    Kind { name: "postgres", also: &["postgresql", "pg"], help: "a PostgreSQL database", fields: &[
        needed("host", &["db_host", "hostname"], "the host"),
        usually("port", "5432", &["db_port"], "the port"),
        needed("user", &["db_user", "username"], "the role"),
        optional("password", &["db_password", "pass"], "the password"),
        needed("database", &["db_name", "dbname", "db"], "the database"),
        optional("sslmode", &["ssl_mode", "db_sslmode"], "`disable`, `prefer`, `require`, `verify-ca` or `verify-full`"),
        optional("sslrootcert", &["ssl_root_cert", "db_sslrootcert"], "certificates of the authority that is trusted, as PEM [default: the machine's]"),
        optional("url", &["dsn", "uri", "connection_string", "database_url"], "all of it: `postgres://user:password@host:5432/database`"),
    ]},
    Kind { name: "nats", also: &[], help: "a NATS server", fields: &[
        needed("url", &["nats_url", "server"], "the address: `nats://host:4222`"),
        optional("user", &["nats_user", "username"], "the user"),
        optional("password", &["nats_password", "pass"], "the password"),
        optional("token", &["nats_token"], "a token instead of user and password"),
    ]},
    Kind { name: "s3", also: &["aws", "minio"], help: "a store that speaks S3", fields: &[
        optional("endpoint", &["endpoint_url", "s3_endpoint"], "the address [default: Amazon's of the region]"),
        usually("region", "us-east-1", &["aws_region"], "the region"),
        needed("access_key", &["access_key_id", "aws_access_key_id", "key_id"], "the id of the key"),
        needed("secret_key", &["secret_access_key", "aws_secret_access_key"], "the key"),
        optional("session_token", &["aws_session_token"], "what comes with keys that end by themselves"),
        optional("bucket", &["bucket_name"], "the bucket"),
    ]},
    Kind { name: "hmac", also: &["webhook_hmac"], help: "a secret that requests are signed with", fields: &[
        needed("secret", &["key", "hmac_secret"], "the secret"),
        usually("algorithm", "sha256", &["alg"], "`sha256`, `sha512`, or `sha1` where nothing else is taken"),
        usually("message", scheme::USUAL_MESSAGE, &["signs"], "what is signed: `request`, `body`, or text such as `{timestamp}.{body}`"),
        usually("header", scheme::USUAL_HEADER, &["header_name"], "name of the header that has the signature"),
        optional("format", &[], "what that header is, such as `sha256={hex}` [default: what the message needs]"),
        optional("key_id", &[], "which secret it is, for the receiver"),
        optional("timestamp_header", &[], "name of a header for the time, where the signature's own does not have it"),
    ]},
    Kind { name: "oauth2", also: &["oauth2_client_credentials", "client_credentials"], help: "tokens that the server fetches and renews (client credentials)", fields: &[
        needed("token_url", &["token_endpoint", "endpoint"], "where tokens are fetched"),
        optional("token_query", &[], "what follows `?` in that address; it is not shown"),
        needed("client_id", &[], "the client"),
        needed("client_secret", &[], "its secret"),
        optional("scope", &["scopes"], "what is asked for, with blanks between"),
        optional("audience", &[], "whom the token is for, where the server wants that said"),
        usually("auth_style", "body", &["auth_method"], "`body` or `basic`: how the client shows its secret"),
    ]},
];

/// The kind of a name, in any of its spellings.
pub fn kind(name: &str) -> Result<&'static Kind, Invalid> {
    let found = KINDS.iter().find(|kind| kind.name == name || kind.also.contains(&name));
    found.ok_or_else(|| {
        let known: Vec<_> = KINDS.iter().map(|kind| format!("`{}`", kind.name)).collect();
        Invalid::new("type", format!("`{name}` is not a kind of credential; there are {}", known.join(", ")))
    })
}

impl Kind {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name || field.also.contains(&name))
    }

    /// The fields in the names of the table, complete and checked.
    pub fn check(&self, given: &Map<String, Value>) -> Result<Fields, Invalid> {
        let mut fields = Fields::default();
        for (name, value) in given {
            let Some(field) = self.field(name) else {
                let known: Vec<_> = self.fields.iter().map(|field| format!("`{}`", field.name)).collect();
                let message = format!("`{name}` is not a field of `{}`; it has {}", self.name, known.join(", "));
                return Err(Invalid::new(&format!("data.{name}"), message));
            };
            let text = match value {
                Value::Null => continue,
                Value::String(text) if text.is_empty() => continue,
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(Invalid::data(name, "must be text")),
            };
            // A line end that came with a file would be refused by whoever gets the secret, hours later.
            let has_lines = field.name == CERTIFICATES;
            if text.chars().any(|letter| letter.is_control() && !(has_lines && matches!(letter, '\r' | '\n'))) {
                return Err(Invalid::data(name, "has a line end or another control character in it"));
            }
            if fields.get(field.name).is_some_and(|other| other != text) {
                return Err(Invalid::data(
                    name,
                    format!("says something else than another spelling of `{}`", field.name),
                ));
            }
            fields.set(field.name, text);
        }
        self.settle(&mut fields)?;
        for field in self.fields {
            match field.needed {
                Needed::Default(value) => fields.set_missing(field.name, value),
                Needed::Yes if fields.get(field.name).is_none() => {
                    return Err(Invalid::data(field.name, format!("a `{}` needs {}", self.name, field.help)));
                }
                Needed::Yes | Needed::No => {}
            }
        }
        Ok(fields)
    }

    /// What a table cannot say.
    fn settle(&self, fields: &mut Fields) -> Result<(), Invalid> {
        match self.name {
            "postgres" => postgres(fields),
            "nats" => {
                let Some(url) = fields.get("url") else { return Ok(()) };
                let url = address("url", url, &["nats", "tls"])?;
                if url.query().is_some() || url.fragment().is_some() {
                    return Err(Invalid::data("url", "has a `?` or a `#` in it, which no NATS server knows"));
                }
                take_user(fields, "url", url)
            }
            "s3" => {
                let region = fields.get("region").unwrap_or("us-east-1").to_owned();
                fields.set_missing("endpoint", format!("https://s3.{region}.amazonaws.com"));
                if without_user(fields, "endpoint")?.query().is_some() {
                    return Err(Invalid::data("endpoint", "has a `?` in it; it is the address of a server"));
                }
                Ok(())
            }
            "oauth2" => {
                one_of(fields, "auth_style", &["body", "basic"])?;
                if fields.get("token_url").is_none() {
                    return Ok(());
                }
                let mut url = without_user(fields, "token_url")?;
                if let Some(query) = url.query().map(str::to_owned) {
                    url.set_query(None);
                    fields.set_missing("token_query", query);
                    fields.set("token_url", url.to_string());
                }
                Ok(())
            }
            "hmac" => {
                let given: &Fields = fields;
                header_name(given, "header")?;
                header_name(given, "timestamp_header")?;
                Scheme::read(|name| given.get(name)).map_err(|(field, why)| Invalid::data(field, why)).map(drop)
            }
            "api_key" => header_name(fields, "header"),
            _ => Ok(()),
        }
    }

    /// Where it goes when nobody says otherwise: to the place that it names itself, and else nowhere.
    pub fn own_hosts(&self, fields: &Fields) -> Result<Vec<Binding>, Invalid> {
        let of_url = |name: &str, usual: u16| -> Option<String> {
            let url = Url::parse(fields.get(name)?).ok()?;
            Some(format!("{}:{}", url.host_str()?, url.port_or_known_default().unwrap_or(usual)))
        };
        // Whoever writes `http://` into the credential means it.
        let is_open = |name: &str| {
            let url = fields.get(name).and_then(|text| Url::parse(text).ok());
            url.is_some_and(|url| url.scheme() == "http" && !url.host_str().is_some_and(is_this_machine))
        };
        let found = match self.name {
            "postgres" => {
                fields.get("host").map(|host| vec![format!("{host}:{}", fields.get("port").unwrap_or("5432"))])
            }
            "nats" => of_url("url", 4222).map(|host| vec![host]),
            // Buckets are also names below the endpoint's.
            "s3" => of_url("endpoint", 443).map(|host| {
                let is_name =
                    !host.split(':').next().unwrap_or_default().bytes().all(|b| b.is_ascii_digit() || b == b'.');
                if is_name { vec![host.clone(), format!("*.{host}")] } else { vec![host] }
            }),
            "oauth2" => of_url("token_url", 443).map(|host| vec![host]),
            _ => None,
        };
        let scheme = if is_open("endpoint") || is_open("token_url") { "http://" } else { "" };
        let hosts = found.unwrap_or_default().into_iter().map(|host| host.to_ascii_lowercase());
        let bindings = hosts.map(|host| Binding::new(format!("{scheme}{host}")));
        bindings.collect::<Result<_, _>>().map_err(|error| Invalid::new("hosts", error.to_string()))
    }

    /// Fields that are secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(|field| !Credential::is_public(field.name))
    }
}

fn postgres(fields: &mut Fields) -> Result<(), Invalid> {
    if let Some(url) = fields.get("url") {
        let url = address("url", url, &["postgres", "postgresql"])?;
        let parts = [
            ("host", url.host_str().map(str::to_owned)),
            ("port", url.port().map(|port| port.to_string())),
            ("user", decoded("url", url.username())?),
            ("password", decoded("url", url.password().unwrap_or_default())?),
            ("database", decoded("url", url.path().trim_start_matches('/'))?),
            ("sslmode", url.query_pairs().find(|(name, _)| name == "sslmode").map(|(_, value)| value.into_owned())),
        ];
        for (name, part) in parts {
            // What is said by itself goes before what the address says.
            if let Some(part) = part {
                fields.set_missing(name, part);
            }
        }
        if let Some(mut whole) = fields.0.remove("url") {
            whole.zeroize();
        }
    }
    if fields.get("port").is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err(Invalid::data("port", "is not a port"));
    }
    if fields.get("host").is_some_and(|host| host.starts_with('/')) {
        return Err(Invalid::data("host", "is a socket in a folder; databases are reached over the network alone"));
    }
    if fields.get(CERTIFICATES).is_some_and(|text| !text.contains("-----BEGIN CERTIFICATE-----")) {
        return Err(Invalid::data(CERTIFICATES, "has no certificate in it: give the text of a PEM file, not its name"));
    }
    one_of(fields, "sslmode", &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
}

fn address(field: &str, text: &str, schemes: &[&str]) -> Result<Url, Invalid> {
    // The text is not repeated: a password may be in it.
    let wrong = || Invalid::data(field, format!("is not an address such as `{}://host:port`", schemes[0]));
    let url = Url::parse(text).map_err(|_| wrong())?;
    if schemes.contains(&url.scheme()) && url.has_host() { Ok(url) } else { Err(wrong()) }
}

/// Moves the user of an address, and the password, into fields of their own. A name without a password is a token.
fn take_user(fields: &mut Fields, field: &'static str, mut url: Url) -> Result<(), Invalid> {
    let has_name = url.password().is_some() || ["user", "password"].iter().any(|name| fields.get(name).is_some());
    let first = if has_name { "user" } else { "token" };
    for (name, part) in
        [(first, url.username().to_owned()), ("password", url.password().unwrap_or_default().to_owned())]
    {
        if let Some(part) = decoded(field, &part)? {
            fields.set_missing(name, part);
        }
    }
    let cleaned = url.set_username("").and_then(|()| url.set_password(None));
    cleaned.map_err(|()| Invalid::data(field, "cannot have a user"))?;
    fields.set(field, url.to_string());
    Ok(())
}

fn without_user(fields: &Fields, field: &str) -> Result<Url, Invalid> {
    let url = address(field, fields.get(field).unwrap_or_default(), &["https", "http"])?;
    if url.fragment().is_some() {
        return Err(Invalid::data(field, "has a `#` in it, which is never sent"));
    }
    if url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    Err(Invalid::data(field, "has a user or a password in it; they have fields of their own"))
}

fn decoded(field: &str, part: &str) -> Result<Option<String>, Invalid> {
    let text =
        percent_decode_str(part).decode_utf8().map_err(|_| Invalid::data(field, "is not text once it is decoded"))?;
    Ok((!text.is_empty()).then(|| text.into_owned()))
}

fn one_of(fields: &Fields, field: &str, words: &[&str]) -> Result<(), Invalid> {
    match fields.get(field) {
        Some(given) if !words.contains(&given) => {
            Err(Invalid::data(field, format!("must be one of {}", words.join(", "))))
        }
        _ => Ok(()),
    }
}

fn header_name(fields: &Fields, field: &str) -> Result<(), Invalid> {
    match fields.get(field) {
        Some(name) if !is_header(name) => Err(Invalid::data(field, "is not the name of a header")),
        _ => Ok(()),
    }
}

fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Letters, digits, `_`, `-` and `.`: an alias stands in addresses, in templates and on command lines.
pub fn check_alias(alias: &str) -> Result<(), Invalid> {
    let letters = alias.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if letters && (1..=100).contains(&alias.len()) && alias.bytes().any(|b| b != b'.') {
        return Ok(());
    }
    let given: String = alias.chars().take(100).collect();
    Err(Invalid::new(
        "name",
        format!("`{given}` cannot be the name of a credential: use up to 100 letters, digits, `_`, `-` and `.`"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Fields by name, and hosts.
    type Checked = (Vec<(String, String)>, Vec<String>);

    fn checked(name: &str, data: Value) -> Result<Checked, String> {
        let kind = kind(name).map_err(|error| error.to_string())?;
        let fields =
            kind.check(data.as_object().expect("an object")).map_err(|error| format!("{}: {error}", error.field))?;
        let hosts = kind.own_hosts(&fields).map_err(|error| error.to_string())?;
        let fields = fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok((fields, hosts.iter().map(ToString::to_string).collect()))
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn spellings_become_one_and_defaults_are_filled_in() {
        let data = json!({"db_host": "db.example.com", "db_port": 5433, "db_user": "app", "db_password": "p", "db_name": "shop"});
        let (fields, hosts) = checked("postgresql", data).expect("valid");
        let wanted =
            [("database", "shop"), ("host", "db.example.com"), ("password", "p"), ("port", "5433"), ("user", "app")];
        assert_eq!((fields, hosts), (pairs(&wanted), vec!["db.example.com:5433".to_owned()]));
        let (fields, hosts) = checked("api_key", json!({"api_key": "k"})).expect("valid");
        assert_eq!((fields, hosts.len()), (pairs(&[("header", "X-API-Key"), ("key", "k")]), 0));
        let (fields, _) = checked("bearer", json!({"access_token": "t"})).expect("valid");
        assert_eq!(fields, pairs(&[("token", "t")]));
        let (_, hosts) = checked(
            "oauth2",
            json!({"token_url": "https://Login.example.com/t", "client_id": "c", "client_secret": "s"}),
        )
        .expect("valid");
        assert_eq!(hosts, ["login.example.com:443"]);
        let (_, hosts) =
            checked("s3", json!({"access_key": "a", "secret_key": "s", "endpoint": "http://127.0.0.1:9000"}))
                .expect("valid");
        assert_eq!(hosts, ["127.0.0.1:9000"]);
        let inside = json!({"access_key": "a", "secret_key": "s", "endpoint": "http://minio:9000"});
        assert_eq!(checked("s3", inside).expect("valid").1, ["http://minio:9000", "http://*.minio:9000"]);
        let (_, hosts) = checked("s3", json!({"access_key": "a", "secret_key": "s"})).expect("valid");
        assert_eq!(hosts, ["s3.us-east-1.amazonaws.com:443", "*.s3.us-east-1.amazonaws.com:443"]);
    }

    #[test]
    fn a_password_never_stays_in_an_address() {
        let url = "postgres://app:p%40ss@DB.example.com/shop?sslmode=require";
        let (fields, hosts) = checked("postgres", json!({"url": url, "database": "other"})).expect("valid");
        let wanted = [
            ("database", "other"),
            ("host", "DB.example.com"),
            ("password", "p@ss"),
            ("port", "5432"),
            ("sslmode", "require"),
            ("user", "app"),
        ];
        assert_eq!((fields, hosts), (pairs(&wanted), vec!["db.example.com:5432".to_owned()]));
        let (fields, hosts) = checked("nats", json!({"nats_url": "nats://u:secret@n1:4333"})).expect("valid");
        assert_eq!(fields, pairs(&[("password", "secret"), ("url", "nats://n1:4333"), ("user", "u")]));
        assert_eq!(hosts, ["n1:4333"]);
        assert_eq!(checked("nats", json!({"url": "nats://n1"})).expect("valid").1, ["n1:4222"]);
        let (fields, _) = checked("nats", json!({"url": "tls://s3cret@n1"})).expect("valid");
        assert_eq!(fields, pairs(&[("token", "s3cret"), ("url", "tls://n1")]));
        let (fields, _) = checked("nats", json!({"url": "nats://u@n1", "password": "p"})).expect("valid");
        assert_eq!(fields, pairs(&[("password", "p"), ("url", "nats://n1"), ("user", "u")]));
        let client = json!({"token_url": "https://h/t?code=s3cret", "client_id": "c", "client_secret": "s"});
        let (fields, _) = checked("oauth2", client).expect("valid");
        assert!(fields.contains(&("token_url".to_owned(), "https://h/t".to_owned())), "{fields:?}");
        assert!(fields.contains(&("token_query".to_owned(), "code=s3cret".to_owned())), "{fields:?}");
        assert!(!Credential::is_public("token_query") && !Credential::is_public("token"));
        let refused =
            checked("oauth2", json!({"token_url": "https://u:hunter2@h/", "client_id": "c", "client_secret": "s"}));
        let refused = refused.expect_err("a user in the address");
        assert!(refused.contains("token_url") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn certificates_keep_their_lines() {
        let pem = "-----BEGIN CERTIFICATE-----\nMIIB\r\n-----END CERTIFICATE-----\n";
        let data = json!({"host": "h", "user": "u", "database": "d", "sslmode": "verify-full", "sslrootcert": pem});
        let (fields, _) = checked("postgres", data).expect("valid");
        assert!(fields.contains(&("sslrootcert".to_owned(), pem.to_owned())), "{fields:?}");
        assert!(Credential::is_public("sslrootcert"), "everybody who connects is shown it");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (name, data, why) in [
            ("bearer", json!({}), "data.token"),
            ("bearer", json!({"token": "a\n"}), "line end"),
            ("bearer", json!({"token": ["a"]}), "must be text"),
            ("bearer", json!({"token": "a", "access_token": "b"}), "another spelling"),
            ("bearer", json!({"tokn": "a"}), "`tokn` is not a field of `bearer`; it has `token`"),
            ("postgres", json!({"host": "h", "user": "u", "database": "d", "port": "x"}), "data.port"),
            ("postgres", json!({"host": "h", "user": "u", "database": "d", "sslmode": "on"}), "verify-full"),
            ("postgres", json!({"host": "/run/pg", "user": "u", "database": "d"}), "socket"),
            ("postgres", json!({"host": "h", "user": "u", "database": "d", "sslrootcert": "/ca.pem"}), "PEM file"),
            ("postgres", json!({"host": "h\n", "user": "u", "database": "d"}), "line end"),
            ("postgres", json!({"url": "http://h/d"}), "postgres://host:port"),
            ("nats", json!({"url": "nats://h?token=t"}), "data.url"),
            ("s3", json!({"access_key": "a", "secret_key": "s", "endpoint": "https://h/?sig=x"}), "data.endpoint"),
            ("hmac", json!({"secret": "s", "algorithm": "md5"}), "sha256"),
            ("hmac", json!({"secret": "s", "message": "{nonce}"}), "data.message"),
            ("hmac", json!({"secret": "s", "timestamp_header": "a b"}), "data.timestamp_header"),
            ("api_key", json!({"key": "k", "header": "a b"}), "data.header"),
            ("snowflake", json!({}), "`oauth2`"),
        ] {
            let message = checked(name, data).expect_err(why);
            assert!(message.contains(why), "{name}: {message}");
        }
    }

    #[test]
    fn every_kind_has_a_secret_and_no_spelling_twice() {
        for kind in KINDS {
            assert!(kind.secrets().next().is_some(), "{}", kind.name);
            let mut names: Vec<_> =
                kind.fields.iter().flat_map(|field| field.also.iter().chain([&field.name])).collect();
            names.sort();
            let before = names.len();
            names.dedup();
            assert_eq!(names.len(), before, "{}", kind.name);
        }
    }

    #[test]
    fn the_documentation_has_every_kind_and_field() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/credentials.md"));
        for kind in KINDS {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name)));
            let row = row.unwrap_or_else(|| panic!("docs/credentials.md has no row for `{}`", kind.name));
            for field in kind.fields {
                let written = format!("`{}`", field.name);
                let secret = format!("**{written}**");
                assert!(row.contains(&written), "`{}` of `{}`", field.name, kind.name);
                assert_eq!(row.contains(&secret), !Credential::is_public(field.name), "{secret} of `{}`", kind.name);
            }
        }
    }

    #[test]
    fn an_alias_can_stand_in_an_address() {
        for good in ["pg_k8s", "a", "A-1.b"] {
            assert!(check_alias(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "ü", &"x".repeat(101)] {
            assert!(check_alias(bad).is_err(), "{bad}");
        }
    }
}
