//! Where the SQL of `script` comes from: the step itself, or the operator's folder.
//!
//! Not from a server: a tool that imports the HTTP client could not be used where an operator denies that, and a database
//! needs no other way out than its own.

use noetl_sdk::{Failure, files};
use serde_json::{Map, Value};

/// A place that has a script, or the script.
#[derive(Debug, PartialEq)]
pub enum Source {
    Text(String),
    /// Below the folder the operator names.
    File(String),
}

impl Source {
    /// What `script` says: a map with `uri` and `source`, a path that ends in `.sql`, or SQL.
    pub fn read(script: &Value) -> Result<Self, Failure> {
        match script {
            Value::String(text) if is_path(text) => Ok(Self::File(text.trim().to_owned())),
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Object(script) => Self::of_map(script),
            other => Err(wrong(format_args!("`script` is a map with `uri` and `source`, or text, and not `{other}`"))),
        }
    }

    fn of_map(script: &Map<String, Value>) -> Result<Self, Failure> {
        let none = Map::new();
        let source = match script.get("source") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(source)) => source,
            Some(_) => return Err(wrong("`script.source` is a map")),
        };
        let text = |map: &Map<String, Value>, name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let uri = text(script, "uri").filter(|uri| !uri.trim().is_empty());
        let inline = text(source, "code").or_else(|| text(script, "code"));
        let usual = if inline.is_some() { "inline" } else { "file" };
        match text(source, "type").as_deref().unwrap_or(usual) {
            "inline" => inline.map(Self::Text).ok_or_else(|| wrong("`script.source.code` is missing: the SQL to run")),
            "file" => uri.map(Self::File).ok_or_else(|| wrong("`script.uri` is missing: where the text is")),
            other => Err(wrong(format_args!(
                "`script.source.type` is `{other}`; a script of SQL comes from `inline` or `file`"
            ))),
        }
    }

    /// The script itself.
    pub fn text(self) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text),
            Self::File(path) => decoded(files::read(&path)?, &path),
        }
    }
}

/// One word that names a file of SQL.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    !text.contains(char::is_whitespace) && text.to_ascii_lowercase().ends_with(".sql")
}

fn decoded(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    let text = String::from_utf8(bytes);
    let text = text.map_err(|error| wrong(format_args!("the script {name} is not UTF-8: {error}")))?;
    // The mark that some editors put in front.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

fn wrong(message: impl std::fmt::Display) -> Failure {
    Failure::invalid_input(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_script_is_named_in_all_its_forms() {
        let file = |path: &str| Ok(Source::File(path.to_owned()));
        let inline = |text: &str| Ok(Source::Text(text.to_owned()));
        for (script, expected) in [
            (json!("./sql/make.sql"), file("./sql/make.sql")),
            (json!("SELECT 1"), inline("SELECT 1")),
            (json!("SELECT 'a.sql'\n-- x.sql"), inline("SELECT 'a.sql'\n-- x.sql")),
            (json!({"uri": "make.sql", "source": {"type": "file"}}), file("make.sql")),
            (json!({"uri": "make.sql"}), file("make.sql")),
            (json!({"uri": "x", "source": {"type": "inline", "code": "SELECT 2"}}), inline("SELECT 2")),
        ] {
            assert_eq!(Source::read(&script), expected, "{script}");
        }
        for bad in [
            json!(7),
            json!({}),
            json!({"uri": "x", "source": {"type": "s3"}}),
            json!({"uri": "x", "source": 1}),
            json!({"source": {"type": "inline"}}),
        ] {
            assert_eq!(Source::read(&bad).expect_err("no source").code, "invalid_input", "{bad}");
        }
    }

    #[test]
    fn a_file_is_text() {
        assert_eq!(decoded("\u{feff}SELECT 1".as_bytes().to_vec(), "x"), Ok("SELECT 1".to_owned()));
        assert!(decoded(vec![0xff], "x").is_err());
    }
}
