//! Values that queries and bodies have in common: ids of executions, versions of playbooks, moments.
//!
//! Ids and moments are accepted in both forms clients have, and answered in one: ids as text, because many readers
//! round numbers of their size, and moments as RFC 3339 in UTC with milliseconds.

use std::fmt;

use jiff::Timestamp;
use noetl_dispatch::engine::ExecutionId;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A time as people and their tools read it.
pub fn rfc3339(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// An id of an execution: text, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id(pub ExecutionId);

/// A time: RFC 3339, or milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub u64);

/// A version of a playbook: a number, as text too, or `latest`, which is what no version means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub Option<u32>);

/// How many seconds to wait for something: a number, or `true` for the usual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Usual,
    No,
    Seconds(u64),
}

struct Reader<T> {
    expected: &'static str,
    text: fn(&str) -> Option<T>,
    number: fn(u64) -> Option<T>,
    flag: fn(bool) -> Option<T>,
}

impl<T> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let short: String = text.chars().take(64).collect();
        (self.text)(text).ok_or_else(|| E::custom(format!("`{short}` is not {}", self.expected)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.number)(number).ok_or_else(|| E::custom(format!("{number} is not {}", self.expected)))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<T, E> {
        (self.flag)(flag).ok_or_else(|| E::custom(format!("{flag} is not {}", self.expected)))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader {
            expected: "the id of an execution: digits only",
            text: |text| text.parse().ok().map(Id),
            number: |number| Some(Id(ExecutionId(number))),
            flag: |_| None,
        })
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader {
            expected: "a time: RFC 3339 such as `2026-01-31T12:00:00Z`, or milliseconds since 1970",
            text: |text| moment(text).map(Moment),
            number: |number| Some(Moment(number)),
            flag: |_| None,
        })
    }
}

/// The plus of an offset arrives as a blank when a client forgot to escape it in a query.
fn moment(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let time = text.parse::<Timestamp>().or_else(|_| text.replace(' ', "+").parse::<Timestamp>()).ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

impl Version {
    fn from_number(number: u64) -> Option<Self> {
        u32::try_from(number).ok().filter(|number| *number > 0).map(|number| Self(Some(number)))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader {
            expected: "a version: a number from 1 on, or `latest`",
            text: |text| match text {
                "latest" => Some(Version(None)),
                text => text.parse().ok().and_then(Version::from_number),
            },
            number: Version::from_number,
            flag: |_| None,
        })
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader {
            expected: "a number of seconds, `true` or `false`",
            text: |text| match text {
                "true" => Some(Wait::Usual),
                "false" => Some(Wait::No),
                text => text.parse().ok().map(Wait::Seconds),
            },
            number: |number| Some(Wait::Seconds(number)),
            flag: |flag| Some(if flag { Wait::Usual } else { Wait::No }),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn ids_are_read_from_text_and_numbers() {
        for good in [json!("340000000000000001"), json!(340_000_000_000_000_001_u64)] {
            assert_eq!(from_value::<Id>(good).expect("an id").0, ExecutionId(340_000_000_000_000_001));
        }
        for wrong in [json!("x"), json!(-1), json!(1.5), json!(null), json!(true)] {
            assert!(from_value::<Id>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_read_in_all_their_forms() {
        let forms = [
            json!(1_769_860_800_000_u64),
            json!("1769860800000"),
            json!("2026-01-31T12:00:00Z"),
            json!("2026-01-31T13:00:00.000+01:00"),
            json!("2026-01-31T13:00:00 01:00"),
        ];
        for form in forms {
            assert_eq!(from_value::<Moment>(form.clone()).expect("a time"), Moment(1_769_860_800_000), "{form}");
        }
        for wrong in [json!("yesterday"), json!("2026-01-31"), json!("1960-01-01T00:00:00Z"), json!("")] {
            assert!(from_value::<Moment>(wrong.clone()).is_err(), "{wrong}");
        }
        assert_eq!(rfc3339(1_769_860_800_007), "2026-01-31T12:00:00.007Z");
        assert_eq!(rfc3339(1_769_860_800_000), "2026-01-31T12:00:00.000Z");
        assert!(rfc3339(u64::MAX).starts_with("9999-"));
    }

    #[test]
    fn a_version_is_a_number_from_one_on_or_the_latest() {
        let version = |value: Value| from_value::<Version>(value).ok().map(|version| version.0);
        assert_eq!(version(json!(3)), Some(Some(3)));
        assert_eq!(version(json!("3")), Some(Some(3)));
        assert_eq!(version(json!("latest")), Some(None));
        for wrong in [json!(0), json!("0"), json!("1.0.0"), json!(u64::MAX), json!(true)] {
            assert_eq!(version(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn waiting_is_said_with_a_time_or_without() {
        let wait = |value: Value| from_value::<Wait>(value).ok();
        assert_eq!(wait(json!(true)), Some(Wait::Usual));
        assert_eq!(wait(json!("true")), Some(Wait::Usual));
        assert_eq!(wait(json!(false)), Some(Wait::No));
        assert_eq!(wait(json!("5")), Some(Wait::Seconds(5)));
        assert_eq!(wait(json!("soon")), None);
    }
}
