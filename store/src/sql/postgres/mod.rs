//! Scripts on PostgreSQL.
//!
//! A script takes a connection of its credential's pool, says what it needs of it (time, search path, a transaction) in one
//! command, and then each statement is two exchanges: what are its parameters and columns, and then its rows. Values go and
//! come as text, so that a parameter is whatever the statement takes it for.
//!
//! Time is kept on both sides: the server is told when to stop, and if it does not, or nobody wants the answer any more,
//! it is asked to from outside.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;

use super::script::{Token, statements, tokens};
use super::{Done, Parameters, Request, SqlError, check_tables, listed, named, placed};
use crate::payloads::Payloads;

mod kept;
mod pool;
mod statement;
mod tls;
mod types;
mod wire;

pub use pool::{Owner, Pools};
pub use tls::TlsMode;
pub use wire::Server;

use pool::Lease;
use statement::{Statement, Taking};
use wire::Connection;

/// The server stops by itself; this long after that it is stopped.
const AFTER_ITS_TIME: Duration = Duration::from_millis(250);
const MOST_STATEMENTS: usize = 10_000;

impl Pools {
    /// Runs a script. `addresses` is asked only if a connection has to be made: it is where the host's policy is.
    pub async fn run(
        &self,
        owner: &Owner,
        server: &Server,
        addresses: BoxFuture<'_, Result<Vec<SocketAddr>, SqlError>>,
        request: &Request,
        payloads: &Payloads,
    ) -> Result<Vec<Done>, SqlError> {
        let statements = split(request)?;
        let run = Run { request, statements: &statements, payloads, committed: AtomicBool::new(false) };
        let running = async {
            let mut lease = self.of(owner).lease().await?;
            run.begin(&mut lease, server, addresses).await?;
            run.to_the_end(lease).await
        };
        let ended = tokio::time::timeout(request.time + AFTER_ITS_TIME, running).await;
        ended.unwrap_or_else(|_| Err(run.out_of_time()))
    }
}

fn split(request: &Request) -> Result<Vec<Statement<'_>>, SqlError> {
    let texts: Vec<&str> = statements(&request.script).take(MOST_STATEMENTS + 1).collect();
    match texts.len() {
        0 => return Err(SqlError::Invalid("there is no statement in the script".to_owned())),
        count if count > MOST_STATEMENTS => {
            return Err(SqlError::Invalid(format!(
                "one script has at most {MOST_STATEMENTS} statements: make it several, or use fewer with more rows each"
            )));
        }
        _ => {}
    }
    if request.script.contains('\0') {
        return Err(SqlError::Invalid("there is a zero byte in the script".to_owned()));
    }
    let doubled = matches!(request.parameters, Parameters::Named(_)) && named::doubles_percent(&request.script);
    let statement = |(place, text): (usize, &str)| {
        let number = u32::try_from(place + 1).unwrap_or(u32::MAX);
        Ok(match &request.parameters {
            Parameters::None => Statement { number, text: text.to_owned(), values: Vec::new(), places: Vec::new() },
            Parameters::Positional(list) => {
                let listed::Renumbered { text, values, places } = listed::renumbered(text, list)
                    .map_err(|reason| SqlError::Invalid(format!("statement {number} {reason}")))?;
                Statement { number, text, values, places }
            }
            Parameters::Named(fields) => {
                let (text, values) = named::numbered(text, fields, doubled)
                    .map_err(|reason| SqlError::Invalid(format!("statement {number}: {reason}")))?;
                Statement { number, text, values, places: Vec::new() }
            }
        })
    };
    let statements = texts.into_iter().enumerate().map(statement).collect::<Result<Vec<_>, SqlError>>()?;
    if let Parameters::Positional(list) = &request.parameters {
        let last = statements.iter().flat_map(|statement| &statement.places).max();
        placed::check(last.copied().unwrap_or(0), list.len()).map_err(SqlError::Invalid)?;
    }
    Ok(statements)
}

struct Run<'r> {
    request: &'r Request,
    statements: &'r [Statement<'r>],
    payloads: &'r Payloads,
    /// Whether the script has ended the transaction it was begun with, so that what it did until then may be there for
    /// good.
    committed: AtomicBool,
}

impl Run<'_> {
    /// One statement is a transaction by itself.
    fn is_transaction(&self) -> bool {
        self.request.transaction && self.statements.len() > 1
    }

    /// A connection that answers, and is as the script wants it.
    async fn begin(
        &self,
        lease: &mut Lease,
        server: &Server,
        addresses: BoxFuture<'_, Result<Vec<SocketAddr>, SqlError>>,
    ) -> Result<(), SqlError> {
        let wanted = self.wanted();
        while !lease.is_empty() {
            match lease.connection()?.command(&wanted).await {
                Ok(_) => return Ok(()),
                Err(error @ SqlError::Sql(_)) => return Err(error),
                Err(_) => lease.replace(),
            }
        }
        lease.fill(Connection::open(server, &addresses.await?, &self.request.room).await?);
        lease.connection()?.command(&wanted).await.map(drop)
    }

    fn wanted(&self) -> String {
        let milliseconds = self.request.time.as_millis().clamp(1, i32::MAX as u128);
        let mut text = format!(
            "SET statement_timeout TO {milliseconds}; SET IntervalStyle TO iso_8601; SET extra_float_digits TO 3; \
             SET bytea_output TO hex"
        );
        if let Some(schema) = self.request.schema.as_deref().filter(|schema| !schema.trim().is_empty()) {
            let names: Vec<String> = schema
                .split(',')
                .map(|name| format!("\"{}\"", name.trim().trim_matches('"').replace('"', "\"\"")))
                .collect();
            text.push_str(&format!("; SET search_path TO {}", names.join(", ")));
        }
        if self.is_transaction() {
            text.push_str("; BEGIN");
        }
        text
    }

    async fn to_the_end(&self, mut lease: Lease) -> Result<Vec<Done>, SqlError> {
        let mut done: Vec<Done> = Vec::with_capacity(self.statements.len());
        let mut state = b'I';
        let mut bounds = self.request.bounds;
        for statement in self.statements {
            if self.is_transaction() && is_commit(&statement.text) {
                self.committed.store(true, Ordering::Relaxed);
            }
            let pool = lease.pool.clone();
            let Request { objects, hidden, .. } = self.request;
            let taking = Taking { objects: *objects, bounds, hidden, payloads: self.payloads };
            match statement.run(lease.connection()?, &pool, &taking).await {
                Ok((ended, after)) => {
                    bounds = bounds.after(&ended);
                    done.push(ended);
                    state = after;
                    // Each of the statements that follow is a transaction by itself.
                    if self.is_transaction() && state == b'I' {
                        self.committed.store(true, Ordering::Relaxed);
                    }
                }
                Err(error) => return Err(self.failed(lease, error, false)),
            }
            if let Err(error) = check_tables(&done) {
                return Err(self.failed(lease, error, false));
            }
        }
        if self.is_transaction() {
            match lease.connection()?.command("COMMIT").await {
                Ok(after) => state = after,
                Err(SqlError::Sql(mut fault)) => {
                    // What is checked at the end, such as a deferred constraint.
                    fault.statement = u32::try_from(self.statements.len()).unwrap_or(u32::MAX);
                    return Err(self.failed(lease, SqlError::Sql(fault), true));
                }
                Err(error) => return Err(self.failed(lease, error, true)),
            }
        }
        lease.give_back(state != b'I');
        if state != b'I' {
            let text = "the script leaves a transaction open, which was rolled back: end it with COMMIT";
            return Err(SqlError::Invalid(text.to_owned()));
        }
        Ok(done)
    }

    /// What the failure means, and what becomes of the connection: after an error of a statement it is in order, after
    /// anything else nobody knows what it will say next, and it is dropped.
    fn failed(&self, lease: Lease, error: SqlError, committing: bool) -> SqlError {
        match error {
            SqlError::Sql(fault) => {
                lease.give_back(!committing && self.is_transaction());
                match fault.sqlstate.as_str() {
                    // Query cancelled.
                    "57014" => self.out_of_time(),
                    // The server goes down or was told to end the connection.
                    "57P01" | "57P02" | "57P03" if self.has_committed() => SqlError::Lost(fault.message),
                    "57P01" | "57P02" | "57P03" => SqlError::Connect(fault.message),
                    _ => SqlError::Sql(fault),
                }
            }
            SqlError::Connect(reason) if committing || !self.is_transaction() || self.has_committed() => {
                SqlError::Lost(reason)
            }
            other => other,
        }
    }

    fn has_committed(&self) -> bool {
        self.committed.load(Ordering::Relaxed)
    }

    fn out_of_time(&self) -> SqlError {
        match self.has_committed() {
            true => SqlError::Lost("the time was over after a COMMIT of the script's own".to_owned()),
            false => SqlError::Timeout,
        }
    }
}

/// Whether a statement makes what was done so far durable.
fn is_commit(statement: &str) -> bool {
    let first = tokens(statement).find(|(token, _)| *token == Token::Word);
    first.is_some_and(|(_, word)| word.eq_ignore_ascii_case("commit") || word.eq_ignore_ascii_case("end"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Bounds, Hidden, Room};
    use super::*;

    fn request(script: &str) -> Request {
        Request {
            script: script.to_owned(),
            parameters: Parameters::None,
            schema: None,
            transaction: true,
            objects: true,
            time: Duration::from_secs(5),
            bounds: Bounds { inline: 1 << 20, most: 1 << 30 },
            hidden: Hidden::default(),
            room: Room::default(),
        }
    }

    #[test]
    fn what_makes_no_sense_is_told_before_anything_is_sent() {
        assert!(matches!(split(&request(" -- nothing\n;")), Err(SqlError::Invalid(_))));
        assert!(matches!(split(&request("select '\0'")), Err(SqlError::Invalid(_))));
        assert!(matches!(split(&request(&"select 1;".repeat(MOST_STATEMENTS + 1))), Err(SqlError::Invalid(_))));
        let mut named = request("select 1; select :b");
        named.parameters = Parameters::Named(json!({"a": 1}).as_object().expect("an object").clone());
        let refused = split(&named).err().expect("not given").to_string();
        assert!(refused.contains("statement 2") && refused.contains("`b`"), "{refused}");
        let mut listed = request("select $1; select $3");
        listed.parameters = Parameters::Positional(vec![json!(1), json!(2)]);
        let refused = split(&listed).err().expect("not given").to_string();
        assert_eq!(refused, "statement 2 uses $3, and 2 parameters are given");
    }

    #[test]
    fn a_list_that_the_script_does_not_use_up_is_refused() {
        for (script, given, refused) in [
            ("select $1; select $3", 3, None),
            ("select $1; select $2", 3, Some("the script has 2 places for values, and 3 parameters are given")),
            ("prepare q as select $1", 1, Some("the script has no place for values, and 1 parameters are given")),
            ("select 1", 0, None),
        ] {
            let parameters = Parameters::Positional(vec![json!(1); given]);
            let request = Request { parameters, ..request(script) };
            let said = split(&request).err().map(|error| error.to_string());
            assert_eq!(said.as_deref(), refused, "{script}");
        }
    }

    #[test]
    fn a_doubled_percent_sign_is_one_where_a_name_is_in_pythons_style() {
        let fields = json!({"a": 1}).as_object().expect("an object").clone();
        for (script, expected) in [
            ("select 'x%%'; select %(a)s", ["select 'x%'", "select $1"]),
            ("select 'x%%'; select :a", ["select 'x%%'", "select $1"]),
        ] {
            let request = Request { parameters: Parameters::Named(fields.clone()), ..request(script) };
            let statements = split(&request).expect("statements");
            let texts: Vec<&str> = statements.iter().map(|statement| statement.text.trim()).collect();
            assert_eq!(texts, expected, "{script}");
        }
    }

    #[test]
    fn a_schema_is_quoted_and_one_statement_needs_no_transaction() {
        let mut request = request("select 1");
        request.schema = Some("a\"b, public".to_owned());
        let payloads = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(payloads.path()).expect("a store");
        let wanted = |request: &Request| {
            let statements = split(request).expect("statements");
            let committed = AtomicBool::new(false);
            Run { request, statements: &statements, payloads: &payloads, committed }.wanted()
        };
        let text = wanted(&request);
        assert!(text.contains("SET search_path TO \"a\"\"b\", \"public\"") && !text.contains("BEGIN"), "{text}");
        request.script = "select 1; select 2".to_owned();
        assert!(wanted(&request).ends_with("; BEGIN"));
        request.transaction = false;
        assert!(!wanted(&request).contains("BEGIN"));
    }
}
