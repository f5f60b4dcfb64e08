//! Methods of Python that templates call on values: `name.strip()`, `row.get('id', 0)`.
//!
//! Templates of playbooks grew up where values were Python's. What changes a value in its place (`append`, `update`) is not
//! here, because a template cannot change what it is given. Results are bounded like those of filters, which do the work.

use minijinja::value::{Rest, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::filters;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(call);
}

fn call(_: &mut State, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => of_text(value, name, arguments),
        ValueKind::Map => of_map(value, name, arguments),
        ValueKind::Seq | ValueKind::Iterable => of_list(value, name, arguments),
        // What is missing has nothing in it.
        ValueKind::Undefined | ValueKind::None if name == "get" => {
            let (_, other): (Value, Option<Value>) = from_args(arguments)?;
            Ok(other.unwrap_or(Value::UNDEFINED))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn of_map(value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    match name {
        "get" => {
            let (key, other): (Value, Option<Value>) = from_args(arguments)?;
            Ok(filters::get(value.clone(), key, Some(other.unwrap_or(Value::from(())))))
        }
        "keys" => none(arguments).and_then(|()| filters::keys(value.clone()).map(Value::from)),
        "values" => none(arguments).and_then(|()| filters::values(value.clone()).map(Value::from)),
        "items" => none(arguments).and_then(|()| filters::pairs(value.clone()).map(Value::from)),
        "copy" => none(arguments).map(|()| value.clone()),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn of_list(value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    match name {
        "copy" => none(arguments).map(|()| value.clone()),
        "count" => {
            let (wanted,): (Value,) = from_args(arguments)?;
            Ok(Value::from(value.try_iter()?.filter(|item| *item == wanted).count()))
        }
        "index" => {
            let (wanted,): (Value,) = from_args(arguments)?;
            let place = value.try_iter()?.position(|item| item == wanted);
            place.map(Value::from).ok_or_else(|| filters::failed(format!("{wanted} is not in the list")))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn of_text(value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let text = value.as_str().unwrap_or_default();
    let plain = |changed: String| none(arguments).map(|()| Value::from(changed));
    let all = |is: fn(char) -> bool| none(arguments).map(|()| Value::from(!text.is_empty() && text.chars().all(is)));
    match name {
        "upper" => plain(text.to_uppercase()),
        "lower" | "casefold" => plain(text.to_lowercase()),
        "capitalize" => plain(capitalized(text)),
        "title" => plain(text.split_inclusive(|letter: char| !letter.is_alphabetic()).map(capitalized).collect()),
        "strip" => cut(text, arguments, true, true),
        "lstrip" => cut(text, arguments, true, false),
        "rstrip" => cut(text, arguments, false, true),
        "split" => {
            let (separator, times): (Option<Value>, Option<i64>) = from_args(arguments)?;
            let times = times.and_then(|times| usize::try_from(times).ok());
            filters::split(value.clone(), separator, times).map(Value::from)
        }
        "splitlines" => none(arguments).map(|()| Value::from(text.lines().map(Value::from).collect::<Vec<_>>())),
        "join" => {
            let (items,): (Value,) = from_args(arguments)?;
            filters::joined(&items, text, None).map(Value::from)
        }
        "replace" => {
            let (from, to, times): (Value, Value, Option<usize>) = from_args(arguments)?;
            filters::replaced(value, &from, &to, times).map(Value::from)
        }
        "startswith" => with_any(arguments, |part| text.starts_with(part)),
        "endswith" => with_any(arguments, |part| text.ends_with(part)),
        "find" => {
            let (part,): (String,) = from_args(arguments)?;
            let place = text.find(&part).map(|at| text[..at].chars().count());
            Ok(place.map_or(Value::from(-1), Value::from))
        }
        "count" => {
            let (part,): (String,) = from_args(arguments)?;
            Ok(Value::from(if part.is_empty() { text.chars().count() + 1 } else { text.matches(&part).count() }))
        }
        "removeprefix" => {
            let (part,): (String,) = from_args(arguments)?;
            Ok(Value::from(text.strip_prefix(&part).unwrap_or(text)))
        }
        "removesuffix" => {
            let (part,): (String,) = from_args(arguments)?;
            Ok(Value::from(text.strip_suffix(&part).unwrap_or(text)))
        }
        "zfill" => {
            let (width,): (usize,) = from_args(arguments)?;
            filters::few(width)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            let wanted = width.saturating_sub(sign.len());
            Ok(Value::from(format!("{sign}{digits:0>wanted$}")))
        }
        "isdigit" | "isnumeric" | "isdecimal" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(char::is_whitespace),
        "format" => {
            let (given,): (Rest<Value>,) = from_args(arguments)?;
            formatted(text, &given)
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn none(arguments: &[Value]) -> Result<(), Error> {
    from_args(arguments)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters.as_str().to_lowercase().chars()).collect())
}

fn cut(text: &str, arguments: &[Value], start: bool, end: bool) -> Result<Value, Error> {
    let (letters,): (Option<String>,) = from_args(arguments)?;
    let goes = |letter: char| match &letters {
        Some(letters) => letters.contains(letter),
        None => letter.is_whitespace(),
    };
    let text = if start { text.trim_start_matches(goes) } else { text };
    Ok(Value::from(if end { text.trim_end_matches(goes) } else { text }))
}

/// One text, or a list of them of which one will do.
fn with_any(arguments: &[Value], holds: impl Fn(&str) -> bool) -> Result<Value, Error> {
    let (parts,): (Value,) = from_args(arguments)?;
    if let Some(part) = parts.as_str() {
        return Ok(Value::from(holds(part)));
    }
    Ok(Value::from(parts.try_iter()?.any(|part| part.as_str().is_some_and(&holds))))
}

/// `{}` and `{0}`. How a value is to look is for `%` and the filter `format`.
fn formatted(text: &str, given: &[Value]) -> Result<Value, Error> {
    let mut out = String::new();
    let (mut rest, mut next) = (text, 0);
    while let Some((before, after)) = rest.split_once('{') {
        let wrong = || filters::failed("`format` takes `{}` and `{0}`; for more use the filter `format`");
        let (name, after) = after.split_once('}').ok_or_else(wrong)?;
        let place = match name.trim() {
            "" => next,
            number => number.parse::<usize>().map_err(|_| wrong())?,
        };
        next += usize::from(name.trim().is_empty());
        let value =
            given.get(place).ok_or_else(|| filters::failed(format!("`format` has no value for place {place}")))?;
        out.push_str(before);
        out.push_str(&filters::text(value)?);
        filters::bound(out.len())?;
        rest = after;
    }
    out.push_str(rest);
    Ok(Value::from(out))
}
