//! Values of options that can be text, a file or stdin, as `curl` has it: `TEXT`, `@FILE`, `-`.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::failure::{self, Failure, Outcome};

/// Text as it is, a file's content, or stdin.
pub fn read(given: &str) -> Outcome<Vec<u8>> {
    match given.strip_prefix('@') {
        Some(file) => std::fs::read(file).map_err(failure::io("read", Path::new(file))),
        None if given == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes).map_err(failure::io("read", Path::new("stdin")))?;
            Ok(bytes)
        }
        None => Ok(given.as_bytes().to_vec()),
    }
}

/// The same, as JSON; `option` is named when it is not.
pub fn json(option: &str, given: &str) -> Outcome<Value> {
    serde_json::from_slice(&read(given)?).map_err(|error| {
        Failure::usage(format!("{option} is not JSON: {error}"))
            .next(format!("write for example {option} '{{\"name\": \"Ada\"}}', or {option} @FILE"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_value_can_be_text_or_a_file() {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), b"\x00\x01").expect("write");
        assert_eq!(read("text").expect("text"), b"text");
        assert_eq!(read(&format!("@{}", file.path().display())).expect("file"), b"\x00\x01");
        assert_eq!(read("@/no/such/file").expect_err("missing").exit, Exit::NotFound);
    }

    #[test]
    fn what_is_not_json_is_told_with_the_option() {
        assert_eq!(json("--value", "[1]").expect("JSON"), serde_json::json!([1]));
        let failure = json("--value", "{a: 1}").expect_err("not JSON");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.starts_with("--value is not JSON"), "{failure}");
    }
}
