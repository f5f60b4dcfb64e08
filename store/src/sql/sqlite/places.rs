//! The values of a statement's places.
//!
//! A `?` is the next value of the list, counted through the whole script, since that is how its author has put the list
//! together. `?3`, and `$3` as other databases write it, is the third value in every statement. A list that a script of `?`
//! alone does not use up was put together for another script, and running this one would put values where they do not
//! belong: it is refused before anything is done.

use rusqlite::Statement;
use rusqlite::types::Value as Stored;
use serde_json::Value;

use super::super::script::{Token, tokens};
use super::super::{Parameters, SqlError};
use super::wrong;

/// Refuses a list that is longer than the places of a script that counts them.
pub(super) fn check(script: &str, parameters: &Parameters) -> Result<(), SqlError> {
    let Parameters::Positional(list) = parameters else { return Ok(()) };
    let (mut places, mut numbered) = (0_usize, false);
    let mut pieces = tokens(script).peekable();
    while let Some((token, text)) = pieces.next() {
        match (token, text) {
            (Token::Other, "?") => match pieces.peek() {
                Some((Token::Word, next)) if next.starts_with(|first: char| first.is_ascii_digit()) => numbered = true,
                _ => places += 1,
            },
            (Token::Parameter, _) => numbered = true,
            _ => {}
        }
    }
    if places == 0 || numbered || list.len() <= places {
        return Ok(());
    }
    let given = list.len();
    Err(SqlError::Invalid(format!("the script has {places} places for values (`?`), and {given} parameters are given")))
}

/// Binds the values of one statement; `taken` of the list belong to the statements before it. Answers with how many of them
/// it took by counting.
pub(super) fn bind(
    statement: &mut Statement<'_>,
    parameters: &Parameters,
    number: u32,
    taken: usize,
) -> Result<usize, SqlError> {
    let names: Vec<Option<String>> =
        (1..=statement.parameter_count()).map(|place| statement.parameter_name(place).map(str::to_owned)).collect();
    // Places that are left out between numbers have no name either, so a statement with numbers counts for itself.
    let counts = !names.iter().flatten().any(|name| name.starts_with('?'));
    let mut counted = 0;
    for (index, name) in names.into_iter().enumerate() {
        let value = match (parameters, &name) {
            (Parameters::Named(fields), Some(name)) if !name.starts_with('?') => fields.get(&name[1..]),
            (Parameters::Positional(list), None) if counts => {
                counted += 1;
                list.get(taken + counted - 1)
            }
            (Parameters::Positional(list), None) => list.get(index),
            (Parameters::Positional(list), Some(name)) => {
                name[1..].parse::<usize>().ok().and_then(|wanted| list.get(wanted.checked_sub(1)?))
            }
            _ => None,
        };
        let value = value.ok_or_else(|| {
            let name = name.unwrap_or_else(|| format!("?{}", taken + index + 1));
            SqlError::Invalid(format!("statement {number}: the parameter `{name}` is used and not given"))
        })?;
        statement.raw_bind_parameter(index + 1, stored(value)).map_err(|error| wrong(error, number))?;
    }
    Ok(counted)
}

fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Bool(flag) => Stored::Integer(i64::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Stored::Integer(whole),
            (None, Some(float)) if number.is_f64() => Stored::Real(float),
            // A whole number beyond what the database holds keeps its digits.
            _ => Stored::Text(number.to_string()),
        },
        Value::String(text) => Stored::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Stored::Text(value.to_string()),
    }
}
