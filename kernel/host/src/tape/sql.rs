//! Scripts of SQL on a tape, with their rows.

use serde_json::{Value, json};

use super::objects::content;
use crate::bindings::noetl::sql::sql as wit;
use crate::state::CallState;

const CALL: &str = "sql.run";

impl CallState {
    pub(crate) async fn run_taped(
        &mut self,
        request: wit::Request,
    ) -> wasmtime::Result<Result<Vec<wit::Outcome>, wit::SqlError>> {
        let database = match &request.database {
            wit::Database::Credential(alias) => json!({ "credential": alias }),
            wit::Database::File(name) => json!({ "file": name }),
            wit::Database::Memory => json!("memory"),
        };
        // Values by themselves, so that what is masked is masked in them.
        let parameters = request.parameters.as_deref().map(|text| serde_json::from_str(text).unwrap_or(json!(text)));
        let with = json!({
            "database": database, "script": request.script, "parameters": parameters, "schema": request.schema,
            "transaction": request.transaction,
        });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return self.played_outcomes(&answer);
        }
        let answer = self.run_live(request).await?;
        let written = match &answer {
            Ok(outcomes) => {
                let mut list = Vec::new();
                for outcome in outcomes {
                    list.push(self.written(outcome).await?);
                }
                json!({ "ok": list })
            }
            Err(error) => json!({ "error": write_error(error) }),
        };
        self.recorded(CALL, with, written)?;
        Ok(answer)
    }

    async fn written(&mut self, outcome: &wit::Outcome) -> wasmtime::Result<Value> {
        let rows = match &outcome.rows {
            None => Value::Null,
            Some(wit::Rows::Json(text)) => json!({ "json": text }),
            Some(wit::Rows::Table(handle)) => {
                let payload = self.table.get(handle)?.clone();
                json!({ "table": content(self.drivers.payloads.clone(), &payload).await })
            }
        };
        let columns: Vec<Value> = outcome.columns.iter().map(|column| json!([column.name, column.kind])).collect();
        Ok(json!({
            "status": outcome.status, "affected": outcome.affected, "columns": columns,
            "row_count": outcome.row_count, "rows": rows,
        }))
    }

    fn played_outcomes(&mut self, answer: &Value) -> wasmtime::Result<Result<Vec<wit::Outcome>, wit::SqlError>> {
        if let Some(error) = answer.get("error") {
            return match read_error(error) {
                Some(error) => Ok(Err(error)),
                None => Err(self.no_answer(CALL).into()),
            };
        }
        let mut outcomes = Vec::new();
        for said in answer.get("ok").and_then(Value::as_array).into_iter().flatten() {
            let Some(outcome) = self.played_outcome(said)? else { return Err(self.no_answer(CALL).into()) };
            outcomes.push(outcome);
        }
        Ok(Ok(outcomes))
    }

    fn played_outcome(&mut self, said: &Value) -> wasmtime::Result<Option<wit::Outcome>> {
        let column = |pair: &Value| {
            let text = |place: usize| Some(pair.get(place)?.as_str()?.to_owned());
            Some(wit::Column { name: text(0)?, kind: text(1)? })
        };
        let read = || {
            let columns = said.get("columns")?.as_array()?.iter().map(column).collect::<Option<Vec<_>>>()?;
            Some((said.get("status")?.as_str()?.to_owned(), columns, said.get("row_count")?.as_u64()?))
        };
        let Some((status, columns, row_count)) = read() else { return Ok(None) };
        let rows = said.get("rows").unwrap_or(&Value::Null);
        let rows = match (rows.get("json").and_then(Value::as_str), rows.get("table")) {
            (Some(text), _) => Some(wit::Rows::Json(text.to_owned())),
            (None, Some(table)) => {
                let Some(payload) = Self::payload_of(table) else { return Ok(None) };
                Some(wit::Rows::Table(self.hand_out(payload)?))
            }
            (None, None) => None,
        };
        let affected = said.get("affected").and_then(Value::as_u64);
        Ok(Some(wit::Outcome { status, affected, columns, row_count, rows }))
    }
}

fn write_error(error: &wit::SqlError) -> Value {
    match error {
        wit::SqlError::Invalid(text) => json!({ "invalid": text }),
        wit::SqlError::UnknownCredential(text) => json!({ "unknown-credential": text }),
        wit::SqlError::Denied(text) => json!({ "denied": text }),
        wit::SqlError::Connect(text) => json!({ "connect": text }),
        wit::SqlError::Refused(text) => json!({ "refused": text }),
        wit::SqlError::Lost(text) => json!({ "lost": text }),
        wit::SqlError::Timeout => json!({ "timeout": null }),
        wit::SqlError::TooLarge(size) => json!({ "too-large": size }),
        wit::SqlError::Sql(fault) => json!({ "sql": {
            "statement": fault.statement, "sqlstate": fault.sqlstate, "message": fault.message,
            "position": fault.position, "detail": fault.detail, "hint": fault.hint, "constraint": fault.constraint,
        } }),
    }
}

fn read_error(value: &Value) -> Option<wit::SqlError> {
    let (case, carried) = value.as_object()?.iter().next()?;
    let text = || carried.as_str().map(str::to_owned);
    Some(match case.as_str() {
        "invalid" => wit::SqlError::Invalid(text()?),
        "unknown-credential" => wit::SqlError::UnknownCredential(text()?),
        "denied" => wit::SqlError::Denied(text()?),
        "connect" => wit::SqlError::Connect(text()?),
        "refused" => wit::SqlError::Refused(text()?),
        "lost" => wit::SqlError::Lost(text()?),
        "timeout" => wit::SqlError::Timeout,
        "too-large" => wit::SqlError::TooLarge(carried.as_u64()?),
        "sql" => {
            let field = |name: &str| carried.get(name).and_then(Value::as_str).map(str::to_owned);
            let number = |name: &str| carried.get(name)?.as_u64().and_then(|number| u32::try_from(number).ok());
            wit::SqlError::Sql(wit::Fault {
                statement: number("statement")?,
                sqlstate: field("sqlstate")?,
                message: field("message")?,
                position: number("position"),
                detail: field("detail"),
                hint: field("hint"),
                constraint: field("constraint"),
            })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_same_after_reading_them_back() {
        let fault = wit::Fault {
            statement: 2,
            sqlstate: "23505".to_owned(),
            message: "twice".to_owned(),
            position: Some(8),
            detail: None,
            hint: Some("look".to_owned()),
            constraint: None,
        };
        for error in [
            wit::SqlError::Sql(fault),
            wit::SqlError::Timeout,
            wit::SqlError::TooLarge(9),
            wit::SqlError::Lost("gone".to_owned()),
            wit::SqlError::UnknownCredential("none".to_owned()),
        ] {
            let written = write_error(&error);
            let read = read_error(&written).expect("an error");
            assert_eq!(write_error(&read), written);
        }
        assert!(read_error(&json!({ "odd": 1 })).is_none());
    }
}
