//! The answer of a script: all statements as `command_0`, `command_1`, ..., and the last one's fields beside them.
//!
//! Rows are JSON already when they come, and are not read again: a number of many digits stays what it is.

use noetl_sdk::Failure;
use noetl_sdk::payload::Payload;
use noetl_sdk::sql::{Outcome, Rows};
use noetl_sdk::tool::Response;
use serde_json::Value;

/// What one statement came to, without what only the host can hold.
struct Command {
    status: String,
    affected: u64,
    columns: Vec<String>,
    row_count: u64,
    /// Nothing if they are the answer's body.
    rows: Option<String>,
}

/// The answer of the tool. Rows of one statement that are too many for it become its body.
pub fn answer(outcomes: Vec<Outcome>) -> Result<Response, Failure> {
    let mut body: Option<Payload> = None;
    let mut commands = Vec::with_capacity(outcomes.len());
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let rows = match outcome.rows {
            None => Some("[]".to_owned()),
            Some(Rows::Json(text)) => Some(text),
            Some(Rows::Table(_)) if body.is_some() => {
                let text = format!("statement {} is the second with a large result: run it by itself", number + 1);
                return Err(Failure::new("too_large", text));
            }
            Some(Rows::Table(table)) => {
                body = Some(table);
                None
            }
        };
        commands.push(Command {
            status: outcome.status,
            affected: outcome.affected.unwrap_or(0),
            columns: outcome.columns.into_iter().map(|column| column.name).collect(),
            row_count: outcome.row_count,
            rows,
        });
    }
    let response = Response::raw(written(&commands));
    Ok(match body {
        Some(body) => response.with_body(body),
        None => response,
    })
}

fn written(commands: &[Command]) -> String {
    let size: usize = commands.iter().map(|command| command.rows.as_ref().map_or(0, String::len) + 200).sum();
    let mut out = String::with_capacity(size * 2);
    out.push('{');
    if let Some(last) = commands.last() {
        last.write(&mut out);
    }
    for (number, command) in commands.iter().enumerate() {
        out.push_str(&format!(",\"command_{number}\":{{"));
        command.write(&mut out);
        out.push_str(&format!(",\"status\":{}}}", Value::from(command.status.as_str())));
    }
    out.push('}');
    out
}

impl Command {
    fn write(&self, out: &mut String) {
        if let Some(rows) = &self.rows {
            out.push_str("\"rows\":");
            out.push_str(rows);
            out.push(',');
        }
        let columns = Value::from(self.columns.clone());
        out.push_str(&format!(
            "\"row_count\":{},\"columns\":{columns},\"affected_rows\":{}",
            self.row_count, self.affected
        ));
    }
}

#[cfg(test)]
mod tests {
    use noetl_sdk::sql::Column;
    use serde_json::json;

    use super::*;

    fn outcome(status: &str, affected: Option<u64>, rows: Option<&str>) -> Outcome {
        Outcome {
            status: status.to_owned(),
            affected,
            columns: rows.map(|_| Column { name: "n\"1".to_owned(), kind: "int4".to_owned() }).into_iter().collect(),
            row_count: u64::from(rows.is_some()),
            rows: rows.map(|text| Rows::Json(text.to_owned())),
        }
    }

    #[test]
    fn every_statement_is_there_and_the_last_one_twice() {
        let row = r#"[{"n\"1":12345678901234567890123}]"#;
        let response = answer(vec![outcome("INSERT 0 3", Some(3), None), outcome("SELECT 1", None, Some(row))]);
        let response = response.expect("an answer");
        assert!(response.output.contains("12345678901234567890123"), "digits are passed on");
        let value: Value = serde_json::from_str(&response.output).expect("JSON");
        let columns = json!(["n\"1"]);
        assert_eq!((&value["row_count"], &value["columns"], &value["affected_rows"]), (&json!(1), &columns, &json!(0)));
        assert_eq!(value["rows"], value["command_1"]["rows"]);
        assert_eq!(
            value["command_0"],
            json!({"rows": [], "row_count": 0, "columns": [], "affected_rows": 3, "status": "INSERT 0 3"})
        );
    }
}
