//! Events of older schemas, lifted to the present one when they are read.
//!
//! An upcaster is a pure function for one schema (the name of an event: `entered`, `reported`, ...) and one version of
//! it. It answers with the body of a higher version, and upcasters are applied until none fits. A line says its version
//! in `v`; without it the version is 1.
//!
//! Today every event is at version 1 and the registry is empty. The digest of the registry is part of every replay, so
//! that two answers with different checksums can be told apart by how they read the chain.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::canonical;

/// Lifts the body of an event by at least one version.
pub type Lift = fn(Json) -> Json;

#[derive(Debug, Clone, Default)]
pub struct Upcasters {
    by_schema: BTreeMap<(String, u32), (u32, Lift)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHigher {
    pub schema: String,
    pub from: u32,
    pub to: u32,
}

impl std::fmt::Display for NotHigher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "an upcaster of `{}` goes from version {} to {}: it has to raise the version",
            self.schema, self.from, self.to
        )
    }
}

impl std::error::Error for NotHigher {}

impl Upcasters {
    /// Those of this version of the code.
    pub fn current() -> Self {
        Self::default()
    }

    pub fn with(mut self, schema: &str, from: u32, to: u32, lift: Lift) -> Result<Self, NotHigher> {
        if to <= from {
            return Err(NotHigher { schema: schema.to_owned(), from, to });
        }
        self.by_schema.insert((schema.to_owned(), from), (to, lift));
        Ok(self)
    }

    pub fn is_empty(&self) -> bool {
        self.by_schema.is_empty()
    }

    /// The same for the same set of (schema, from, to).
    pub fn digest(&self) -> String {
        let entries = self.by_schema.iter().map(|((schema, from), (to, _))| json!([schema, from, to]));
        canonical::checksum(&Json::Array(entries.collect()))
    }

    /// The line with its event as of the newest version that is known.
    pub fn lift(&self, mut line: Json) -> Json {
        let mut version = line.get("v").and_then(Json::as_u64).and_then(|v| u32::try_from(v).ok()).unwrap_or(1);
        let Some(event) = line.get_mut("e").and_then(Json::as_object_mut) else { return line };
        let Some(schema) = event.keys().next().cloned() else { return line };
        while let Some((to, lift)) = self.by_schema.get(&(schema.clone(), version)) {
            if let Some(body) = event.get_mut(&schema) {
                *body = lift(body.take());
            }
            version = *to;
        }
        line["v"] = version.into();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rename(mut body: Json) -> Json {
        let old = body.as_object_mut().and_then(|fields| fields.remove("name")).unwrap_or_default();
        body["step"] = old;
        body
    }

    fn count(mut body: Json) -> Json {
        body["run"] = 1.into();
        body
    }

    #[test]
    fn versions_are_climbed_one_after_another() {
        let registry =
            Upcasters::default().with("entered", 1, 2, rename).and_then(|all| all.with("entered", 2, 3, count));
        let registry = registry.expect("both raise the version");
        let lifted = registry.lift(json!({"id": 1, "e": {"entered": {"name": "a"}}}));
        assert_eq!(lifted, json!({"id": 1, "e": {"entered": {"step": "a", "run": 1}}, "v": 3}));
        let second = registry.lift(json!({"id": 1, "v": 2, "e": {"entered": {"step": "a"}}}));
        assert_eq!(second["e"]["entered"], json!({"step": "a", "run": 1}));
        assert_eq!(registry.lift(json!({"e": {"set": {}}}))["v"], 1);
    }

    #[test]
    fn an_upcaster_that_does_not_raise_the_version_is_refused() {
        assert!(Upcasters::default().with("set", 2, 2, count).is_err());
    }

    #[test]
    fn the_digest_names_the_set() {
        let one = Upcasters::default().with("entered", 1, 2, rename).expect("raises");
        assert_ne!(one.digest(), Upcasters::current().digest());
        assert_eq!(one.digest(), Upcasters::default().with("entered", 1, 2, count).expect("raises").digest());
    }
}
