//! `noetl:sql`: scripts on databases that a credential or a name stands for.
//!
//! A plugin says which credential, never which host: the address is in the credential, and the credential says where it
//! may go. The host it names is looked up by [`egress`](crate::egress) when a connection is made, and the connection goes
//! to what was checked. Statements cross in one call a script, and so do their answers.

use std::time::Duration;

use noetl_store::sql::{Bounds, Done, Hidden, Parameters, Request, Room, Rows, SqlError, TABLE_TYPE, placed};
use serde_json::Value;

use super::masking::Secrets;
use super::payload::Payload;
use crate::bindings::noetl::sql::sql as wit;
use crate::state::CallState;

mod databases;
mod sizes;

pub(crate) use databases::Problem;
pub use databases::{Databases, SqlOptions};

/// Rows of one script that a guest gets as text, if it does not say, and at most.
const USUAL_INLINE: u64 = 4 << 20;
const MOST_INLINE: u64 = 16 << 20;

impl wit::Host for CallState {
    async fn run(&mut self, request: wit::Request) -> wasmtime::Result<Result<Vec<wit::Outcome>, wit::SqlError>> {
        let parameters = request.parameters.as_ref().map_or(0, String::len);
        self.charge(request.script.len() + parameters)?;
        if self.tape.is_live() { self.run_live(request).await } else { self.run_taped(request).await }
    }
}

impl CallState {
    pub(crate) async fn run_live(
        &mut self,
        request: wit::Request,
    ) -> wasmtime::Result<Result<Vec<wit::Outcome>, wit::SqlError>> {
        let weight = match sizes::weight(&request) {
            Ok(weight) => weight,
            Err(error) => return Ok(Err(wit::SqlError::Invalid(error))),
        };
        let drivers = self.drivers.clone();
        // Before anything is read of it, and until it has been answered.
        let Ok(_room) = tokio::time::timeout(self.time_left(), drivers.sql.room(&self.identity.tenant, weight)).await
        else {
            return Ok(Err(wit::SqlError::Timeout));
        };
        let database = request.database.clone();
        let request = match self.script(request) {
            Ok(request) => request,
            Err(error) => return Ok(Err(wit::SqlError::Invalid(error.to_owned()))),
        };
        let (who, payloads, seal) = (self.identity.clone(), &drivers.payloads, self.seal());
        let done = match &database {
            wit::Database::Credential(alias) => {
                drivers.sql.postgres(drivers.wallet.as_ref(), (&*who, seal), alias, request, payloads).await
            }
            wit::Database::File(name) => drivers.sql.file((&*who, seal), name, request, payloads).await,
            wit::Database::Memory => drivers.sql.memory(&who, request, payloads).await,
        };
        match done {
            Ok(done) => {
                let secrets = Secrets::of(&self.identity.tenant, Vec::new());
                let outcomes: wasmtime::Result<Vec<_>> =
                    done.into_iter().map(|done| self.outcome(&secrets, done)).collect();
                Ok(outcomes?.into_iter().collect())
            }
            Err(problem) => Ok(Err(masked(&Secrets::of(&self.identity.tenant, Vec::new()), problem.into()))),
        }
    }

    /// The script, or what is wrong with the request.
    fn script(&self, request: wit::Request) -> Result<Request, &'static str> {
        let parameters = match request.parameters.as_deref().map(serde_json::from_str) {
            None | Some(Ok(Value::Null)) => Parameters::None,
            Some(Ok(Value::Array(list))) => Parameters::Positional(list),
            Some(Ok(Value::Object(fields))) => Parameters::Named(fields),
            Some(_) => return Err("parameters are a list or an object, as JSON"),
        };
        let script = match &parameters {
            Parameters::Positional(_) => placed::numbered(&request.script),
            Parameters::None | Parameters::Named(_) => request.script,
        };
        let asked = request.timeout_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)));
        Ok(Request {
            script,
            parameters,
            schema: request.schema,
            transaction: request.transaction,
            objects: request.objects,
            time: asked.min(self.time_left()),
            bounds: Bounds {
                inline: request.inline_bytes.map_or(USUAL_INLINE, u64::from).min(MOST_INLINE),
                most: self.drivers.max_payload.min(self.temporary.left()),
            },
            // Filled in where the credential was opened.
            hidden: Hidden::default(),
            room: Room::default(),
        })
    }

    /// Rows and names of columns are without secrets already; all else a server can say anything with.
    fn outcome(&mut self, secrets: &Secrets, done: Done) -> wasmtime::Result<Result<wit::Outcome, wit::SqlError>> {
        let rows = match done.rows {
            None => None,
            Some(Rows::Json(text)) => Some(wit::Rows::Json(text)),
            Some(Rows::Table(table)) => match Payload::sealed(table, TABLE_TYPE).counted(&self.temporary) {
                Ok(table) => Some(wit::Rows::Table(self.hand_out(table)?)),
                Err(error) => return Ok(Err(wit::SqlError::Invalid(error))),
            },
        };
        let column = |column: noetl_store::sql::Column| {
            let kind = secrets.masked(column.kind);
            wit::Column { name: column.name, kind }
        };
        Ok(Ok(wit::Outcome {
            status: secrets.masked(done.status),
            affected: done.affected,
            columns: done.columns.into_iter().map(column).collect(),
            row_count: done.row_count,
            rows,
        }))
    }
}

/// What a database says about a statement can have values of its rows in it.
fn masked(secrets: &Secrets, error: wit::SqlError) -> wit::SqlError {
    use wit::SqlError::{Connect, Denied, Invalid, Lost, Refused, Sql, Timeout, TooLarge, UnknownCredential};
    match error {
        UnknownCredential(text) => UnknownCredential(secrets.masked(text)),
        Invalid(text) => Invalid(secrets.masked(text)),
        Denied(text) => Denied(secrets.masked(text)),
        Connect(text) => Connect(secrets.masked(text)),
        Refused(text) => Refused(secrets.masked(text)),
        Lost(text) => Lost(secrets.masked(text)),
        Sql(mut fault) => {
            secrets.mask(&mut fault.message);
            if !is_sqlstate(&fault.sqlstate) {
                fault.sqlstate.clear();
            }
            for part in [&mut fault.detail, &mut fault.hint, &mut fault.constraint] {
                secrets.mask_some(part);
            }
            Sql(fault)
        }
        error @ (Timeout | TooLarge(_)) => error,
    }
}

/// Five digits and letters, which is too short for a secret.
fn is_sqlstate(code: &str) -> bool {
    code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl From<Problem> for wit::SqlError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Credential(text) => Self::UnknownCredential(text),
            Problem::Sql(error) => error.into(),
        }
    }
}

impl From<SqlError> for wit::SqlError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Invalid(text) => Self::Invalid(text),
            SqlError::Denied(text) => Self::Denied(text),
            SqlError::Connect(text) | SqlError::Store(text) => Self::Connect(text),
            SqlError::Refused(text) => Self::Refused(text),
            SqlError::Lost(text) => Self::Lost(text),
            SqlError::Timeout => Self::Timeout,
            SqlError::TooLarge(size) => Self::TooLarge(size),
            SqlError::Sql(fault) => Self::Sql(wit::Fault {
                statement: fault.statement,
                sqlstate: fault.sqlstate,
                message: fault.message,
                position: fault.position,
                detail: fault.detail,
                hint: fault.hint,
                constraint: fault.constraint,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use noetl_contract::Tenant;
    use noetl_scrub::known;

    use super::*;

    #[test]
    fn a_fault_has_no_secret_in_any_part() {
        known::learn_for("sql-fault", "fault-secret");
        let secrets = Secrets::of(&Tenant::new("sql-fault").expect("a name"), Vec::new());
        let with_code = |sqlstate: &str| {
            let fault = wit::Fault {
                statement: 1,
                sqlstate: sqlstate.to_owned(),
                message: "no fault-secret".to_owned(),
                position: None,
                detail: Some("fault-secret".to_owned()),
                hint: None,
                constraint: None,
            };
            match masked(&secrets, wit::SqlError::Sql(fault)) {
                wit::SqlError::Sql(fault) => (fault.sqlstate, fault.message, fault.detail),
                other => panic!("{other:?}"),
            }
        };
        let (sqlstate, message, detail) = with_code("23505");
        assert_eq!((sqlstate.as_str(), message.as_str()), ("23505", "no [REDACTED]"));
        assert_eq!(detail.as_deref(), Some("[REDACTED]"));
        for code in ["fault-secret", "2350", "235-5", ""] {
            assert_eq!(with_code(code).0, "");
        }
    }
}
