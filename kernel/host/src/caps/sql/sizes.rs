//! How large a script may be, and what it takes to read it: judged by its bytes, before anything is made of them.
//!
//! What is read of a request is many times as large as the request: a value of JSON takes 72 bytes however short its text
//! is. So the bytes are looked at once, what they come to is estimated from above, and that much memory is waited for
//! in turn by tenant. A usual script takes so little that it does not wait at all.

use crate::bindings::noetl::sql::sql as wit;

/// What SQLite takes; a script is no place for data.
const LONGEST_LOCAL_SCRIPT: usize = 1 << 20;
const LONGEST_SCRIPT: usize = 16 << 20;
const LONGEST_PARAMETERS: usize = 32 << 20;
/// The most that one script may come to in memory.
const HEAVIEST: u64 = 192 << 20;
/// A script is there as it came, with its parameters numbered, in statements and as it is sent.
const COPIES: u64 = 4;
/// A value, which is moved to another place as its list grows; what its name takes besides; and an object with few of them.
const VALUE: u64 = 144;
const NAME: u64 = 112;
const OBJECT: u64 = 512;

/// What the request takes in memory, or what is wrong with it.
pub(super) fn weight(request: &wit::Request) -> Result<u64, String> {
    let longest = match &request.database {
        wit::Database::Credential(_) => LONGEST_SCRIPT,
        wit::Database::File(_) | wit::Database::Memory => LONGEST_LOCAL_SCRIPT,
    };
    let (script, parameters) = (request.script.as_str(), request.parameters.as_deref().unwrap_or_default());
    if script.len() > longest {
        return Err(too_long("the script", script.len(), longest, "make it several, and give data as parameters"));
    }
    if parameters.len() > LONGEST_PARAMETERS {
        return Err(too_long(
            "the list of parameters",
            parameters.len(),
            LONGEST_PARAMETERS,
            "send fewer rows at once",
        ));
    }
    let weight = (script.len() as u64 + parameters.len() as u64) * COPIES + of_values(parameters);
    if weight > HEAVIEST {
        return Err("there are too many values among the parameters: send fewer rows at once".to_owned());
    }
    Ok(weight)
}

fn too_long(what: &str, is: usize, most: usize, instead: &str) -> String {
    format!("{what} has {is} bytes, and the most is {most}: {instead}")
}

/// An estimate from above for JSON; what is none is refused soon after.
fn of_values(json: &str) -> u64 {
    let (mut weight, mut quoted, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' if !quoted => weight += VALUE,
            b':' if !quoted => weight += NAME,
            b'{' if !quoted => weight += OBJECT,
            _ => {}
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(database: wit::Database, script: String, parameters: Option<String>) -> wit::Request {
        wit::Request {
            database,
            script,
            parameters,
            schema: None,
            transaction: true,
            objects: true,
            timeout_ms: None,
            inline_bytes: None,
        }
    }

    #[test]
    fn what_is_too_large_is_told_by_its_length() {
        let named = || wit::Database::Credential("db".to_owned());
        let of = |database, script: usize, parameters: Option<String>| {
            weight(&request(database, " ".repeat(script), parameters))
        };
        assert!(of(wit::Database::Memory, 1 << 20, None).is_ok());
        assert!(of(wit::Database::Memory, (1 << 20) + 1, None).is_err_and(|text| text.contains("1048576")));
        assert!(of(wit::Database::File("f".to_owned()), 2 << 20, None).is_err());
        assert!(of(named(), 16 << 20, None).is_ok() && of(named(), (16 << 20) + 1, None).is_err());
        assert!(of(named(), 1, Some(" ".repeat((32 << 20) + 1))).is_err());
        // Data is data, whatever is in it.
        let text = serde_json::to_string(&[r#"{"a":[1,2,"\""]},"#.repeat(300_000)]).expect("JSON");
        assert!(of(named(), 1, Some(text)).is_ok());
        assert!(of(named(), 1, Some(format!("[{}0]", "0,".repeat(2 << 20)))).is_err());
    }

    #[test]
    fn values_weigh_what_they_take() {
        let list = format!("[{}0]", "0,".repeat(1_000));
        assert!(of_values(&list) >= 1_000 * std::mem::size_of::<serde_json::Value>() as u64);
        assert_eq!(of_values(r#"["a,[{\",", {"a:": 0}]"#), 2 * VALUE + OBJECT + NAME);
    }
}
