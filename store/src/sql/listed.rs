//! Parameters of a list, `$1`, `$2`, ..., counted anew in each statement.
//!
//! The numbers are those of the list, which belongs to the whole script. A server is asked about one statement at a time,
//! and cannot say what a `$1` is that the statement has no use for, so a statement is sent with the numbers 1 to as many as
//! it uses, and with those values alone. What the author called them is kept for whoever has to tell what is wrong.

use std::collections::HashMap;

use serde_json::Value;

use super::script::{Token, tokens};

/// A statement as it is sent.
#[derive(Debug, PartialEq)]
pub(super) struct Renumbered<'v> {
    pub(super) text: String,
    pub(super) values: Vec<&'v Value>,
    /// The number that each of the values has in the script.
    pub(super) places: Vec<usize>,
}

pub(super) fn renumbered<'v>(statement: &str, list: &'v [Value]) -> Result<Renumbered<'v>, String> {
    if has_its_own(statement) {
        return Ok(Renumbered { text: statement.to_owned(), values: Vec::new(), places: Vec::new() });
    }
    let mut out = Renumbered { text: String::with_capacity(statement.len()), values: Vec::new(), places: Vec::new() };
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for (token, text) in tokens(statement) {
        if token != Token::Parameter {
            out.text.push_str(text);
            continue;
        }
        let given = list.len();
        // Digits that are no number are more than any list has.
        let wanted = text[1..].parse().unwrap_or(usize::MAX);
        let value = wanted.checked_sub(1).and_then(|place| list.get(place));
        let value = value.ok_or_else(|| format!("uses {text}, and {given} parameters are given"))?;
        let number = *numbers.entry(wanted).or_insert_with(|| {
            out.values.push(value);
            out.places.push(wanted);
            out.values.len()
        });
        out.text.push_str(&format!("${number}"));
    }
    Ok(out)
}

/// Whether its `$1` is not of the list: `PREPARE`, and the body of a function in standard SQL, have parameters of their own,
/// and none of ours.
fn has_its_own(statement: &str) -> bool {
    let words = tokens(statement).filter(|(token, _)| *token == Token::Word).map(|(_, word)| word);
    let mut words = words.take(4).map(str::to_ascii_lowercase);
    match words.next().as_deref() {
        Some("prepare") => true,
        Some("create") => words.any(|word| matches!(word.as_str(), "function" | "procedure")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_statement_is_sent_with_the_values_it_uses_and_no_others() {
        let list = [json!("a"), json!("b"), json!("c")];
        for (statement, text, places) in [
            ("select $1, $2, $3", "select $1, $2, $3", vec![1, 2, 3]),
            ("select $3", "select $1", vec![3]),
            ("select $3, $2::int, $3", "select $1, $2::int, $1", vec![3, 2]),
            ("select '$3', $2 -- $1\n", "select '$3', $1 -- $1\n", vec![2]),
            ("select a$3", "select a$3", vec![]),
            ("prepare q as select $3", "prepare q as select $3", vec![]),
            (
                "create or replace function f(int) returns int begin atomic select $3; end",
                "create or replace function f(int) returns int begin atomic select $3; end",
                vec![],
            ),
            ("create table t as select $3", "create table t as select $1", vec![3]),
        ] {
            let values = places.iter().map(|place: &usize| &list[place - 1]).collect();
            let expected = Renumbered { text: text.to_owned(), values, places };
            assert_eq!(renumbered(statement, &list), Ok(expected), "{statement}");
        }
    }

    #[test]
    fn a_number_beyond_the_list_is_told_as_it_was_written() {
        for wrong in ["$4", "$0", "$99999999999999999999999"] {
            let refused = renumbered(&format!("select $1, {wrong}"), &[json!(1)]).expect_err("not given");
            assert_eq!(refused, format!("uses {wrong}, and 1 parameters are given"));
        }
    }
}
