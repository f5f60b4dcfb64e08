//! Fields of a credential from the command line: files, stdin, variables, and a question on a terminal.
//!
//! What stands on a command line is seen by every process of the machine and kept by the shell. So a secret that stands there
//! as it is, is refused, also one that is inside of an address.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::str::FromStr;

use noetl_store::wallet::Credential;
use noetl_store::wallet::kinds::{Kind, Needed};
use reqwest::Url;
use serde_json::{Map, Value};

use crate::args::Context;
use crate::failure::{self, Failure, Outcome};

/// `NAME=VALUE` as it was typed.
#[derive(Debug, Clone)]
pub struct Given {
    name: String,
    from: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Stdin,
    File(String),
    Variable(String),
    Text(String),
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err("write NAME=@FILE, NAME=@- or NAME=env:VARIABLE".to_owned());
        };
        let from = match (value, value.strip_prefix('@'), value.strip_prefix("env:")) {
            ("@-", ..) => Source::Stdin,
            (_, Some(file), _) => Source::File(file.to_owned()),
            (_, _, Some(variable)) => Source::Variable(variable.to_owned()),
            _ => Source::Text(value.to_owned()),
        };
        Ok(Self { name: name.to_owned(), from })
    }
}

/// How the secrets of a kind are given.
pub fn how(kind: &Kind) -> String {
    let name = kind.secrets().next().map_or("token", |field| field.name);
    how_one(name)
}

/// Reads the fields, under the names of the kind.
pub fn take(kind: &Kind, given: &[Given], data: &mut Map<String, Value>) -> Outcome {
    let mut stdin_is_read = false;
    for Given { name, from } in given {
        let Some(field) = kind.field(name) else {
            let known: Vec<_> = kind.fields.iter().map(|field| field.name).collect();
            return Err(Failure::usage(format!("`{name}` is not a field of `{}`", kind.name))
                .next(format!("it has {}", known.join(", "))));
        };
        let value = match from {
            Source::Text(text) => {
                if !Credential::is_public(field.name) || has_secret(text) {
                    let message = format!("`{name}` has a secret in it, and a command line can be read by others");
                    return Err(Failure::usage(message).next(how_one(name)));
                }
                text.clone()
            }
            Source::Stdin if std::mem::replace(&mut stdin_is_read, true) => {
                return Err(Failure::usage("stdin can be only one field").next("give the others as files or variables"));
            }
            Source::Stdin => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(failure::io("read", Path::new("stdin")))?;
                without_line_end(text)
            }
            Source::File(file) => {
                without_line_end(std::fs::read_to_string(file).map_err(failure::io("read", Path::new(file)))?)
            }
            Source::Variable(variable) => std::env::var(variable).map_err(|_| {
                Failure::usage(format!("the variable `{variable}` for `{name}` is not set, or not text"))
            })?,
        };
        data.insert(field.name.to_owned(), Value::String(value));
    }
    Ok(())
}

fn how_one(name: &str) -> String {
    format!("use --field {name}=@FILE, --field {name}=@- (stdin) or --field {name}=env:VARIABLE")
}

/// A password, a token of NATS, or a query of an address where tokens are fetched.
fn has_secret(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        let more = match url.scheme() {
            "nats" | "tls" => !url.username().is_empty(),
            "http" | "https" => url.query().is_some(),
            _ => false,
        };
        more || url.password().is_some()
    })
}

fn without_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// Asks for what is missing, where somebody is there to be asked. What stays missing the server names.
pub fn ask(kind: &Kind, data: &mut Map<String, Value>, context: &Context) -> Outcome {
    let is_there = |name: &str, data: &Map<String, Value>| {
        data.keys().any(|given| kind.field(given).is_some_and(|field| field.name == name))
    };
    // An address has the rest in it.
    if !context.output.is_interactive() || (kind.name == "postgres" && is_there("url", data)) {
        return Ok(());
    }
    for field in kind.fields {
        let wanted = field.needed == Needed::Yes || field.name == "password" && kind.name != "nats";
        if !wanted || is_there(field.name, data) {
            continue;
        }
        let question = format!("{} ({}): ", field.name, field.help);
        let failed = |error| Failure::failed(format!("read `{}` from the terminal: {error}", field.name));
        let value = if Credential::is_public(field.name) {
            line(&question).map_err(failed)?
        } else {
            rpassword::prompt_password(&question).map_err(failed)?
        };
        data.insert(field.name.to_owned(), Value::String(value));
    }
    Ok(())
}

fn line(question: &str) -> std::io::Result<String> {
    write!(std::io::stderr(), "{question}")?;
    std::io::stderr().flush()?;
    let mut text = String::new();
    std::io::stdin().read_line(&mut text)?;
    Ok(without_line_end(text))
}

#[cfg(test)]
mod tests {
    use noetl_store::wallet::kinds::kind;

    use super::*;
    use crate::failure::Exit;

    fn taken(kind_name: &str, given: &[&str]) -> Outcome<Map<String, Value>> {
        let given: Vec<Given> = given.iter().map(|text| text.parse().expect("NAME=VALUE")).collect();
        let mut data = Map::new();
        take(kind(kind_name).expect("a kind"), &given, &mut data)?;
        Ok(data)
    }

    #[test]
    fn a_secret_on_the_command_line_is_refused_and_not_repeated() {
        for (kind, field) in [
            ("bearer", "token=hunter2"),
            ("postgres", "db_password=hunter2"),
            ("postgres", "url=postgres://u:hunter2@h/d"),
            ("nats", "url=nats://u:hunter2@h"),
            ("nats", "url=tls://hunter2@h"),
            ("oauth2", "token_url=https://h/token?code=hunter2"),
        ] {
            let refused = taken(kind, &[field]).expect_err(field);
            assert_eq!(refused.exit, Exit::Usage);
            let text = format!("{refused} {:?}", refused.next);
            assert!(text.contains("=@FILE") && !text.contains("hunter2"), "{text}");
        }
        let data = taken("postgres", &["db_host=h", "user=app"]).expect("no secrets");
        assert_eq!((&data["host"], &data["user"]), (&Value::from("h"), &Value::from("app")));
    }

    #[test]
    fn a_value_comes_from_a_file_or_a_variable_without_its_line_end() {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), "s3cret\r\n").expect("write");
        let data = taken("bearer", &[&format!("access_token=@{}", file.path().display())]).expect("read");
        assert_eq!(data["token"], "s3cret");
        assert_eq!(taken("bearer", &["token=@/no/such/file"]).expect_err("missing").exit, Exit::NotFound);
        assert!(
            taken("bearer", &["token=env:NOETL_TEST_NO_SUCH_VARIABLE"])
                .expect_err("unset")
                .message
                .contains("is not set")
        );
        assert!(taken("bearer", &["tokn=@x"]).expect_err("unknown").message.contains("not a field"));
        assert!("token".parse::<Given>().is_err() && "=x".parse::<Given>().is_err());
    }
}
