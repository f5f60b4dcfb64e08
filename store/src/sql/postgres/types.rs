//! Types of PostgreSQL and their values, from the text the server writes to JSON.
//!
//! All values come in the text form, which every type has and which loses nothing. What JSON has is JSON (truth values,
//! whole and floating point numbers, `json`, lists for arrays of all types and depths); times are written the way RFC 3339
//! writes them; everything else is its text: `numeric` above all, whose digits no JSON number holds.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postgres_protocol::Oid;
use serde_json::Value;

use super::super::cells::{Cell, Shape, write};

/// A type by its name, and how its values are read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Bool,
    Int,
    Float,
    Json,
    Bytes,
    /// A day and a time, with or without a zone.
    Timestamp,
    /// A time of day with a zone.
    TimeTz,
    /// Of a function that gives nothing.
    Void,
    Text,
    Array(Arc<Kind>, u8),
}

/// OID, name, kind, and the OID of its array: the types every server has.
#[rustfmt::skip]
const KNOWN: &[(Oid, &str, Kind, Oid)] = &[
    (16, "bool", Kind::Bool, 1000), (17, "bytea", Kind::Bytes, 1001), (18, "char", Kind::Text, 1002),
    (19, "name", Kind::Text, 1003), (20, "int8", Kind::Int, 1016), (21, "int2", Kind::Int, 1005),
    (22, "int2vector", Kind::Text, 1006), (23, "int4", Kind::Int, 1007), (25, "text", Kind::Text, 1009),
    (26, "oid", Kind::Int, 1028), (30, "oidvector", Kind::Text, 1013), (114, "json", Kind::Json, 199),
    (142, "xml", Kind::Text, 143), (600, "point", Kind::Text, 1017), (601, "lseg", Kind::Text, 1018),
    (602, "path", Kind::Text, 1019), (604, "polygon", Kind::Text, 1027), (628, "line", Kind::Text, 629),
    (650, "cidr", Kind::Text, 651), (700, "float4", Kind::Float, 1021), (701, "float8", Kind::Float, 1022),
    (705, "unknown", Kind::Text, 0), (718, "circle", Kind::Text, 719), (774, "macaddr8", Kind::Text, 775),
    (790, "money", Kind::Text, 791), (829, "macaddr", Kind::Text, 1040), (869, "inet", Kind::Text, 1041),
    (1042, "bpchar", Kind::Text, 1014), (1043, "varchar", Kind::Text, 1015), (1082, "date", Kind::Text, 1182),
    (1083, "time", Kind::Text, 1183), (1114, "timestamp", Kind::Timestamp, 1115),
    (1184, "timestamptz", Kind::Timestamp, 1185), (1186, "interval", Kind::Text, 1187),
    (1266, "timetz", Kind::TimeTz, 1270), (1560, "bit", Kind::Text, 1561), (1562, "varbit", Kind::Text, 1563),
    (1700, "numeric", Kind::Text, 1231), (2205, "regclass", Kind::Text, 2210), (2249, "record", Kind::Text, 2287),
    (2278, "void", Kind::Void, 0), (2950, "uuid", Kind::Text, 2951), (3614, "tsvector", Kind::Text, 3643),
    (3615, "tsquery", Kind::Text, 3645), (3802, "jsonb", Kind::Json, 3807), (3904, "int4range", Kind::Text, 3905),
    (3906, "numrange", Kind::Text, 3907), (3908, "tsrange", Kind::Text, 3909), (3910, "tstzrange", Kind::Text, 3911),
    (3912, "daterange", Kind::Text, 3913), (3926, "int8range", Kind::Text, 3927), (4072, "jsonpath", Kind::Text, 4073),
];

/// A type that every server has.
pub(super) fn known(oid: Oid) -> Option<Type> {
    KNOWN.iter().find_map(|(own, name, kind, array)| match oid {
        0 => None,
        _ if oid == *own => Some(Type { name: (*name).to_owned(), kind: kind.clone() }),
        _ if oid == *array => Some(Type { name: format!("_{name}"), kind: Kind::Array(Arc::new(kind.clone()), b',') }),
        _ => None,
    })
}

impl Kind {
    pub(super) fn shape(&self) -> Shape {
        match self {
            Kind::Bool => Shape::Bool,
            Kind::Int => Shape::Int,
            Kind::Float => Shape::Float,
            Kind::Bytes => Shape::Bytes,
            _ => Shape::Text,
        }
    }

    /// A value from its text.
    pub(super) fn read<'t>(&self, text: &'t str) -> Cell<'t> {
        match self {
            Kind::Bool => Cell::Bool(text == "t"),
            Kind::Int => Cell::Number(text.into()),
            Kind::Float => match text {
                "NaN" | "Infinity" | "-Infinity" => Cell::Text(text.into()),
                _ => Cell::Number(text.into()),
            },
            Kind::Json if is_plain_json(text) => Cell::Json(text.into()),
            Kind::Bytes => hex(text).map_or(Cell::Text(text.into()), |bytes| Cell::Bytes(bytes.into())),
            Kind::Timestamp => Cell::Text(timestamp(text).into()),
            Kind::TimeTz => Cell::Text(zoned(text).into()),
            Kind::Void => Cell::Null,
            Kind::Array(element, delimiter) => {
                array(element, *delimiter, text).map_or(Cell::Text(text.into()), |json| Cell::Json(json.into()))
            }
            Kind::Json | Kind::Text => Cell::Text(text.into()),
        }
    }
}

/// Levels that whoever reads our answers goes down.
const DEEPEST: usize = 100;

/// Whether others read it as JSON too: the type `json` takes halves of characters, and any depth.
fn is_plain_json(text: &str) -> bool {
    let opened = text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    (opened < DEEPEST && !text.contains("\\u")) || serde_json::from_str::<Value>(text).is_ok()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks(2).map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// `2024-01-02 03:04:05+00` as `2024-01-02T03:04:05+00:00`. What RFC 3339 has no form for, such as times before our era and
/// the infinite ones, stays as it is, which the server reads again.
fn timestamp(text: &str) -> String {
    match text.split_once(' ') {
        Some((day, time)) if !text.ends_with("BC") => format!("{day}T{}", zoned(time)),
        _ => text.to_owned(),
    }
}

/// A time whose zone has minutes.
fn zoned(time: &str) -> String {
    match time.rfind(['+', '-']) {
        Some(sign) if time.len() - sign == 3 => format!("{time}:00"),
        _ => time.to_owned(),
    }
}

/// `{1,NULL,{"a"}}` as a JSON list; nothing if that is not an array's text.
fn array(element: &Kind, delimiter: u8, text: &str) -> Option<String> {
    // Bounds that do not start at 1 come before the braces: `[0:1]={1,2}`.
    let text = if text.starts_with('[') { text.split_once("]=").map(|(_, rest)| rest)? } else { text };
    if !text.starts_with('{') {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut depth = 0_usize;
    loop {
        let first = *rest.as_bytes().first()?;
        match first {
            b'{' => {
                (depth, rest) = (depth + 1, &rest[1..]);
                out.push('[');
                if !rest.starts_with('}') {
                    continue;
                }
            }
            b'"' => {
                let (value, after) = unquoted(rest)?;
                write(&mut out, &element.read(&value));
                rest = after;
            }
            b'}' => return None,
            _ => {
                let end = rest.bytes().position(|byte| byte == delimiter || byte == b'}')?;
                let (value, after) = rest.split_at(end);
                match value {
                    "" => return None,
                    "NULL" => out.push_str("null"),
                    _ => write(&mut out, &element.read(value)),
                }
                rest = after;
            }
        }
        // After an element: the next one, or ends.
        while rest.starts_with('}') {
            (depth, rest) = (depth.checked_sub(1)?, &rest[1..]);
            out.push(']');
        }
        if depth == 0 {
            return rest.is_empty().then_some(out);
        }
        if rest.as_bytes().first() == Some(&delimiter) {
            out.push(',');
            rest = &rest[1..];
        } else {
            return None;
        }
    }
}

/// An element in quotes, and what comes after it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

/// A JSON value as the text of a parameter; nothing is null.
pub(super) fn bound(value: &Value, kind: &Kind) -> Result<Option<String>, String> {
    Ok(Some(match (value, kind) {
        (Value::Null, _) => return Ok(None),
        (Value::String(text), Kind::Json) => match serde_json::from_str::<Value>(text) {
            Ok(_) => text.clone(),
            Err(_) => value.to_string(),
        },
        (_, Kind::Json) => value.to_string(),
        (Value::String(text), Kind::Bytes) if !text.starts_with("\\x") => {
            let bytes = STANDARD
                .decode(text)
                .map_err(|_| "bytes are given as base64, or as hexadecimal digits after `\\x`".to_owned())?;
            format!("\\x{}", hex::encode(bytes))
        }
        (Value::Array(list), Kind::Array(element, delimiter)) => literal(list, element, *delimiter)?,
        (Value::String(text), _) => text.clone(),
        // A template makes 5.0 of 5 here and there.
        (Value::Number(number), Kind::Int) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        (other, _) => other.to_string(),
    }))
}

fn literal(list: &[Value], element: &Kind, delimiter: u8) -> Result<String, String> {
    let mut out = String::from("{");
    for (number, value) in list.iter().enumerate() {
        if number > 0 {
            out.push(char::from(delimiter));
        }
        match value {
            Value::Array(inner) if *element != Kind::Json => out.push_str(&literal(inner, element, delimiter)?),
            value => match bound(value, element)? {
                None => out.push_str("NULL"),
                Some(text) => {
                    out.push('"');
                    out.extend(text.chars().flat_map(|character| {
                        let escape = matches!(character, '"' | '\\').then_some('\\');
                        escape.into_iter().chain([character])
                    }));
                    out.push('"');
                }
            },
        }
    }
    out.push('}');
    Ok(out)
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
