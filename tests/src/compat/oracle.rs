//! What has to come of a playbook, as data: `oracles.toml` of the folder itself, or the one that comes with the project.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

const FILE: &str = "oracles.toml";
/// For folders that have none of their own.
const USUAL: &str = include_str!("../../compat/oracles.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oracles {
    #[serde(default)]
    pub hosts: Hosts,
    #[serde(default)]
    pub prepare: Prepare,
    #[serde(default)]
    pub absent: Absent,
    #[serde(default, rename = "playbook")]
    playbooks: Vec<Oracle>,
}

/// Hosts that playbooks name and what is in their place.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// The HTTP server of the tests.
    #[serde(default)]
    pub stub: Vec<String>,
    /// The server that runs the playbooks.
    #[serde(default)]
    pub server: Vec<String>,
}

/// What is there before the first run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// For the private database.
    #[serde(default)]
    pub sql: String,
    /// Folders of the granted folder that hold the scripts of the playbooks' folder.
    #[serde(default)]
    pub scripts: Vec<String>,
}

/// What is known not to be here.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    /// Modules of Python, by their first name. One that is not listed and is missed is a failure.
    #[serde(default)]
    pub modules: Vec<String>,
}

/// What a failed step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failures {
    #[default]
    Strict,
    Lenient,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Oracle {
    /// Below the folder.
    pub file: String,
    pub payload: Map<String, Json>,
    pub failures: Failures,
    pub status: String,
    /// It has to be refused when it is registered.
    pub rejected: bool,
    pub timeout_secs: u64,
    /// Steps that failed, in order, of an execution that ended.
    pub failed_steps: Option<Vec<String>>,
    /// Events of the types that are named here, in this order and no others: `command.issued start`.
    pub order: Vec<String>,
    pub events: Vec<EventCount>,
    pub outputs: Vec<OutputCheck>,
    pub sql: Vec<SqlCheck>,
    pub http: Vec<HttpCheck>,
    /// Executions of other playbooks that this one starts.
    pub children: Option<usize>,
    /// Row counts of the benchmark for as many patients as the payload says.
    pub patients: bool,
}

impl Default for Oracle {
    fn default() -> Self {
        Self {
            file: String::new(),
            payload: Map::new(),
            failures: Failures::Strict,
            status: "COMPLETED".to_owned(),
            rejected: false,
            timeout_secs: 240,
            failed_steps: None,
            order: Vec::new(),
            events: Vec::new(),
            outputs: Vec::new(),
            sql: Vec::new(),
            http: Vec::new(),
            children: None,
            patients: false,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCount {
    pub event: String,
    pub step: Option<String>,
    pub count: usize,
}

/// Something in the last result of a step; of an iteration, when its number is given.
#[derive(Debug, Clone, Deserialize)]
pub struct OutputCheck {
    pub step: String,
    pub iteration: Option<u64>,
    /// A JSON pointer; the whole when left out.
    #[serde(default)]
    pub at: String,
    #[serde(flatten)]
    pub wish: Wish,
}

/// Rows of a query, as text; `{execution}` is the execution's id.
#[derive(Debug, Clone, Deserialize)]
pub struct SqlCheck {
    pub query: String,
    #[serde(flatten)]
    pub wish: Wish,
}

/// Something the HTTP server answers afterwards, or how many requests of a kind it had: `GET /api/v1/flaky`.
#[derive(Debug, Clone, Deserialize)]
pub struct HttpCheck {
    pub get: Option<String>,
    pub requests: Option<String>,
    #[serde(default)]
    pub at: String,
    #[serde(flatten)]
    pub wish: Wish,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Wish {
    pub is: Option<Json>,
    pub at_least: Option<f64>,
    /// A text in it.
    pub has: Option<String>,
    /// There is nothing.
    #[serde(default)]
    pub absent: bool,
}

impl Wish {
    /// What is wrong with a value, if something is.
    pub fn problem(&self, found: &Json) -> Option<String> {
        if self.absent && !found.is_null() {
            return Some(format!("is {found} and not absent"));
        }
        if let Some(wanted) = &self.is
            && !same(wanted, found)
        {
            return Some(format!("is {found} and not {wanted}"));
        }
        if let Some(least) = self.at_least
            && found.as_f64().is_none_or(|number| number < least)
        {
            return Some(format!("is {found}, less than {least}"));
        }
        if let Some(part) = &self.has
            && !found.as_str().map_or_else(|| found.to_string(), str::to_owned).contains(part.as_str())
        {
            return Some(format!("is {found}, without `{part}`"));
        }
        None
    }
}

/// Numbers are the same whichever way they are written.
fn same(wanted: &Json, found: &Json) -> bool {
    match (wanted, found) {
        (Json::Number(wanted), Json::Number(found)) => wanted.as_f64() == found.as_f64(),
        (Json::Array(wanted), Json::Array(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| same(wanted, found))
        }
        (Json::Object(wanted), Json::Object(found)) => {
            let has = |(name, value): (&String, &Json)| found.get(name).is_some_and(|found| same(value, found));
            wanted.len() == found.len() && wanted.iter().all(has)
        }
        _ => wanted == found,
    }
}

impl Oracles {
    pub fn of(folder: &Path) -> Result<Self, String> {
        let own = folder.join(FILE);
        let (text, name) = match std::fs::read_to_string(&own) {
            Ok(text) => (text, own.display().to_string()),
            Err(_) => (USUAL.to_owned(), format!("tests/compat/{FILE}")),
        };
        toml::from_str(&text).map_err(|error| format!("{name}: {error}"))
    }

    /// The module that a failure says is missing, if it is one that is known not to be here.
    pub fn absent_module<'t>(&self, why: &'t str) -> Option<&'t str> {
        let named = why.split("No module named ").nth(1)?;
        let module = named.trim_start_matches('\'').split(['\'', '\n', ' ']).next()?;
        let first = module.split('.').next()?;
        self.absent.modules.iter().any(|absent| absent == first).then_some(module)
    }

    pub fn for_file(&self, file: &str) -> Option<&Oracle> {
        self.playbooks.iter().find(|oracle| oracle.file == file)
    }
}

impl Oracle {
    /// The payload, with other sizes of the benchmark where it has them.
    pub fn payload_with(&self, facilities: Option<u64>, patients: Option<u64>) -> Map<String, Json> {
        let mut payload = self.payload.clone();
        for (name, number) in [("num_facilities", facilities), ("patients_per_facility", patients)] {
            if let (true, Some(number)) = (self.patients, number) {
                payload.insert(name.to_owned(), number.into());
            }
        }
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oracles_that_come_with_the_project_can_be_read() {
        for folder in [crate::compat::own_folder(), Path::new("/nowhere").to_owned()] {
            let oracles = Oracles::of(&folder).expect("oracles");
            assert!(!oracles.playbooks.is_empty());
            for oracle in &oracles.playbooks {
                assert!(matches!(oracle.status.as_str(), "COMPLETED" | "FAILED"), "{}", oracle.file);
            }
        }
    }

    #[test]
    fn a_module_of_the_standard_library_has_to_be_here() {
        let oracles = Oracles::of(Path::new("/nowhere")).expect("oracles");
        let why =
            |module: &str| format!("step `a` failed: ModuleNotFoundError: No module named '{module}' (code, line 1)");
        assert_eq!(oracles.absent_module(&why("google.cloud")), Some("google.cloud"));
        for module in ["sqlite3", "json", "urllib.request"] {
            assert_eq!(oracles.absent_module(&why(module)), None, "{module}");
        }
        assert_eq!(oracles.absent_module("it broke"), None);
    }

    #[test]
    fn a_wish_is_held_against_a_value() {
        let wish = Wish { is: Some(Json::from(3)), ..Wish::default() };
        assert_eq!(wish.problem(&Json::from(3.0)), None);
        assert_eq!(wish.problem(&Json::from("3")), Some("is \"3\" and not 3".to_owned()));
        let wish = Wish { at_least: Some(2.0), ..Wish::default() };
        assert_eq!(wish.problem(&Json::from(1)), Some("is 1, less than 2".to_owned()));
        let wish = Wish { has: Some("ab".to_owned()), ..Wish::default() };
        assert_eq!(wish.problem(&Json::from("xaby")), None);
    }
}
