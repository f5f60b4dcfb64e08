//! What is signed: an in-toto statement about one component, with SLSA provenance where it is known how it was made.
//!
//! The provenance stands beside the bytes and not inside of them, although a custom section could carry it. Were it
//! inside, the digest would depend on who built and when the sources were committed: whoever builds the same sources
//! again could not compare, and a push repeated after a commit would be another version with the same number.
//!
//! Fields that others put into a statement are read over; a statement is judged by its subject and its provenance.

use std::collections::BTreeMap;

use noetl_contract::{Digest, PluginPath, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const TYPE: &str = "https://in-toto.io/Statement/v1";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The predicate of a statement that says nothing but that its signers stand by the subject.
const APPROVAL: &str = "https://noetl.io/approval/v1";
const BUILD_TYPE: &str = "https://noetl.io/plugin-build/v1";

/// What a statement says.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub path: PluginPath,
    pub version: Version,
    pub digest: Digest,
    /// How it was made, as far as that is known; none when the signers only stand by the bytes.
    pub provenance: Option<Build>,
}

/// How a component was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Who built it, in their own words; a signature says who stands by it.
    pub builder: String,
    /// The program that built it.
    pub tool: String,
    /// The compiler behind it.
    pub toolchain: String,
    /// The sources, when they are under version control.
    pub source: Option<Source>,
}

/// Where the sources were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub repository: Option<String>,
    pub commit: String,
    /// The sources differed from the commit.
    pub dirty: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
    #[serde(default)]
    predicate: Value,
}

#[derive(Deserialize)]
struct Subject {
    name: String,
    digest: BTreeMap<String, String>,
}

impl Statement {
    pub fn to_json(&self) -> Vec<u8> {
        let (predicate_type, predicate) = match &self.provenance {
            Some(provenance) => (PROVENANCE, self.predicate(provenance)),
            None => (APPROVAL, json!({})),
        };
        let statement = json!({
            "_type": TYPE,
            "subject": [{ "name": format!("{}@{}", self.path, self.version), "digest": { "sha256": self.digest.hex() } }],
            "predicateType": predicate_type,
            "predicate": predicate,
        });
        statement.to_string().into_bytes()
    }

    fn predicate(&self, provenance: &Build) -> Value {
        let sources: Vec<Value> = provenance.source.iter().map(Source::to_value).collect();
        json!({
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "path": self.path, "version": self.version },
                "internalParameters": { "toolchain": provenance.toolchain },
                "resolvedDependencies": sources,
            },
            "runDetails": { "builder": { "id": provenance.builder, "version": { "tool": provenance.tool } } },
        })
    }

    /// Reads a statement; the error says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let wire: Wire = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if wire.kind != TYPE {
            return Err(format!("its type is not {TYPE}"));
        }
        let [subject] = wire.subject.as_slice() else {
            return Err("it is not about exactly one component".to_owned());
        };
        let digest = subject.digest.get("sha256").ok_or("its subject has no sha256 digest")?;
        let digest: Digest = digest.parse().map_err(|error| format!("its subject: {error}"))?;
        let name = subject.name.split_once('@').ok_or("its subject is not named `path@version`")?;
        let path = PluginPath::new(name.0).map_err(|error| format!("its subject: {error}"))?;
        let version = name.1.parse().map_err(|error| format!("its subject's version: {error}"))?;
        let provenance = (wire.predicate_type == PROVENANCE).then(|| Build::of(&wire.predicate)).flatten();
        Ok(Self { path, version, digest, provenance })
    }
}

impl Build {
    /// What a SLSA predicate says of this; none when it is about another kind of build.
    fn of(predicate: &Value) -> Option<Self> {
        let (build, run) = (&predicate["buildDefinition"], &predicate["runDetails"]);
        if build["buildType"] != BUILD_TYPE {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let source = build["resolvedDependencies"].as_array().and_then(|list| list.first()).and_then(Source::of);
        Some(Self {
            builder: text(&run["builder"]["id"]),
            tool: text(&run["builder"]["version"]["tool"]),
            toolchain: text(&build["internalParameters"]["toolchain"]),
            source,
        })
    }
}

impl Source {
    fn to_value(&self) -> Value {
        let mut value = json!({ "digest": { "gitCommit": self.commit }, "annotations": { "dirty": self.dirty } });
        if let Some(repository) = &self.repository {
            value["uri"] = json!(repository);
        }
        value
    }

    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            repository: value["uri"].as_str().map(str::to_owned),
            commit: value["digest"]["gitCommit"].as_str()?.to_owned(),
            dirty: value["annotations"]["dirty"].as_bool().unwrap_or(true),
        })
    }
}
