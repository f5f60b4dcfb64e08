//! The options of a step, made into a script to run.
//!
//! An option that is not known is passed over and named in the log, so that whoever misspelt one finds it.

use std::time::Duration;

use noetl_sdk::sql::Script;
use noetl_sdk::{Failure, options};
use serde_json::{Map, Value};

use crate::source::Source;

/// What a step says.
pub struct Options(Map<String, Value>);

/// A script, ready to be run on a database.
#[derive(Debug, PartialEq)]
pub struct Plan {
    script: Source,
    parameters: Option<String>,
    schema: Option<String>,
    transaction: bool,
    objects: bool,
    timeout: Option<Duration>,
}

/// One after the other, the names a script is given by.
const SCRIPT: [&str; 6] = ["command", "query", "commands", "statement", "statements", "sql"];
const KNOWN: [&str; 18] = [
    "command",
    "query",
    "commands",
    "statement",
    "statements",
    "sql",
    "script",
    "params",
    "parameters",
    "schema",
    "as_objects",
    "transaction",
    "timeout",
    "timeout_seconds",
    "timeout_ms",
    "auth",
    "credential",
    "database",
];
/// What the host does by itself.
const PASSED_OVER: &str = "pool";

impl Options {
    pub fn read(arguments: &str) -> Result<Self, Failure> {
        Ok(Self(serde_json::from_str(arguments)?))
    }

    /// Options that are part of others.
    pub fn of(given: Map<String, Value>) -> Self {
        Self(given)
    }

    /// Takes an option of the tool's own.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    /// Takes an option that is text.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::invalid_input(format_args!("`{name}` is text"))),
        }
    }

    /// The first of these options that is there.
    pub fn any_of<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        names.iter().find(|name| self.0.get(**name).is_some_and(|value| !value.is_null())).copied()
    }

    /// Passes over what is left, which nobody took, for the tool of that name.
    pub fn end(mut self, tool: &str, known: &[&str]) {
        options::keep_known(tool, &mut self.0, known);
    }

    /// What is left, as a script for the tool of that name.
    pub fn plan(mut self, tool: &str) -> Result<Plan, Failure> {
        let script = self.script()?;
        let parameters = match (self.take("params"), self.take("parameters")) {
            (Some(_), Some(_)) => return Err(Failure::invalid_input("give `params` or `parameters`, not both")),
            (given, other) => given.or(other).map(parameters).transpose()?.flatten(),
        };
        let schema = self.take_text("schema")?;
        let objects = self.flag("as_objects")?;
        let transaction = self.flag("transaction")?;
        let timeout = self.timeout()?;
        self.take(PASSED_OVER);
        options::keep_known(tool, &mut self.0, &KNOWN);
        Ok(Plan { script, parameters, schema, transaction, objects, timeout })
    }

    /// Beside SQL that is written out, a `script` says nothing.
    fn script(&mut self) -> Result<Source, Failure> {
        let script = self.take("script");
        let mut given = SCRIPT.into_iter().filter_map(|name| Some((name, self.take(name)?)));
        let Some((name, value)) = given.next() else {
            let nothing =
                "there is nothing to run: give the SQL as `command`, `query` or `statements`, or its place as `script`";
            return Source::read(&script.ok_or_else(|| Failure::invalid_input(nothing))?);
        };
        if let Some((other, _)) = given.next() {
            return Err(Failure::invalid_input(format_args!("give `{name}` or `{other}`, not both")));
        }
        let no_text = || Failure::invalid_input(format_args!("`{name}` is SQL text, or a list of it"));
        match value {
            Value::String(text) => Ok(Source::Text(text)),
            Value::Array(list) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                // On a line of its own, because a statement may end in a comment.
                texts.map(|texts| Source::Text(texts.join("\n;\n"))).ok_or_else(no_text)
            }
            _ => Err(no_text()),
        }
    }

    /// True unless it says otherwise; templates make text of truth values.
    fn flag(&mut self, name: &str) -> Result<bool, Failure> {
        match self.take(name) {
            None => Ok(true),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(Failure::invalid_input(format_args!("`{name}` is `true` or `false`"))),
        }
    }

    /// Takes the time a script may have, the shortest of those that are given.
    pub fn timeout(&mut self) -> Result<Option<Duration>, Failure> {
        let mut shortest: Option<Duration> = None;
        for (name, unit) in [("timeout", 1.0), ("timeout_seconds", 1.0), ("timeout_ms", 0.001)] {
            let Some(value) = self.take(name) else { continue };
            let seconds = value.as_f64().map(|number| number * unit).or_else(|| seconds(value.as_str()?, unit));
            let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let time = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                Failure::invalid_input(format_args!(
                    "`{name}` is a time greater than nothing: seconds, or text such as `500ms`"
                ))
            })?;
            shortest = Some(shortest.map_or(time, |other| other.min(time)));
        }
        Ok(shortest)
    }
}

/// `30`, or with a unit as playbooks write it: `500ms`, `2s`, `5m`, `1h`.
fn seconds(text: &str, unit: f64) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, word) = text.split_at(digits);
    let factor = match word {
        "" => unit,
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * factor)
}

/// A list or an object; a template that was rendered to the text of one is taken for it.
fn parameters(value: Value) -> Result<Option<String>, Failure> {
    let value = match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    match value {
        Value::Array(list) if list.is_empty() => Ok(None),
        Value::Object(fields) if fields.is_empty() => Ok(None),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => Ok(Some(value.to_string())),
        _ => Err(Failure::invalid_input("`params` is a list for `$1` or `%s`, or an object for `:name` or `%(name)s`")),
    }
}

impl Plan {
    /// The script as the host takes it, and its text.
    pub fn on(self, mut database: Script) -> Result<(Script, String), Failure> {
        database = database.transaction(self.transaction).objects(self.objects);
        if let Some(parameters) = self.parameters {
            database = database.parameters(parameters);
        }
        if let Some(schema) = self.schema {
            database = database.schema(schema);
        }
        if let Some(timeout) = self.timeout {
            database = database.timeout(timeout);
        }
        Ok((database, self.script.text()?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(value: Value) -> Result<Plan, Failure> {
        Options::read(&value.to_string())?.plan("postgres")
    }

    fn text(value: Value) -> String {
        plan(value).and_then(|plan| plan.script.text()).expect("a script")
    }

    #[test]
    fn a_script_is_one_text_or_a_list_of_them() {
        for name in SCRIPT {
            assert_eq!(text(json!({name: "select 1"})), "select 1");
        }
        assert_eq!(text(json!({"statements": ["select 1 -- one", "select 2"]})), "select 1 -- one\n;\nselect 2");
        assert_eq!(text(json!({"script": "select 3"})), "select 3");
        assert_eq!(text(json!({"query": "select 4", "script": {"uri": "x.sql"}})), "select 4");
        let file = plan(json!({"script": {"uri": "x.sql", "source": {"type": "file"}}})).expect("a plan");
        assert_eq!(file.script, Source::File("x.sql".to_owned()));
        for wrong in [json!({}), json!({"query": 1}), json!({"commands": [1]}), json!({"query": "a", "command": "b"})] {
            assert_eq!(plan(wrong.clone()).expect_err("no script").code, "invalid_input", "{wrong}");
        }
    }

    #[test]
    fn what_is_said_reaches_the_host() {
        let said = plan(json!({
            "query": "q", "params": {"a": 1}, "schema": "s", "as_objects": "false", "transaction": false, "timeout": "2.5",
            "timeout_seconds": 60, "pool": {"name": "x"}, "input": {}, "output": null, "retries": 3,
        }));
        let said = said.expect("a plan");
        assert_eq!((said.parameters.as_deref(), said.schema.as_deref()), (Some(r#"{"a":1}"#), Some("s")));
        assert_eq!((said.objects, said.transaction, said.timeout), (false, false, Some(Duration::from_millis(2500))));
        let timed = |text: &str| plan(json!({"query": "q", "timeout": text})).expect("a plan").timeout;
        assert_eq!((timed("250ms"), timed("2m")), (Some(Duration::from_millis(250)), Some(Duration::from_secs(120))));
        let usual = plan(json!({"query": "q", "params": []})).expect("a plan");
        assert_eq!((usual.parameters, usual.objects, usual.transaction, usual.timeout), (None, true, true, None));
        let rendered = plan(json!({"query": "q", "params": "[1, null]"})).expect("a plan");
        assert_eq!(rendered.parameters.as_deref(), Some("[1,null]"));
    }

    #[test]
    fn a_time_is_written_as_playbooks_write_it() {
        for (options, expected) in [
            (json!({"timeout": 2}), 2000),
            (json!({"timeout": "500ms"}), 500),
            (json!({"timeout": "1.5s"}), 1500),
            (json!({"timeout": "2m"}), 120_000),
            (json!({"timeout_ms": 250}), 250),
            (json!({"timeout_ms": "250"}), 250),
        ] {
            let mut options = options;
            options["query"] = json!("q");
            assert_eq!(plan(options).expect("a plan").timeout, Some(Duration::from_millis(expected)));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            json!({"query": "q", "params": "x"}),
            json!({"query": "q", "params": 1}),
            json!({"query": "q", "timeout": 0}),
            json!({"query": "q", "timeout": "soon"}),
            json!({"query": "q", "as_objects": 7}),
            json!({"query": "q", "schema": ["a"]}),
        ] {
            assert_eq!(plan(wrong.clone()).expect_err("nonsense").code, "invalid_input", "{wrong}");
        }
    }
}
