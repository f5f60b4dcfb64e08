//! Queries and JSON bodies into typed values, with errors that name the field.
//!
//! Unknown fields are refused (the types say so), because a misspelt `verison` that is silently ignored moves
//! the wrong thing.

use axum::http::HeaderMap;
use bytes::Bytes;
use noetl_contract::CapabilitySet;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::app::Cx;
use crate::body::{self, Bound};
use crate::problem::Problem;

/// Largest JSON document of a change; none has more than a few short fields.
const MAX_DOCUMENT_BYTES: u64 = 64 << 10;

/// The parameters behind the `?`.
pub fn query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query)
        .map_err(|error| Problem::bad_request("invalid_parameter", format!("the query cannot be read: {error}")))?;
    // A form that says `version=` leaves the version open; it does not ask for a version without a name.
    // A list of capabilities is another matter: an empty one grants nothing, and must not become "no list".
    let said = |(name, value): &(String, String)| !value.is_empty() || name == "capabilities";
    let pairs: Vec<_> = pairs.into_iter().filter(said).collect();
    let deserializer = serde::de::value::MapDeserializer::<_, serde::de::value::Error>::new(
        pairs.iter().map(|(name, value)| (name.as_str(), Text(value))),
    );
    serde_path_to_error::deserialize(deserializer).map_err(|error| named("invalid_parameter", "parameter", &error))
}

/// The JSON object of a change. An empty body is an empty object.
pub async fn document<T: DeserializeOwned>(cx: &mut Cx) -> Result<T, Problem> {
    document_within(cx, MAX_DOCUMENT_BYTES).await
}

/// The same for documents that carry data.
pub async fn document_within<T: DeserializeOwned>(cx: &mut Cx, bytes: u64) -> Result<T, Problem> {
    let bytes = body_within(cx, bytes).await?;
    parse_document(&cx.headers, &bytes)
}

/// The body as it is.
pub async fn body_within(cx: &mut Cx, bytes: u64) -> Result<Bytes, Problem> {
    let bound = Bound { bytes, code: "body_too_large", key: None };
    body::whole(cx, bound).await
}

/// A part of a document that was read as plain JSON.
pub fn part<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| named("invalid_body", "field", &error))
}

/// How many of a list to answer with.
pub fn limit(asked: Option<u32>, usual: u32, most: u32) -> Result<usize, Problem> {
    let limit = asked.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        let detail = format!("parameter `limit`: from 1 to {most}");
        return Err(Problem::invalid_field("invalid_parameter", "limit", detail));
    }
    Ok(limit as usize)
}

pub fn parse_document<T: DeserializeOwned>(headers: &HeaderMap, bytes: &Bytes) -> Result<T, Problem> {
    let media_type = headers.get(axum::http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_some_and(|given| !given.starts_with("application/json") && !bytes.is_empty()) {
        return Err(Problem::invalid_field("invalid_body", "content-type", "the body must be `application/json`"));
    }
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| named("invalid_body", "field", &error))?;
    deserializer
        .end()
        .map_err(|error| Problem::bad_request("invalid_body", format!("the body is not one JSON object: {error}")))?;
    Ok(value)
}

/// A problem that names the field, which serde puts either into the path or into the message.
fn named<E: std::fmt::Display>(code: &'static str, what: &str, error: &serde_path_to_error::Error<E>) -> Problem {
    let message = error.inner().to_string();
    let path = error.path().to_string();
    let field =
        if path == "." || path == "?" { message.split('`').nth(1).unwrap_or_default().to_owned() } else { path };
    if field.is_empty() {
        return Problem::bad_request(code, message);
    }
    Problem::invalid_field(code, &field, format!("{what} `{field}`: {message}"))
}

/// For routes without parameters: any is a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// `a,b` into a set.
pub fn capabilities(field: &str, list: &str) -> Result<CapabilitySet, Problem> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none");
    names
        .map(|name| {
            name.parse().map_err(|error: noetl_contract::ids::InvalidId| {
                Problem::invalid_field("invalid_parameter", field, error.to_string())
            })
        })
        .collect()
}

/// A query value: text that turns into whatever the field wants.
struct Text<'a>(&'a str);

impl<'de> serde::de::IntoDeserializer<'de, serde::de::value::Error> for Text<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parse_as {
    ($($method:ident $visit:ident $what:literal),*) => {$(
        fn $method<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            let value = self.0.parse().map_err(|_| {
                serde::de::Error::custom(format!(concat!("`{}` is not ", $what), self.0))
            })?;
            visitor.$visit(value)
        }
    )*};
}

impl<'de> serde::Deserializer<'de> for Text<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    parse_as! {
        deserialize_bool visit_bool "true or false",
        deserialize_u64 visit_u64 "a whole number",
        deserialize_u32 visit_u32 "a whole number"
    }

    fn deserialize_enum<V: serde::de::Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(serde::de::value::StrDeserializer::new(self.0))
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use noetl_contract::{Ring, Tenant, Version};

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        version: Option<Version>,
        limit: Option<u32>,
        #[serde(default)]
        follow: bool,
        tenant: Option<Tenant>,
        ring: Option<Ring>,
    }

    fn field_of(problem: &Problem) -> String {
        problem.document("r")["field"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_query_is_read_into_types() {
        let sample: Sample = query("version=1.2.3&limit=5&follow=true&tenant=acme&ring=pure").expect("valid");
        assert_eq!(sample.limit, Some(5));
        assert_eq!(sample.version, Some(Version::new(1, 2, 3)));
        assert_eq!(sample.ring, Some(Ring::Pure));
        assert!(sample.follow);
        assert_eq!(query::<Sample>("version=&limit=").expect("empty values are absent ones").limit, None);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for (text, field) in [
            ("limit=many", "limit"),
            ("verison=1.0.0", "verison"),
            ("version=one", "version"),
            ("follow=yes", "follow"),
            ("tenant=System", "tenant"),
            ("ring=root", "ring"),
        ] {
            let problem = query::<Sample>(text).expect_err("must be refused");
            assert_eq!(field_of(&problem), field, "for {text}: {problem:?}");
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[expect(dead_code, reason = "only its reading is tested")]
        version: Version,
        #[expect(dead_code, reason = "only its reading is tested")]
        reason: Option<String>,
    }

    #[test]
    fn a_wrong_field_of_a_body_is_named() {
        for (text, field) in [
            (r#"{"version":1}"#, "version"),
            (r#"{"version":"x"}"#, "version"),
            (r#"{}"#, "version"),
            ("", "version"),
            (r#"{"version":"1.0.0","why":"x"}"#, "why"),
            (r#"{"version":"1.0.0","reason":5}"#, "reason"),
        ] {
            let problem = parse_document::<Body>(&HeaderMap::new(), &Bytes::from(text)).expect_err("must be refused");
            assert_eq!(field_of(&problem), field, "for {text}: {problem:?}");
        }
        assert!(parse_document::<Body>(&HeaderMap::new(), &Bytes::from_static(b"{\"version\":\"1.0.0\"} x")).is_err());
    }

    #[test]
    fn a_list_of_capabilities_names_the_wrong_one() {
        assert_eq!(capabilities("grant", "kv, log").expect("valid").to_string(), "log, kv");
        assert!(capabilities("grant", "none").expect("valid").is_empty());
        let problem = capabilities("grant", "kv,telepathy").expect_err("unknown");
        assert!(problem.document("r")["detail"].as_str().is_some_and(|detail| detail.contains("telepathy")));
    }
}
