//! Filters of Jinja that the engine leaves out, and those of Ansible that playbooks bring along.

use jiff::Timestamp;
use jiff::fmt::strtime;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, Value};

use super::{bound, failed, few, fields, named, text};

/// How long a text is after `truncate`, if nobody says, and by how much it may be longer without being cut.
const SHORT: usize = 255;
const LEEWAY: usize = 5;

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_filter("center", center);
    environment.add_filter("combine", combine);
    environment.add_filter("dict2items", dict2items);
    environment.add_filter("flatten", flatten);
    environment.add_filter("items2dict", items2dict);
    environment.add_filter("strftime", strftime);
    environment.add_filter("ternary", |value: Value, yes: Value, no: Value| if value.is_true() { yes } else { no });
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", urlencode);
    environment.add_filter("wordcount", |value: Value| Ok::<_, Error>(text(&value)?.split_whitespace().count()));
}

fn center(value: Value, width: Option<usize>) -> Result<String, Error> {
    let (value, width) = (text(&value)?, width.unwrap_or(80));
    few(width)?;
    Ok(format!("{value:^width$}"))
}

/// One map of several; of fields with one name the last counts.
fn combine(value: Value, others: Rest<Value>) -> Result<Value, Error> {
    let mut all = fields(&value)?;
    for other in others.iter() {
        all.extend(fields(other)?);
    }
    Ok(Value::from_pairs(all))
}

fn dict2items(value: Value) -> Result<Vec<Value>, Error> {
    let pair = |(name, field): (Value, Value)| Value::from_pairs([("key", name), ("value", field)]);
    Ok(fields(&value)?.into_iter().map(pair).collect())
}

fn items2dict(value: Value) -> Result<Value, Error> {
    let pairs = value.try_iter()?.map(|item| Ok((item.get_attr("key")?, item.get_attr("value")?)));
    Ok(Value::from_pairs(pairs.collect::<Result<Vec<_>, Error>>()?))
}

/// Lists in a list, and lists in those, as one.
fn flatten(value: Value, levels: Option<usize>, options: Kwargs) -> Result<Vec<Value>, Error> {
    let levels = named(levels, &options, "levels")?.unwrap_or(usize::MAX);
    let mut flat = Vec::new();
    let mut open = vec![(value, 0)];
    while let Some((next, depth)) = open.pop() {
        let is_list = matches!(next.kind(), ValueKind::Seq | ValueKind::Iterable);
        if depth > 0 && (!is_list || depth > levels) {
            flat.push(next);
            continue;
        }
        let items: Vec<Value> = next.try_iter()?.collect();
        bound(flat.len() + open.len() + items.len())?;
        open.extend(items.into_iter().rev().map(|item| (item, depth + 1)));
    }
    Ok(flat)
}

/// A time as text: `{{ now() | strftime('%Y-%m-%d') }}`. A number counts in seconds since 1970; all of it is in UTC.
fn strftime(value: Value, pattern: String) -> Result<String, Error> {
    let time = match value.kind() {
        ValueKind::Number => {
            let seconds = f64::try_from(value.clone())?;
            Timestamp::from_millisecond((seconds * 1000.0) as i64).map_err(|error| failed(error.to_string()))?
        }
        _ => {
            let written = text(&value)?;
            written.trim().parse().map_err(|error| failed(format!("`{written}` is not a time: {error}")))?
        }
    };
    let written = strtime::format(&pattern, time).map_err(|error| failed(error.to_string()))?;
    bound(written.len())?;
    Ok(written)
}

fn truncate(
    value: Value,
    length: Option<usize>,
    killwords: Option<bool>,
    end: Option<String>,
    options: Kwargs,
) -> Result<String, Error> {
    let length = length.or(options.get::<Option<usize>>("length")?).unwrap_or(SHORT);
    let killwords = killwords.or(options.get::<Option<bool>>("killwords")?).unwrap_or(false);
    let end = end.or(options.get::<Option<String>>("end")?).unwrap_or_else(|| "...".to_owned());
    let leeway = named(None, &options, "leeway")?.unwrap_or(LEEWAY);
    let value = text(&value)?;
    if value.chars().count() <= length.saturating_add(leeway) {
        return Ok(value);
    }
    let kept: String = value.chars().take(length.saturating_sub(end.chars().count())).collect();
    let kept = match kept.rfind(' ') {
        Some(space) if !killwords => &kept[..space],
        _ => kept.as_str(),
    };
    Ok(format!("{kept}{end}"))
}

/// Text for an address; a map becomes a query.
fn urlencode(value: Value) -> Result<String, Error> {
    if value.kind() != ValueKind::Map {
        return Ok(encoded(&text(&value)?, "-._~/"));
    }
    let pairs = fields(&value)?;
    let pair = |(name, field): &(Value, Value)| Ok(format!("{}={}", query(name)?, query(field)?));
    Ok(pairs.iter().map(pair).collect::<Result<Vec<_>, Error>>()?.join("&"))
}

fn query(value: &Value) -> Result<String, Error> {
    Ok(encoded(&text(value)?, "-._~"))
}

fn encoded(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match char::from(byte) {
            letter if letter.is_ascii_alphanumeric() || kept.contains(letter) => out.push(letter),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
