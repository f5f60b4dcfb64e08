//! What a step says: from where, to where, and how.
//!
//! The options of both ends are those of the tools that are made for them, so that what is known there holds here: `auth`
//! names a credential, times are written the same way, and an option that nobody knows is passed over and named in the log.

use noetl_sdk::{Failure, options};
use serde_json::{Map, Value};

use crate::source::Source;
use crate::target::Target;

/// Who passes over an option.
pub const TOOL: &str = "transfer";

const KNOWN: [&str; 4] = ["source", "target", "mode", "chunk_size"];
/// The names a type is given by, one after the other.
const TYPE: [&str; 3] = ["type", "tool", "kind"];

/// Rows of one statement if nobody says how many.
const USUAL_CHUNK: usize = 1000;

pub struct Step {
    pub source: Source,
    pub target: Target,
}

/// What becomes of the rows that are in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They stay.
    Append,
    /// They go, in the transaction that brings the new ones.
    Replace,
    /// Those with the key of a new one become it.
    Upsert,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Upsert => "upsert",
        }
    }

    fn read(given: Option<Value>) -> Result<Self, Failure> {
        let word = match given {
            None | Some(Value::Null) => return Ok(Self::Append),
            Some(Value::String(word)) => word,
            Some(other) => other.to_string(),
        };
        match word.trim().to_ascii_lowercase().as_str() {
            "" | "append" => Ok(Self::Append),
            "replace" => Ok(Self::Replace),
            "upsert" => Ok(Self::Upsert),
            _ => Err(Failure::invalid_input(format_args!("`mode` is `{word}`; write append, replace or upsert"))),
        }
    }
}

impl Step {
    pub fn read(arguments: &str) -> Result<Self, Failure> {
        let mut given: Map<String, Value> = serde_json::from_str(arguments)?;
        options::keep_known(TOOL, &mut given, &KNOWN);
        let (source, from) = end("source", given.remove("source"))?;
        let (target, to) = end("target", given.remove("target"))?;
        let mode = Mode::read(given.remove("mode"))?;
        let chunk_size = chunk_size(given.remove("chunk_size"))?;
        Ok(Self { source: Source::read(&from, source)?, target: Target::read(&to, target, mode, chunk_size)? })
    }
}

/// One end: its options, and of which type it is.
fn end(name: &str, given: Option<Value>) -> Result<(Map<String, Value>, String), Failure> {
    let given = match given {
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other.unwrap_or(Value::Null),
    };
    let Value::Object(mut fields) = given else {
        return Err(Failure::invalid_input(format_args!("`{name}` is a map with `type` and what that needs")));
    };
    let kinds: Vec<Value> = TYPE.into_iter().filter_map(|word| fields.remove(word)).collect();
    match kinds.iter().find_map(|kind| kind.as_str().map(|kind| kind.trim().to_ascii_lowercase())) {
        Some(kind) if !kind.is_empty() => Ok((fields, kind)),
        _ => Err(Failure::invalid_input(format_args!("`{name}.type` is missing: `http`, `postgres` or `sqlite`"))),
    }
}

fn chunk_size(given: Option<Value>) -> Result<usize, Failure> {
    let number = match &given {
        None | Some(Value::Null) => return Ok(USUAL_CHUNK),
        Some(Value::String(text)) => text.trim().parse::<u64>().ok(),
        Some(other) => other.as_u64(),
    };
    number.filter(|number| *number > 0).and_then(|number| usize::try_from(number).ok()).ok_or_else(|| {
        Failure::invalid_input(
            "`chunk_size` is how many rows go into one statement: a whole number greater than nothing",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failure(options: Value) -> Failure {
        match Step::read(&options.to_string()) {
            Ok(_) => panic!("taken: {options}"),
            Err(failure) => failure,
        }
    }

    #[test]
    fn the_ends_are_told_by_any_of_three_words() {
        let target = json!({"type": "postgres", "auth": "pg", "table": "t"});
        for (word, kind, name) in
            [("type", "HTTP", "http"), ("tool", "http", "http"), ("kind", "postgresql", "postgres")]
        {
            let source = json!({word: kind, "url": "http://a/"});
            let source = if name == "http" { source } else { json!({word: kind, "auth": "pg", "query": "q"}) };
            let step = Step::read(&json!({"source": source, "target": target, "mod": 1}).to_string());
            assert_eq!(step.map(|step| step.source.kind()), Ok(name), "{word}");
        }
    }

    #[test]
    fn what_cannot_be_done_says_what_can() {
        let (http, postgres) = (json!({"type": "http", "url": "http://a/"}), json!({"type": "postgres", "auth": "pg"}));
        let source = failure(json!({"source": {"type": "snowflake"}, "target": postgres}));
        assert_eq!(source.code, "unsupported_source");
        assert!(source.message.contains("`snowflake`") && source.message.contains("`sqlite`"), "{source}");
        let target = failure(json!({"source": http, "target": {"type": "http"}}));
        assert_eq!(target.code, "unsupported_target");
        for wrong in [
            json!({}),
            json!({"source": http}),
            json!({"source": {"url": "http://a/"}, "target": postgres}),
            json!({"source": http, "target": postgres}),
            json!({"source": http, "target": {"type": "postgres", "table": "t"}}),
            json!({"source": http, "target": {"type": "sqlite", "table": "t"}}),
            json!({"source": http, "target": {"type": "postgres", "auth": "pg", "table": "t"}, "mode": "guess"}),
            json!({"source": http, "target": {"type": "postgres", "auth": "pg", "table": "t"}, "mode": "upsert"}),
            json!({"source": http, "target": {"type": "postgres", "auth": "pg", "query": "q"}, "mode": "replace"}),
            json!({"source": http, "target": {"type": "postgres", "auth": "pg", "table": "t"}, "chunk_size": 0}),
            json!({"source": http, "target": {"type": "postgres", "auth": "pg", "table": "t", "mapping": {"a": 1}}}),
            json!({"source": http, "target": {"type": "postgres", "host": "h", "auth": "pg", "table": "t"}}),
        ] {
            assert_eq!(failure(wrong.clone()).code, "invalid_input", "{wrong}");
        }
    }
}
