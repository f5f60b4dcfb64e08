//! Which database a step means: the PostgreSQL server that a credential names, or an SQLite database of the operator's folder.
//!
//! The host connects, so that no address and no password is here; a step that has them is told to name a credential.

use noetl_sdk::Failure;
use noetl_sdk::options::alias;
use noetl_sdk::sql::{self, Script};

use crate::Options;

/// What a credential is for.
const IN_A_CREDENTIAL: [&str; 18] = [
    "connection_string",
    "connection",
    "dsn",
    "url",
    "host",
    "port",
    "database",
    "dbname",
    "user",
    "username",
    "password",
    "sslmode",
    "db_host",
    "db_port",
    "db_name",
    "db_user",
    "db_password",
    "db_conn_string",
];

/// PostgreSQL, by `auth` or `credential`.
pub fn postgres(options: &mut Options) -> Result<Script, Failure> {
    credential(options).map(sql::postgres)
}

/// SQLite, by `database`; without it the script has an empty database that is gone with it.
pub fn sqlite(options: &mut Options) -> Result<Script, Failure> {
    Ok(match options.take_text("database")?.as_deref() {
        None | Some(":memory:") => sql::memory(),
        Some(name) => sql::file(name),
    })
}

fn credential(options: &mut Options) -> Result<String, Failure> {
    if let Some(name) = options.any_of(&IN_A_CREDENTIAL) {
        return Err(Failure::invalid_input(format_args!(
            "`{name}` does not belong into a step: keep it in a credential of the type `postgres` \
             (`noetl credential add`) and name that as `auth`"
        )));
    }
    let (auth, credential) = (options.take("auth"), options.take("credential"));
    let alias = match alias("auth", auth.as_ref())? {
        Some(alias) => Some(alias),
        None => alias("credential", credential.as_ref())?,
    };
    alias.ok_or_else(|| {
        Failure::invalid_input(
            "`auth` is missing: name the credential of the type `postgres` to connect with (`noetl credential add` \
             makes one)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(arguments: &str) -> Result<String, Failure> {
        credential(&mut Options::read(arguments)?)
    }

    #[test]
    fn a_step_names_a_credential_and_nothing_of_what_is_in_it() {
        assert_eq!(asked(r#"{"auth": "pg", "query": "q"}"#), Ok("pg".to_owned()));
        assert_eq!(asked(r#"{"credential": "pg", "auth": null}"#), Ok("pg".to_owned()));
        assert_eq!(asked(r#"{"auth": {"pg": {"type": "postgres", "credential": "orders"}}}"#), Ok("orders".to_owned()));
        for wrong in [r#"{"query": "q"}"#, r#"{"auth": " "}"#, r#"{"auth": {"type": "postgres"}}"#] {
            assert!(asked(wrong).expect_err("no credential").message.contains("auth"), "{wrong}");
        }
        let refused = asked(r#"{"auth": "pg", "password": "hunter2"}"#).expect_err("a password");
        assert!(refused.message.contains("`password`") && !refused.message.contains("hunter2"), "{refused}");
    }
}
