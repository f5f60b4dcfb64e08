//! What a value is, what comes back, and whether that is the same.
//!
//! Values are compared as they are written. To read them into numbers first would hide just what is looked for: a reader
//! that drops digits drops them on both sides.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// One value of a corpus.
#[derive(Clone)]
pub struct Case {
    /// A name that templates and Python can say.
    pub name: &'static str,
    /// As JSON.
    pub sent: String,
    /// What comes back instead, and why; as it was sent if there is nothing.
    pub back: Option<(String, &'static str)>,
    /// What Python calls it.
    pub kind: &'static str,
}

impl Case {
    pub fn same(name: &'static str, sent: impl Into<String>, kind: &'static str) -> Self {
        Self { name, sent: sent.into(), back: None, kind }
    }

    pub fn other(
        name: &'static str,
        sent: impl Into<String>,
        back: impl Into<String>,
        kind: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, sent: sent.into(), back: Some((back.into(), why)), kind }
    }

    fn wanted(&self) -> &str {
        self.back.as_ref().map_or(self.sent.as_str(), |(back, _)| back)
    }
}

/// One object with all of them.
pub fn document(cases: &[Case]) -> String {
    let members: Vec<String> = cases.iter().map(|case| format!("\"{}\": {}", case.name, case.sent)).collect();
    format!("{{{}}}", members.join(", "))
}

type Members<'t> = BTreeMap<String, &'t RawValue>;

#[track_caller]
fn members(text: &str) -> Members<'_> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A member of an object, as it is written there.
#[track_caller]
pub fn member<'t>(object: &'t str, name: &str) -> &'t str {
    members(object).get(name).unwrap_or_else(|| panic!("{name} is not in {object}")).get()
}

/// The cases that came back as something else, a line each.
#[track_caller]
pub fn differences(place: &str, cases: &[Case], found: &str) -> Vec<String> {
    let found = members(found);
    let line = |case: &Case| {
        let found = found.get(case.name).map_or("nothing", |value| value.get());
        let line = format!("{place}.{}: {} was sent, {} is due, {found} came", case.name, case.sent, case.wanted());
        (!same(case.wanted(), found)).then_some(line)
    };
    cases.iter().filter_map(line).collect()
}

/// The cases that Python calls something else.
#[track_caller]
pub fn kinds(place: &str, cases: &[Case], found: &str) -> Vec<String> {
    let found: BTreeMap<String, String> = serde_json::from_str(found).expect("names of types");
    let line = |case: &Case| {
        let found = found.get(case.name).map_or("nothing", String::as_str);
        (found != case.kind)
            .then(|| format!("{place}.{}: {} is a {found} and not a {}", case.name, case.sent, case.kind))
    };
    cases.iter().filter_map(line).collect()
}

/// What is not what it was, for people.
pub fn show_exceptions(cases: &[Case]) {
    println!("| value | sent | comes back as | because |\n|---|---|---|---|");
    for case in cases {
        if let Some((back, why)) = &case.back {
            let short = |text: &str| text.chars().take(60).collect::<String>();
            println!("| {} | `{}` | `{}` | {why} |", case.name, short(&case.sent), short(back));
        }
    }
}

/// Whether two values are one; the order of members and how a text is escaped do not matter.
fn same(one: &str, other: &str) -> bool {
    match (one.trim().as_bytes().first(), other.trim().as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => {
            let (one, other) = (members(one), members(other));
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|found| same(value.get(), found.get())))
        }
        (Some(b'['), Some(b'[')) => {
            let items = |text| serde_json::from_str::<Vec<&RawValue>>(text).expect("a list");
            let (one, other): (Vec<_>, Vec<_>) = (items(one), items(other));
            one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| same(one.get(), other.get()))
        }
        (Some(b'"'), Some(b'"')) => {
            let text = |text| serde_json::from_str::<Value>(text).expect("a text");
            text(one) == text(other)
        }
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => same_number(one.trim(), other.trim()),
        _ => one.trim() == other.trim(),
    }
}

/// Whole numbers by their digits, others by their bits; a whole one is never the same as another.
fn same_number(one: &str, other: &str) -> bool {
    let is_whole = |text: &str| !text.contains(['.', 'e', 'E']);
    match (is_whole(one), is_whole(other)) {
        (true, true) => one == other,
        (false, false) => {
            let bits = |text: &str| text.parse::<f64>().map(f64::to_bits);
            bits(one).is_ok() && bits(one) == bits(other)
        }
        _ => false,
    }
}

/// The comparison itself sees what it is for.
#[test]
fn what_differs_is_seen() {
    for (one, other) in [
        ("1", "1"),
        ("1e300", "1e+300"),
        ("-0.0", "-0.0"),
        (r#""\u00e9""#, "\"é\""),
        (r#"{"a": [1, null], "b": {}}"#, r#"{"b":{},"a":[1,null]}"#),
    ] {
        assert!(same(one, other), "{one} and {other}");
    }
    for (one, other) in [
        ("1", "1.0"),
        ("0", "-0"),
        ("0.0", "-0.0"),
        ("18446744073709551616", "18446744073709551617"),
        ("9007199254740993", "9007199254740992"),
        ("248.77816480489122", "248.7781648048912"),
        ("\"1\"", "1"),
        ("null", "\"\""),
        ("\"e\\u0301\"", "\"\\u00e9\""),
        (r#"{"a": null}"#, "{}"),
        ("[null]", "[]"),
        ("[]", "{}"),
    ] {
        assert!(!same(one, other), "{one} and {other}");
    }
}
