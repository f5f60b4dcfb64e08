//! Where the SQL of `script` comes from: the step itself, the operator's folder, or a server.

use std::time::Duration;

use noetl_sdk::{Failure, files, http};
use serde_json::{Map, Value};

/// A script is read whole.
const LONGEST: u64 = 8 << 20;

/// A place that has a script, or the script.
#[derive(Debug, PartialEq)]
pub enum Source {
    Text(String),
    /// Below the folder the operator names.
    File(String),
    Server {
        method: String,
        url: String,
        headers: Vec<(String, String)>,
        timeout: Option<Duration>,
    },
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
        let missing = || wrong("`script.uri` is missing: where the text is");
        match text(source, "type").as_deref().unwrap_or(usual) {
            "inline" => inline.map(Self::Text).ok_or_else(|| wrong("`script.source.code` is missing: the SQL to run")),
            "file" => uri.map(Self::File).ok_or_else(missing),
            "http" => {
                let url = joined(text(source, "endpoint"), uri).ok_or_else(missing)?;
                let headers = source.get("headers").and_then(Value::as_object).into_iter().flatten();
                let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let seconds = source.get("timeout").and_then(Value::as_f64);
                Ok(Self::Server {
                    method: text(source, "method").unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase(),
                    url,
                    headers: headers.map(|(name, value)| (name.clone(), word(value))).collect(),
                    timeout: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                })
            }
            other => Err(wrong(format_args!(
                "`script.source.type` is `{other}`; a script comes from `inline`, `file` or `http`"
            ))),
        }
    }

    /// The script itself.
    pub fn text(self) -> Result<String, Failure> {
        match self {
            Self::Text(text) => Ok(text),
            Self::File(path) => decoded(files::read(&path)?, &path),
            Self::Server { method, url, headers, timeout } => {
                let mut request = http::Request::new(method, url.as_str()).headers(headers);
                if let Some(timeout) = timeout {
                    request = request.timeout(timeout);
                }
                let answer = request.send()?;
                if answer.status != 200 {
                    // A redirect would lead to another place than the one that was named.
                    let message = format!("{url} answered with status {}", answer.status);
                    let retryable = answer.status >= 500;
                    return Err(Failure { retryable, ..Failure::new("script_unavailable", message) });
                }
                if answer.body.size() > LONGEST {
                    return Err(Failure::new("too_large", format_args!("the script at {url} has more than 8 MiB")));
                }
                decoded(answer.bytes()?, &url)
            }
        }
    }
}

/// One word that names a file of SQL.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    !text.contains(char::is_whitespace) && text.to_ascii_lowercase().ends_with(".sql")
}

/// The address by itself, or beside what `endpoint` names.
fn joined(endpoint: Option<String>, uri: Option<String>) -> Option<String> {
    let (Some(endpoint), Some(uri)) = (&endpoint, &uri) else { return endpoint.or(uri) };
    if uri.contains("://") {
        return Some(uri.clone());
    }
    let host = endpoint.find("://").map_or(0, |scheme| scheme + 3);
    let end = match uri.strip_prefix('/') {
        Some(_) => endpoint[host..].find('/'),
        None => endpoint[host..].rfind('/'),
    };
    let base = &endpoint[..end.map_or(endpoint.len(), |end| host + end)];
    Some(format!("{base}/{}", uri.trim_start_matches('/')))
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
        let served =
            Source::read(&json!({"uri": "b.sql", "source": {"type": "http", "endpoint": "https://h/x/a.sql"}}));
        assert!(
            matches!(served, Ok(Source::Server { url, method, .. }) if url == "https://h/x/b.sql" && method == "GET")
        );
        for bad in
            [json!(7), json!({}), json!({"uri": "x", "source": {"type": "s3"}}), json!({"uri": "x", "source": 1})]
        {
            assert_eq!(Source::read(&bad).expect_err("no source").code, "invalid_input", "{bad}");
        }
    }

    #[test]
    fn addresses_are_put_together() {
        let join = |endpoint: &str, uri: &str| joined(Some(endpoint.to_owned()), Some(uri.to_owned()));
        assert_eq!(join("https://h", "b.sql").as_deref(), Some("https://h/b.sql"));
        assert_eq!(join("https://h/x/", "b.sql").as_deref(), Some("https://h/x/b.sql"));
        assert_eq!(join("https://h/x/y", "/b.sql").as_deref(), Some("https://h/b.sql"));
        assert_eq!(join("https://h/x", "https://i/b.sql").as_deref(), Some("https://i/b.sql"));
    }
}
