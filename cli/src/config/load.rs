//! The effective configuration: flags over environment over file over defaults, each value with its origin.
//!
//! Invariants:
//! 1. Nothing is guessed: an unknown key, a wrong type, a value out of bounds, or an environment variable that
//!    looks like one of ours and is not, refuses the start. Silent defaults are how settings get lost.
//! 2. All problems are found in one go, each with its place.
//!
//! Environment variables that a cluster injects for a service named like one of our sections
//! (`NOETL_SERVER_SERVICE_HOST`, `NOETL_SERVER_PORT_8082_TCP`) are not ours and are left alone.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::suggest::nearest;
use super::table::{Row, TABLE, Value, row};
use crate::args::SettingFlag;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { file: String, line: usize },
    Env(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Env(name) => write!(f, "${name}"),
            Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// Something wrong with the configuration. Line and column count from 1; the environment has neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: Option<String>,
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}:{}:{}: {}", self.line, self.column, self.message),
            None => write!(f, "environment: {}", self.message),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Setting {
    pub value: Value,
    pub origin: Origin,
}

/// One checked value a row of the table.
#[derive(Debug, Clone)]
pub struct Settings(BTreeMap<&'static str, Setting>);

/// What is read, in the order in which the later one wins.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// Name for messages, and text.
    pub file: Option<(&'a str, &'a str)>,
    pub env: Vec<(String, String)>,
    pub flags: Vec<SettingFlag>,
}

impl Settings {
    /// Reads all sources, or says everything that is wrong with them.
    pub fn load(sources: &Sources<'_>) -> Result<Self, Vec<Problem>> {
        let mut settings = Self::defaults();
        let mut problems = Vec::new();
        if let Some((file, text)) = sources.file {
            settings.read_file(file, text, &mut problems);
        }
        settings.read_env(&sources.env, &mut problems);
        for (key, text, flag) in &sources.flags {
            let row = row(key).expect("flags name rows of the table");
            match row.kind.parse_text(text) {
                Ok(value) => settings.set(row, value, Origin::Flag(flag)),
                Err(message) => problems.push(in_env(format!("{flag}: {message}"))),
            }
        }
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    pub fn defaults() -> Self {
        Self(
            TABLE
                .iter()
                .map(|row| (row.key, Setting { value: row.default_value(), origin: Origin::Default }))
                .collect(),
        )
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static Row, &Setting)> {
        TABLE.iter().map(|row| (row, self.get(row.key)))
    }

    fn set(&mut self, row: &'static Row, value: Value, origin: Origin) {
        self.0.insert(row.key, Setting { value, origin });
    }

    pub fn get(&self, key: &str) -> &Setting {
        self.0.get(key).unwrap_or_else(|| panic!("`{key}` is not a row of the table"))
    }

    pub fn text(&self, key: &str) -> &str {
        match &self.get(key).value {
            Value::Text(text) => text,
            other => panic!("`{key}` is {other:?}, not text"),
        }
    }

    pub fn number(&self, key: &str) -> u64 {
        match &self.get(key).value {
            Value::Number(number) => *number,
            other => panic!("`{key}` is {other:?}, not a number"),
        }
    }

    pub fn flag(&self, key: &str) -> bool {
        match &self.get(key).value {
            Value::Flag(flag) => *flag,
            other => panic!("`{key}` is {other:?}, not a flag"),
        }
    }

    pub fn list(&self, key: &str) -> &[String] {
        match &self.get(key).value {
            Value::List(list) => list,
            other => panic!("`{key}` is {other:?}, not a list"),
        }
    }

    /// A secret; nothing when it is empty.
    pub fn secret(&self, key: &str) -> Option<&str> {
        match &self.get(key).value {
            Value::Secret(secret) => Some(secret.as_str()).filter(|secret| !secret.is_empty()),
            other => panic!("`{key}` is {other:?}, not a secret"),
        }
    }

    fn read_file(&mut self, file: &str, text: &str, problems: &mut Vec<Problem>) {
        let mut place = |at: Range<usize>, message: String| {
            let (line, column) = line_and_column(text, at.start);
            problems.push(Problem { file: Some(file.to_owned()), line, column, message });
        };
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            place(error.span().unwrap_or(0..0), error.message().to_owned());
        }
        for (section, entries) in document.get_ref() {
            let name = section.get_ref().as_ref();
            if !TABLE.iter().any(|row| row.section() == name) {
                place(section.span(), unknown("section", name, TABLE.iter().map(Row::section)));
                continue;
            }
            let DeValue::Table(entries) = entries.get_ref() else {
                place(section.span(), format!("`{name}` is a section: write `[{name}]` and its options below"));
                continue;
            };
            for (entry, value) in entries {
                let key = format!("{name}.{}", entry.get_ref());
                let Some(row) = row(&key) else {
                    place(entry.span(), unknown("option", &key, TABLE.iter().map(|row| row.key)));
                    continue;
                };
                match row.kind.parse_toml(value.get_ref()) {
                    Ok(value) => {
                        let line = line_and_column(text, entry.span().start).0;
                        self.set(row, value, Origin::File { file: file.to_owned(), line });
                    }
                    Err(message) => place(value.span(), format!("{key}: {message}")),
                }
            }
        }
    }

    fn read_env(&mut self, env: &[(String, String)], problems: &mut Vec<Problem>) {
        let names: Vec<(String, &'static Row)> = TABLE.iter().map(|row| (row.env(), row)).collect();
        for (name, text) in env {
            if let Some((_, row)) = names.iter().find(|(known, _)| known == name) {
                match row.kind.parse_text(text) {
                    Ok(value) => self.set(row, value, Origin::Env(name.clone())),
                    Err(message) => problems.push(in_env(format!("{name}: {message}"))),
                }
            } else if is_section_variable(name) && !is_service_link(name) {
                problems.push(in_env(unknown("variable", name, names.iter().map(|(known, _)| known.as_str()))));
            }
        }
    }
}

/// The process's environment; values that are not text cannot be meant for us.
pub fn process_env() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("NOETL_"))
        .collect()
}

/// Reads the text of a configuration file.
pub fn read_text(file: &Path) -> crate::failure::Outcome<String> {
    std::fs::read_to_string(file).map_err(crate::failure::io("read the configuration", file))
}

fn in_env(message: String) -> Problem {
    Problem { file: None, line: 0, column: 0, message }
}

fn unknown<'a>(what: &str, given: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(given, known) {
        Some(near) => format!("unknown {what} `{given}`: did you mean `{near}`?"),
        None => format!("unknown {what} `{given}`: `noetl config docs` lists all of them"),
    }
}

fn is_section_variable(name: &str) -> bool {
    let rest = name.strip_prefix("NOETL_").unwrap_or_default();
    TABLE.iter().any(|row| rest.starts_with(&format!("{}_", row.section().to_uppercase())))
}

fn is_service_link(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || name.ends_with("_PORT")
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, env: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::load(&Sources { file: Some(("noetl.toml", file)), env, flags: vec![] })
    }

    #[test]
    fn flags_go_over_environment_over_file_over_default() {
        let file = "[host]\nmax_cpu_ms = 10\nmax_wall_ms = 1_000\nthreads = 1\n";
        let env = vec![
            ("NOETL_HOST_MAX_WALL_MS".to_owned(), "30".to_owned()),
            ("NOETL_SERVER_LISTEN".to_owned(), "127.0.0.1:1".to_owned()),
        ];
        let flags = vec![("server.listen", "127.0.0.1:0".to_owned(), "--listen")];
        let settings = Settings::load(&Sources { file: Some(("f.toml", file)), env, flags }).expect("valid");
        assert_eq!(settings.number("host.max_cpu_ms"), 10);
        assert_eq!(settings.get("host.max_cpu_ms").origin, Origin::File { file: "f.toml".into(), line: 2 });
        assert_eq!(settings.number("host.max_wall_ms"), 30);
        assert_eq!(settings.text("server.listen"), "127.0.0.1:0");
        assert_eq!(settings.get("server.listen").origin, Origin::Flag("--listen"));
        assert_eq!(settings.get("log.level").origin, Origin::Default);
    }

    #[test]
    fn every_problem_is_told_with_its_place() {
        let file = "[server]\nlisten = \"nowhere\"\nlisen = \"127.0.0.1:1\"\n\n[hots]\nx = 1\n[host]\n  threads = \"4\"\n\
                    max_cpu_ms = 0\n[rollback]\nclasses = [\"trap\", \"timout\"]\n";
        let problems = load(file, &[("NOETL_HOST_MAX_MEMORY_MBS", "1")]).expect_err("many problems");
        let text: Vec<_> = problems.iter().map(ToString::to_string).collect();
        let has = |wanted: &str| assert!(text.iter().any(|line| line.contains(wanted)), "{wanted} not in {text:#?}");
        has("noetl.toml:2:10: server.listen: `nowhere` is not an address");
        has("noetl.toml:3:1: unknown option `server.lisen`: did you mean `server.listen`?");
        has("noetl.toml:5:2: unknown section `hots`: did you mean `host`?");
        has("noetl.toml:8:13: host.threads: must be a whole number, not a string");
        has("noetl.toml:9:14: host.max_cpu_ms: 0 is out of range");
        has("`timout` is not known: did you mean `timeout`?");
        has("unknown variable `NOETL_HOST_MAX_MEMORY_MBS`: did you mean `NOETL_HOST_MAX_MEMORY_MB`?");
        assert_eq!(problems.len(), 7, "{text:#?}");
    }

    #[test]
    fn broken_toml_is_told_with_its_place() {
        let problems = load("[server]\nlisten = \n", &[]).expect_err("broken");
        assert_eq!((problems[0].line, problems[0].file.as_deref()), (2, Some("noetl.toml")));
    }

    #[test]
    fn variables_a_cluster_injects_for_a_service_are_left_alone() {
        let links = [
            ("NOETL_SERVER_SERVICE_HOST", "10.0.0.1"),
            ("NOETL_SERVER_PORT", "tcp://x"),
            ("NOETL_SERVER_PORT_80_TCP", "x"),
        ];
        assert!(load("", &links).is_ok());
    }

    #[test]
    fn variables_of_the_command_line_are_not_options() {
        assert!(load("", &[("NOETL_DATA", "/x"), ("NOETL_SERVER", "http://x"), ("NOETL_TOKEN", "t")]).is_ok());
    }
}
