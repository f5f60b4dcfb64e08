//! The values of a statement's places.
//!
//! A `?` is the next value of the list, counted through the whole script, since that is how its author has put the list
//! together. `?3`, and `$3` as other databases write it, is the third value in every statement. A list that goes beyond the
//! last of them is refused, as [`placed`] says.

use rusqlite::Statement;
use rusqlite::types::Value as Stored;
use serde_json::Value;

use super::super::script::{Token, tokens};
use super::super::{Parameters, SqlError, placed};
use super::wrong;

/// Refuses a list that is longer than the places of its script. Where some are counted and some have numbers, what a count
/// comes to is the library's to say, and nothing is refused.
pub(super) fn check(script: &str, parameters: &Parameters) -> Result<(), SqlError> {
    let Parameters::Positional(list) = parameters else { return Ok(()) };
    let (mut counted, mut highest) = (0_usize, 0_usize);
    let mut pieces = tokens(script).peekable();
    while let Some((token, text)) = pieces.next() {
        let number = match token {
            Token::Parameter => Some(&text[1..]),
            Token::Colon | Token::Other if matches!(text, "?" | ":" | "@") => pieces
                .peek()
                .filter(|(next, digits)| {
                    *next == Token::Word && digits.starts_with(|first: char| first.is_ascii_digit())
                })
                .map(|(_, digits)| *digits),
            _ => None,
        };
        match number {
            // Digits that are no number are more than any list has, which is told where the value is looked for.
            Some(digits) => highest = highest.max(digits.parse().unwrap_or(usize::MAX)),
            None if text == "?" => counted += 1,
            None => {}
        }
    }
    if counted > 0 && highest > 0 {
        return Ok(());
    }
    placed::check(counted.max(highest), list.len()).map_err(SqlError::Invalid)
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
