//! Filters of playbooks, where they differ from the engine's.
//!
//! They forgive what playbooks have always been forgiven: undefined and `none` are an empty text, an empty list, a
//! zero. Those whose result can be much larger than their arguments are bounded by [`TEXT_BYTES`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::{ArgType, Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::{PrettyFormatter, Serializer};

mod more;

use super::environment::refusal;
use super::value::{from_json, to_json, write_text};
use super::written::written;
use super::{TEXT_BYTES, VALUE_BYTES};

/// The most items a filter makes out of nothing, and the widest indentation.
const FILL: usize = 10_000;

/// Every filter there is, for those who look for the one that was meant.
pub(super) const NAMES: &[&str] = &[
    "abs",
    "attr",
    "b64decode",
    "b64encode",
    "batch",
    "bool",
    "capitalize",
    "center",
    "chain",
    "combine",
    "count",
    "d",
    "default",
    "dict2items",
    "dictsort",
    "e",
    "escape",
    "first",
    "flatten",
    "float",
    "format",
    "from_json",
    "fromjson",
    "get",
    "groupby",
    "indent",
    "int",
    "items",
    "items2dict",
    "join",
    "keys",
    "last",
    "len",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "strftime",
    "string",
    "sum",
    "ternary",
    "title",
    "to_json",
    "to_nice_json",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "values",
    "wordcount",
    "zip",
];

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    for name in ["tojson", "to_json"] {
        environment.add_filter(name, tojson);
    }
    environment.add_filter("to_nice_json", |value: Value| pretty(&to_json(&value).map_err(refusal)?, 4));
    for name in ["fromjson", "from_json"] {
        environment.add_filter(name, fromjson);
    }
    environment.add_filter("replace", replace);
    for name in ["length", "len", "count"] {
        environment.add_filter(name, length);
    }
    environment.add_filter("lower", |value: Value| Ok::<_, Error>(text(&value)?.to_lowercase()));
    environment.add_filter("upper", |value: Value| Ok::<_, Error>(text(&value)?.to_uppercase()));
    environment.add_filter("trim", trim);
    environment.add_filter("split", split);
    environment.add_filter("join", join);
    environment.add_filter("string", |value: Value| text(&value));
    environment
        .add_filter("first", |value: Value| Ok::<_, Error>(value.try_iter()?.next().unwrap_or(Value::UNDEFINED)));
    environment.add_filter("last", |value: Value| Ok::<_, Error>(value.try_iter()?.last().unwrap_or(Value::UNDEFINED)));
    environment.add_filter("keys", keys);
    environment.add_filter("values", values);
    environment.add_filter("items", pairs);
    environment.add_filter("get", get);
    environment.add_filter("b64encode", |value: Value| Ok::<_, Error>(STANDARD.encode(text(&value)?)));
    environment.add_filter("b64decode", b64decode);
    environment.add_filter("safe", |value: Value| value);
    environment.add_filter("indent", indent);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("format", format);
    more::add(environment);
}

pub(super) fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

pub(super) fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_text(value, &mut out, VALUE_BYTES).map_err(refusal)?;
    Ok(out)
}

fn is_nothing(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

fn fields(value: &Value) -> Result<Vec<(Value, Value)>, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(Vec::new()),
        ValueKind::Map => value.try_iter()?.map(|name| Ok((name.clone(), value.get_item(&name)?))).collect(),
        kind => Err(failed(format!("{kind} has no fields; only a map has"))),
    }
}

/// An argument that may be given by its place or its name. It is the last to be looked at.
fn named<T: for<'a> ArgType<'a, Output = T>>(
    given: Option<T>,
    options: &Kwargs,
    name: &str,
) -> Result<Option<T>, Error> {
    let value = match given {
        Some(value) => Some(value),
        None => options.get::<Option<T>>(name)?,
    };
    options.assert_all_used()?;
    Ok(value)
}

fn int(value: Value, default: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let default = named(default, &options, "default")?;
    Ok(integer(value).unwrap_or_else(|| default.unwrap_or_else(|| Value::from(0))))
}

fn integer(value: Value) -> Option<Value> {
    let number = match value.kind() {
        ValueKind::Number if value.is_integer() => return Some(value),
        ValueKind::Bool => return Some(Value::from(i64::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value).ok()?,
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            match text.parse::<i128>() {
                Ok(integer) => return Some(smallest(integer)),
                Err(_) => text.parse::<f64>().ok()?,
            }
        }
        _ => return None,
    };
    number.is_finite().then(|| smallest(number as i128))
}

/// As small as it can be, so that it compares and becomes JSON like any other.
fn smallest(integer: i128) -> Value {
    i64::try_from(integer)
        .map(Value::from)
        .or_else(|_| u64::try_from(integer).map(Value::from))
        .unwrap_or_else(|_| Value::from(integer))
}

fn float(value: Value, default: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let default = named(default, &options, "default")?;
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value).ok(),
        ValueKind::String => value.as_str().unwrap_or_default().trim().parse().ok(),
        _ => None,
    };
    let number = number.filter(|number: &f64| number.is_finite()).map(Value::from);
    Ok(number.unwrap_or_else(|| default.unwrap_or_else(|| Value::from(0.0))))
}

fn default(value: Value, other: Option<Value>, falsy: Option<bool>, options: Kwargs) -> Result<Value, Error> {
    let falsy = named(falsy, &options, "boolean")? == Some(true);
    let replaced = is_nothing(&value) || (falsy && !value.is_true());
    Ok(if replaced { other.unwrap_or_else(|| Value::from("")) } else { value })
}

fn tojson(value: Value, indent: Option<usize>, options: Kwargs) -> Result<String, Error> {
    let indent = named(indent, &options, "indent")?;
    match indent {
        None => Ok(written(&value).map_err(refusal)?.text),
        Some(indent) => pretty(&to_json(&value).map_err(refusal)?, indent),
    }
}

fn pretty(json: &Json, indent: usize) -> Result<String, Error> {
    let spaces = " ".repeat(indent.min(16));
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(spaces.as_bytes()));
    json.serialize(&mut serializer).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(out).map_err(|error| failed(error.to_string()))
}

fn fromjson(value: Value) -> Result<Value, Error> {
    let text = text(&value)?;
    let json: Json = serde_json::from_str(&text).map_err(|error| failed(format!("not JSON: {error}")))?;
    Ok(from_json(&json))
}

fn replace(value: Value, from: Value, to: Value, times: Option<usize>, options: Kwargs) -> Result<String, Error> {
    let times = named(times, &options, "count")?;
    replaced(&value, &from, &to, times)
}

/// As often as it is found, or so many times from the left.
pub(super) fn replaced(value: &Value, from: &Value, to: &Value, times: Option<usize>) -> Result<String, Error> {
    let (value, from, to) = (text(value)?, text(from)?, text(to)?);
    let times = times.unwrap_or(usize::MAX);
    let mut letters = from.chars();
    // A lone letter is looked for many bytes at a time, other texts are not.
    let letter = letters.next().filter(|_| letters.next().is_none());
    if to.len() > from.len() {
        let found = match letter {
            Some(letter) => value.matches(letter).take(times).count(),
            None => value.matches(from.as_str()).take(times).count(),
        };
        bound(value.len().saturating_add(found.saturating_mul(to.len() - from.len())))?;
    }
    Ok(match letter {
        Some(letter) => value.replacen(letter, &to, times),
        None => value.replacen(&from, &to, times),
    })
}

pub(super) fn bound(bytes: usize) -> Result<(), Error> {
    if bytes > TEXT_BYTES { Err(Error::from(ErrorKind::WriteFailure)) } else { Ok(()) }
}

fn length(value: Value) -> Result<usize, Error> {
    if is_nothing(&value) {
        return Ok(0);
    }
    match value.as_str() {
        Some(text) => Ok(text.chars().count()),
        None => value.len().ok_or_else(|| failed(format!("{} has no length", value.kind()))),
    }
}

fn trim(value: Value, characters: Option<Value>) -> Result<String, Error> {
    let value = text(&value)?;
    let Some(characters) = characters else { return Ok(value.trim().to_owned()) };
    let characters: Vec<char> = text(&characters)?.chars().collect();
    Ok(value.trim_matches(characters.as_slice()).to_owned())
}

pub(super) fn split(value: Value, separator: Option<Value>, times: Option<usize>) -> Result<Vec<String>, Error> {
    if is_nothing(&value) {
        return Ok(Vec::new());
    }
    let value = text(&value)?;
    let most = times.map_or(usize::MAX, |times| times.saturating_add(1));
    let Some(separator) = separator.filter(|separator| !is_nothing(separator)) else {
        return Ok(value.split_whitespace().map(str::to_owned).collect());
    };
    let separator = text(&separator)?;
    if separator.is_empty() {
        return Err(failed("cannot split at an empty text"));
    }
    Ok(value.splitn(most, &separator).map(str::to_owned).collect())
}

fn join(value: Value, separator: Option<Value>, attribute: Option<String>, options: Kwargs) -> Result<String, Error> {
    let separator = separator.or(options.get::<Option<Value>>("d")?);
    let attribute = named(attribute, &options, "attribute")?;
    let separator = separator.as_ref().map(text).transpose()?.unwrap_or_default();
    joined(&value, &separator, attribute.as_deref())
}

/// Items as text with another text between them; of each item the attribute, if one is named (`user.name`).
pub(super) fn joined(value: &Value, separator: &str, attribute: Option<&str>) -> Result<String, Error> {
    let mut out = String::new();
    for (place, item) in value.try_iter()?.enumerate() {
        if place > 0 {
            out.push_str(separator);
        }
        let item = attribute.map_or(item.clone(), |attribute| {
            attribute.split('.').fold(item, |item, part| item.get_attr(part).unwrap_or(Value::UNDEFINED))
        });
        write_text(&item, &mut out, TEXT_BYTES).map_err(refusal)?;
    }
    Ok(out)
}

pub(super) fn keys(value: Value) -> Result<Vec<Value>, Error> {
    Ok(fields(&value)?.into_iter().map(|(name, _)| name).collect())
}

pub(super) fn values(value: Value) -> Result<Vec<Value>, Error> {
    Ok(fields(&value)?.into_iter().map(|(_, field)| field).collect())
}

pub(super) fn pairs(value: Value) -> Result<Vec<Value>, Error> {
    Ok(fields(&value)?.into_iter().map(|(name, field)| Value::from(vec![name, field])).collect())
}

pub(super) fn get(value: Value, key: Value, other: Option<Value>) -> Value {
    let found = value.get_item(&key).unwrap_or(Value::UNDEFINED);
    if found.is_undefined() { other.unwrap_or(Value::UNDEFINED) } else { found }
}

fn b64decode(value: Value) -> Result<String, Error> {
    let bytes = STANDARD.decode(text(&value)?.trim()).map_err(|error| failed(format!("not base64: {error}")))?;
    String::from_utf8(bytes).map_err(|_| failed("the decoded bytes are no text"))
}

fn indent(
    value: Value,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = width.or(options.get::<Option<usize>>("width")?).unwrap_or(4);
    let first = first.or(options.get::<Option<bool>>("first")?).unwrap_or(false);
    let blank = blank.or(options.get::<Option<bool>>("blank")?).unwrap_or(false);
    options.assert_all_used()?;
    few(width)?;
    let (text, margin) = (text(&value)?, " ".repeat(width));
    let mut out = String::new();
    for (place, line) in text.split('\n').enumerate() {
        if place > 0 {
            out.push('\n');
        }
        if (place > 0 || first) && (blank || !line.trim().is_empty()) {
            out.push_str(&margin);
        }
        out.push_str(line);
        bound(out.len())?;
    }
    Ok(out)
}

/// The engine's own, but for widths that are only good for filling the memory.
fn format(state: &mut State, pattern: &Value, arguments: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let text = pattern.as_str().unwrap_or_default();
    let mut digits = 0;
    for character in text.chars() {
        digits = if character.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 || character == '*' {
            return Err(failed("a format takes no `*` and no width of five digits"));
        }
    }
    minijinja::filters::format(state, pattern, arguments)
}

fn batch(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    few(count)?;
    minijinja::filters::batch(state, value, count, fill)
}

fn slice(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    few(count)?;
    minijinja::filters::slice(state, value, count, fill)
}

pub(super) fn few(count: usize) -> Result<(), Error> {
    if count > FILL { Err(failed(format!("{count} is more than {FILL}"))) } else { Ok(()) }
}
