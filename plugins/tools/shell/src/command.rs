//! From a step's options to a program, and from its end to the step's data.

use noetl_sdk::process::{Command, Exited};
use noetl_sdk::{Failure, options};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Every option. Output is captured always, whatever `capture` says.
const KNOWN: [&str; 9] = ["command", "cmds", "cmd", "shell", "cwd", "env", "timeout", "timeout_seconds", "capture"];

/// The tool's options.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    command: Option<Value>,
    cmds: Option<Value>,
    cmd: Option<Value>,
    shell: Option<String>,
    cwd: Option<String>,
    env: Option<Map<String, Value>>,
    timeout: Option<Value>,
    timeout_seconds: Option<Value>,
}

const USUAL_SHELL: &str = "sh";

impl Options {
    pub fn read(arguments: &str) -> Result<Self, Failure> {
        let mut given: Map<String, Value> = serde_json::from_str(arguments)?;
        options::keep_known("shell", &mut given, &KNOWN);
        Ok(serde_json::from_value(Value::Object(given))?)
    }

    pub fn command(self) -> Result<Command, Failure> {
        let given = |value: Option<Value>| value.filter(|value| !value.is_null());
        let shell = self.shell.filter(|shell| !shell.trim().is_empty()).unwrap_or_else(|| USUAL_SHELL.to_owned());
        let (program, arguments) = match (given(self.command).or(given(self.cmd)), given(self.cmds)) {
            (Some(_), Some(_)) => return Err(Failure::invalid_input("give `command` or `cmds`, not both")),
            (None, None) => return Err(Failure::invalid_input("`command` is missing: what to run")),
            (Some(Value::String(text)), None) => (shell, vec!["-c".to_owned(), text]),
            (Some(list), None) => {
                let mut words = words("command", list)?.into_iter();
                let program = words.next().ok_or_else(|| Failure::invalid_input("`command` is an empty list"))?;
                (program, words.collect())
            }
            (None, Some(Value::String(text))) => (shell, vec!["-e".to_owned(), "-c".to_owned(), text]),
            // `-e`: a line that fails is the last.
            (None, Some(lines)) => (shell, vec!["-e".to_owned(), "-c".to_owned(), words("cmds", lines)?.join("\n")]),
        };
        let environment = self.env.unwrap_or_default().into_iter().filter(|(_, value)| !value.is_null());
        let environment = environment
            .map(|(name, value)| Ok((word(&name, value)?, name)))
            .map(|pair: Result<_, Failure>| pair.map(|(value, name)| (name, value)))
            .collect::<Result<_, _>>()?;
        Ok(Command {
            program,
            arguments,
            folder: self.cwd.filter(|folder| !folder.trim().is_empty()),
            environment,
            timeout_ms: timeout(given(self.timeout_seconds).or(given(self.timeout)))?,
        })
    }
}

fn words(what: &str, list: Value) -> Result<Vec<String>, Failure> {
    match list {
        Value::Array(items) => items.into_iter().map(|item| word(what, item)).collect(),
        other => Err(Failure::invalid_input(format_args!("`{what}` is neither text nor a list: `{other}`"))),
    }
}

/// A map or a list is its JSON: what a template with `tojson` gives arrives as the value itself.
fn word(what: &str, value: Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Err(Failure::invalid_input(format_args!("`null` in `{what}` is not a word"))),
        other => Ok(other.to_string()),
    }
}

/// Seconds as a number or as text, also `30s` and `250ms`; the engine bounds the call by the same.
fn timeout(given: Option<Value>) -> Result<Option<u32>, Failure> {
    let Some(given) = given else { return Ok(None) };
    let wrong = || Failure::invalid_input(format_args!("`timeout` is `{given}`, which is not a time"));
    let text = word("timeout", given.clone()).map_err(|_| wrong())?;
    let text = text.trim();
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => (text, 1000.0),
    };
    let time: f64 = number.trim().parse().map_err(|_| wrong())?;
    let time = time * unit;
    if !(time >= 1.0 && time <= f64::from(u32::MAX)) {
        return Err(wrong());
    }
    Ok(Some(time as u32))
}

pub fn output(exited: &Exited) -> Value {
    json!({
        "exit_code": exited.code,
        "signal": exited.signal,
        "stdout": String::from_utf8_lossy(&exited.output),
        "stderr": String::from_utf8_lossy(&exited.errors),
        "truncated": exited.cut,
        "timed_out": exited.timed_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(options: Value) -> Result<Command, Failure> {
        Options::read(&options.to_string())?.command()
    }

    fn run(options: Value) -> Vec<String> {
        let command = command(options).expect("a command");
        std::iter::once(command.program).chain(command.arguments).collect()
    }

    #[test]
    fn text_goes_to_a_shell_and_a_list_is_a_program() {
        assert_eq!(run(json!({"command": "echo $HOME"})), ["sh", "-c", "echo $HOME"]);
        assert_eq!(run(json!({"command": "echo", "shell": "bash"})), ["bash", "-c", "echo"]);
        assert_eq!(run(json!({"command": ["git", "log", "-n", 3]})), ["git", "log", "-n", "3"]);
        assert_eq!(run(json!({"cmds": ["cd /tmp", "ls"]})), ["sh", "-e", "-c", "cd /tmp\nls"]);
        assert_eq!(run(json!({"cmds": "ls"})), ["sh", "-e", "-c", "ls"]);
        assert_eq!(run(json!({"cmd": "ls", "retries": 3, "input": {}, "args": {}})), ["sh", "-c", "ls"]);
    }

    #[test]
    fn what_makes_no_command_is_refused() {
        for bad in [
            json!({}),
            json!({"command": []}),
            json!({"command": "a", "cmds": ["b"]}),
            json!({"command": {"a": 1}}),
            json!({"command": "a", "timeout": "soon"}),
            json!({"command": "a", "timeout": 0}),
            json!({"command": ["a", null]}),
            json!({"command": "a", "timeout": [1]}),
            json!({"comand": "a"}),
        ] {
            assert_eq!(command(bad.clone()).expect_err("no command").code, "invalid_input", "{bad}");
        }
    }

    #[test]
    fn maps_and_lists_are_words_as_their_json() {
        assert_eq!(run(json!({"command": ["jq", {"a": [1, "x"]}, []]})), ["jq", r#"{"a":[1,"x"]}"#, "[]"]);
        let command = command(json!({"command": "a", "env": {"A": {"b": 1}, "C": [1, 2]}})).expect("a command");
        let expected = [("A", r#"{"b":1}"#), ("C", "[1,2]")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(command.environment, expected);
    }

    #[test]
    fn variables_and_times_are_read() {
        let command = command(json!({"command": "a", "env": {"A": 1, "B": null}, "timeout_seconds": "1.5"}));
        let command = command.expect("a command");
        assert_eq!(command.environment, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(command.timeout_ms, Some(1500));
        assert_eq!(timeout(Some(json!("250ms"))), Ok(Some(250)));
    }

    #[test]
    fn an_end_is_shown_with_what_was_written() {
        let exited = Exited {
            code: Some(3),
            signal: None,
            output: b"a\xff".to_vec(),
            errors: Vec::new(),
            cut: false,
            timed_out: false,
        };
        let shown = output(&exited);
        assert_eq!((&shown["exit_code"], &shown["stdout"]), (&json!(3), &json!("a\u{fffd}")));
    }
}
