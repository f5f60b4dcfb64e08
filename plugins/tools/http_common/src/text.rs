//! Values as the text of queries, forms and headers.

use noetl_sdk::Failure;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// All but the characters that mean nothing anywhere in an address; placeholders of secrets consist of these alone.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value that is one word.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `a=1&b=2`: nulls are left out, lists are repeated, a map is its JSON, as a template with `tojson` gives it.
pub fn pairs(what: &str, value: &Value) -> Result<Vec<(String, String)>, Failure> {
    let Value::Object(fields) = value else {
        return Err(Failure::invalid_input(format_args!(
            "`{what}` is an object of names and values and not `{value}`"
        )));
    };
    let mut pairs = Vec::new();
    for (name, value) in fields {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values.iter().filter(|value| !value.is_null()) {
            let text = scalar(value).or_else(|| value.is_object().then(|| value.to_string())).ok_or_else(|| {
                Failure::invalid_input(format_args!("`{name}` in `{what}` is a list with a list in it: `{value}`"))
            })?;
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

pub fn encoded(pairs: &[(String, String)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}

/// The address with parameters behind those it has; of those in both, `params` win. Text is the JSON of an object, or a
/// query already.
pub fn with_query(url: &str, more: Option<&Value>, params: Option<&Value>) -> Result<String, Failure> {
    let mut all = more.map_or(Ok(Vec::new()), |more| pairs("data", more))?;
    let read: Option<Value> = params
        .and_then(Value::as_str)
        .filter(|text| text.trim_start().starts_with('{'))
        .and_then(|text| serde_json::from_str(text).ok());
    let written = match read.as_ref().or(params) {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.trim().trim_start_matches('?'),
        Some(params) => {
            let params = pairs("params", params)?;
            all.retain(|(name, _)| !params.iter().any(|(other, _)| other == name));
            all.extend(params);
            ""
        }
    };
    let parts = [encoded(&all), written.to_owned()];
    let query = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
    Ok(if query.is_empty() { url.to_owned() } else { join(url, &query) })
}

fn join(url: &str, query: &str) -> String {
    let (address, fragment) = url.split_once('#').map_or((url, None), |(address, part)| (address, Some(part)));
    let between = match address.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some((_, before)) if before.ends_with('&') => "",
        Some(_) => "&",
    };
    let fragment = fragment.map_or_else(String::new, |part| format!("#{part}"));
    format!("{address}{between}{query}{fragment}")
}

/// `30`, `1.5`, `30s`, `250ms`, `2m`; a number without a unit counts in `unit` seconds.
pub fn seconds(text: &str, unit: f64) -> Option<f64> {
    let text = text.trim();
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, unit));
    number.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * unit)
}
