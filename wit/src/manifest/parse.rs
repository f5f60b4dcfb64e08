//! The parser of `plugin.toml`: walks the file once, looks every key up in the table of options, and
//! collects problems instead of stopping at the first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use semver::VersionReq;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::{nearest, place};
use super::options::{self, Kind, MIB, OPTIONS, OptionRow};
use super::{
    BuildPolicy, BuildTarget, FailurePolicy, HostPattern, HttpPolicy, InstancePolicy, Language, Manifest,
    ManifestErrors, Problem, SourcePolicy, World,
};
use crate::ids::{PluginPath, Version};
use crate::limits::Limits;
use crate::packages;
use crate::rings::{Capability, CapabilitySet};

/// A value that passed the check of its row.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Path(PluginPath),
    Version(Version),
    Text(String),
    Flag(bool),
    Number(u64),
    Capabilities(CapabilitySet),
    Hosts(Vec<HostPattern>),
    Requirements(BTreeMap<String, VersionReq>),
}

/// A problem before its place is known in lines.
struct Finding {
    at: usize,
    key: Option<String>,
    message: String,
    suggestion: Option<String>,
}

type Findings = Vec<Finding>;

pub(super) fn parse(text: &str) -> Result<Manifest, ManifestErrors> {
    let mut findings = Findings::new();
    let values = read(text, &mut findings);
    if findings.is_empty() {
        return Ok(build(&values));
    }
    findings.sort_by_key(|finding| finding.at);
    let problem = |finding: Finding| {
        let (line, column) = place(text, finding.at);
        Problem { line, column, key: finding.key, message: finding.message, suggestion: finding.suggestion }
    };
    Err(ManifestErrors(findings.into_iter().map(problem).collect()))
}

/// Every value the file or the table of options gives. Complete when nothing was found wrong.
fn read(text: &str, findings: &mut Findings) -> BTreeMap<&'static str, Value> {
    let mut values = BTreeMap::new();
    if text.len() > super::section::MAX_BYTES {
        findings.push(Finding {
            at: 0,
            key: None,
            message: format!("the file has {} bytes", text.len()),
            suggestion: Some(format!("keep it below {}", super::section::MAX_BYTES)),
        });
        return values;
    }
    let (file, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        findings.extend(errors.iter().map(|error| Finding {
            at: error.span().map_or(0, |span| span.start),
            key: None,
            message: format!("this is not TOML: {}", error.message()),
            suggestion: None,
        }));
        return values;
    }

    let mut places = BTreeMap::new();
    let mut take = |row: &'static OptionRow, value: &Spanned<DeValue<'_>>, findings: &mut Findings| {
        places.insert(row.key, value.span());
        if let Some(checked) = check(row, value, findings) {
            values.insert(row.key, checked);
        }
    };
    for (key, value) in file.get_ref() {
        let name = key.get_ref().as_ref();
        if let Some(row) = options::option(name) {
            take(row, value, findings);
        } else if options::tables().contains(&name) {
            let Some(table) = value.get_ref().as_table() else {
                findings.push(Finding {
                    at: value.span().start,
                    key: Some(name.to_owned()),
                    message: format!("`{name}` is {}", article(value.get_ref())),
                    suggestion: Some(format!("make it a table: `[{name}]` and its options below")),
                });
                continue;
            };
            for (inner, value) in table {
                let dotted = format!("{name}.{}", inner.get_ref());
                match options::option(&dotted) {
                    Some(row) => take(row, value, findings),
                    None => findings.push(unknown(&dotted, inner.span())),
                }
            }
        } else {
            findings.push(unknown(name, key.span()));
        }
    }
    fill(&mut values, &places, findings);
    if !places.contains_key("limits.memory_mb") && is_source(&values) {
        values.insert("limits.memory_mb", Value::Number(SOURCE_MEMORY_MB));
    }
    check_together(&values, &places, findings);
    values
}

/// Gives every option the file does not have its default, or complains when it has none.
fn fill(
    values: &mut BTreeMap<&'static str, Value>,
    places: &BTreeMap<&'static str, Range<usize>>,
    findings: &mut Findings,
) {
    for row in OPTIONS.iter().filter(|row| !places.contains_key(row.key)) {
        match row.default {
            Some(_) => {
                values.insert(row.key, default_of(row));
            }
            None => findings.push(Finding {
                at: 0,
                key: Some(row.key.to_owned()),
                message: format!("`{}` is missing", row.key),
                suggestion: Some(format!("add `{} = {}`", row.key, row.example)),
            }),
        }
    }
}

/// The default of an option that has one.
pub(super) fn default_of(row: &'static OptionRow) -> Value {
    let literal = row.default.expect("the caller asks only for rows with a default");
    literal_value(row, literal).expect("defaults are compiled in and tested")
}

/// A TOML literal checked as the value of an option.
pub(super) fn literal_value(row: &'static OptionRow, literal: &str) -> Option<Value> {
    let mut findings = Findings::new();
    let value = DeValue::parse(literal).ok()?;
    check(row, &value, &mut findings).filter(|_| findings.is_empty())
}

/// What holds between options.
fn check_together(
    values: &BTreeMap<&'static str, Value>,
    places: &BTreeMap<&'static str, Range<usize>>,
    findings: &mut Findings,
) {
    let Some(Value::Capabilities(capabilities)) = values.get("capabilities") else { return };
    let start = |key: &str| places.get(key).map_or(0, |span| span.start);
    for capability in capabilities.iter() {
        for needed in capability.needs().iter().filter(|needed| !capabilities.contains(**needed)) {
            findings.push(Finding {
                at: start("capabilities"),
                key: Some("capabilities".to_owned()),
                message: format!("`{capability}` needs `{needed}`, because its functions take and give its types"),
                suggestion: Some(format!("add \"{needed}\" to the list")),
            });
        }
    }
    let is_tool = matches!(values.get("world"), Some(Value::Text(world)) if world == World::Tool.name());
    let world = match values.get("world") {
        Some(Value::Text(world)) => World::from_name(world),
        _ => None,
    };
    let resident = matches!(values.get("instance"), Some(Value::Text(instance)) if instance == "resident");
    if let Some(world) = world.filter(|world| world.is_service() && !resident) {
        findings.push(Finding {
            at: start("world"),
            key: Some("instance".to_owned()),
            message: format!("a component of the world `{world}` is a service of the engine and stays in memory"),
            suggestion: Some("write `instance = \"resident\"`".to_owned()),
        });
    }
    check_source(values, &start, findings);
    if is_tool && !capabilities.contains(Capability::Payload) {
        findings.push(Finding {
            at: start("capabilities"),
            key: Some("capabilities".to_owned()),
            message: "a tool takes and gives payloads, so it needs `payload`".to_owned(),
            suggestion: Some("add \"payload\" to the list".to_owned()),
        });
    }
    if matches!(values.get("http.allow"), Some(Value::Hosts(hosts)) if !hosts.is_empty())
        && !capabilities.contains(Capability::HttpClient)
    {
        findings.push(Finding {
            at: start("http.allow"),
            key: Some("http.allow".to_owned()),
            message: "hosts are allowed, but the plugin does not ask for `http-client`".to_owned(),
            suggestion: Some("add \"http-client\" to `capabilities`, or remove the hosts".to_owned()),
        });
    }
}

/// Default of `limits.memory_mb` for source text: its sandbox begins with an interpreter in it.
const SOURCE_MEMORY_MB: u64 = 128;

fn is_source(values: &BTreeMap<&'static str, Value>) -> bool {
    matches!(values.get("source.language"), Some(Value::Text(language)) if !language.is_empty())
}

/// A plugin that is source text names both its language and where it begins.
fn check_source(values: &BTreeMap<&'static str, Value>, start: &dyn Fn(&str) -> usize, findings: &mut Findings) {
    let text = |key: &str| match values.get(key) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(language), Some(entry)) = (text("source.language"), text("source.entry")) else { return };
    let mut refuse = |key: &str, message: &str, suggestion: &str| {
        findings.push(Finding {
            at: start(key),
            key: Some(key.to_owned()),
            message: message.to_owned(),
            suggestion: Some(suggestion.to_owned()),
        });
    };
    match (language, entry) {
        ("", "") => {}
        ("", _) => {
            refuse("source.entry", "`source.entry` is of no use alone", "add `language = \"python\"` or `\"js\"`")
        }
        (language, "") => {
            // The names the templates use.
            let example = match language {
                "python" => "add `entry = \"main.py\"` to `[source]`",
                "js" => "add `entry = \"main.js\"` to `[source]`",
                _ => "add `entry` with the name of the file to begin with to `[source]`",
            };
            refuse("source.language", "`source.entry` is missing", example);
        }
        _ if !matches!(text("world"), Some("transform" | "tool")) => {
            refuse("world", "source text can be a `transform` or a `tool`", "write `world = \"tool\"`");
        }
        _ => {}
    }
}

fn unknown(dotted: &str, span: Range<usize>) -> Finding {
    let (table, name) = dotted.rsplit_once('.').unwrap_or(("", dotted));
    let (message, suggestion) = match name {
        "ring" => (
            "a plugin cannot choose its ring".to_owned(),
            Some("remove `ring`: it follows from the path and the privilege of whoever pushes".to_owned()),
        ),
        "digest" => (
            "a plugin cannot state its digest".to_owned(),
            Some("remove `digest`: the registry computes it from the bytes".to_owned()),
        ),
        _ => (format!("unknown option `{dotted}`"), suggest(table, name, dotted)),
    };
    Finding { at: span.start, key: Some(dotted.to_owned()), message, suggestion }
}

/// The right spelling, or the table an option belongs to, or where to read on.
fn suggest(table: &str, name: &str, dotted: &str) -> Option<String> {
    let known = OPTIONS.iter().map(|row| row.key).chain(options::tables());
    if let Some(near) = nearest(dotted, known) {
        return Some(format!("did you mean `{near}`?"));
    }
    let elsewhere = OPTIONS.iter().find(|row| row.key.rsplit('.').next() == Some(name) && row.key != dotted);
    if let Some(row) = elsewhere {
        return Some(match row.key.split_once('.') {
            Some((home, _)) => format!("it belongs into the table `[{home}]`"),
            None => format!("it belongs to the top of the file, not into `[{table}]`"),
        });
    }
    Some("`noetl plugin schema` lists all options".to_owned())
}

/// Checks one value against its row.
fn check(row: &'static OptionRow, value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Value> {
    let key = row.key;
    let at = value.span().start;
    let mut refuse = |message: String, suggestion: String| {
        findings.push(Finding { at, key: Some(key.to_owned()), message, suggestion: Some(suggestion) });
    };
    let example = || format!("for example `{} = {}`", key.rsplit('.').next().unwrap_or(key), row.example);
    match (row.kind, value.get_ref()) {
        (Kind::Path, DeValue::String(text)) => match PluginPath::new(text.as_ref()) {
            Ok(path) => return Some(Value::Path(path)),
            Err(error) => refuse(error.to_string(), example()),
        },
        (Kind::Version, DeValue::String(text)) => match Version::parse(text) {
            Ok(version) => return Some(Value::Version(version)),
            Err(error) => refuse(format!("version `{text}` is not semver ({error})"), example()),
        },
        (Kind::Text { max }, DeValue::String(text)) if text.len() > max => {
            refuse(format!("`{key}` has {} bytes", text.len()), format!("keep it within {max}"));
        }
        (Kind::Text { .. }, DeValue::String(text)) => return Some(Value::Text(text.to_string())),
        (Kind::OneOf(words), DeValue::String(text)) => {
            if words.contains(&text.as_ref()) {
                return Some(Value::Text(text.to_string()));
            }
            let suggestion = match nearest(text, words.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("use {}", row.kind.describe()),
            };
            refuse(format!("`{key}` cannot be \"{text}\""), suggestion);
        }
        (Kind::Language, DeValue::String(text)) => match text.as_ref() {
            "" => return Some(Value::Text(String::new())),
            name => match Language::new(name) {
                Ok(language) => return Some(Value::Text(language.to_string())),
                Err(error) => refuse(error.to_string(), example()),
            },
        },
        (Kind::Flag, DeValue::Boolean(flag)) => return Some(Value::Flag(*flag)),
        (Kind::Number { min, max }, DeValue::Integer(number)) => {
            match i128::from_str_radix(number.as_str(), number.radix()).ok().and_then(|n| u64::try_from(n).ok()) {
                Some(number) if (min..=max).contains(&number) => return Some(Value::Number(number)),
                _ => refuse(format!("`{key}` cannot be {}", number.as_str()), format!("use {min} to {max}")),
            }
        }
        (Kind::Capabilities, DeValue::Array(_)) => return capabilities(key, value, findings),
        (Kind::Hosts, DeValue::Array(_)) => return hosts(key, value, findings),
        (Kind::Requirements, DeValue::Table(table)) => return requirements(key, table, findings),
        (kind, other) => refuse(format!("`{key}` is {}, not {}", article(other), kind.describe()), example()),
    }
    None
}

/// The elements of a list that are text, each with its place; others are reported.
fn words<'v>(key: &str, value: &'v Spanned<DeValue<'_>>, findings: &mut Findings) -> Vec<(usize, &'v str)> {
    let mut words = Vec::new();
    for element in value.get_ref().as_array().into_iter().flat_map(|list| list.iter()) {
        match element.get_ref().as_str() {
            Some(word) => words.push((element.span().start, word)),
            None => findings.push(Finding {
                at: element.span().start,
                key: Some(key.to_owned()),
                message: format!("an element of `{key}` is {}", article(element.get_ref())),
                suggestion: Some("put it in quotes".to_owned()),
            }),
        }
    }
    words
}

fn capabilities(key: &str, value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Value> {
    let before = findings.len();
    let mut set = CapabilitySet::EMPTY;
    for (at, word) in words(key, value, findings) {
        let (message, suggestion) = match word.parse::<Capability>() {
            Ok(capability) if set.contains(capability) => {
                (format!("capability `{word}` is listed twice"), "remove one".to_owned())
            }
            Ok(capability) => {
                set.insert(capability);
                continue;
            }
            Err(error) => match nearest(word, Capability::ALL.iter().map(|capability| capability.name())) {
                Some(near) => (format!("there is no capability `{word}`"), format!("did you mean \"{near}\"?")),
                None => (format!("there is no capability `{word}`"), error.rule.to_owned()),
            },
        };
        findings.push(Finding { at, key: Some(key.to_owned()), message, suggestion: Some(suggestion) });
    }
    (findings.len() == before).then_some(Value::Capabilities(set))
}

fn hosts(key: &str, value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Value> {
    let before = findings.len();
    let mut patterns = BTreeSet::new();
    for (at, word) in words(key, value, findings) {
        match HostPattern::new(word) {
            Ok(pattern) => {
                patterns.insert(pattern);
            }
            Err(error) => findings.push(Finding {
                at,
                key: Some(key.to_owned()),
                message: format!("`{word}` is not a host pattern"),
                suggestion: Some(error.rule.to_owned()),
            }),
        }
    }
    (findings.len() == before).then(|| Value::Hosts(patterns.into_iter().collect()))
}

fn requirements(key: &str, table: &DeTable<'_>, findings: &mut Findings) -> Option<Value> {
    let before = findings.len();
    let mut required = BTreeMap::new();
    for (package, value) in table {
        let name = package.get_ref().as_ref();
        let mut refuse = |at: usize, message: String, suggestion: String| {
            let key = Some(format!("{key}.\"{name}\""));
            findings.push(Finding { at, key, message, suggestion: Some(suggestion) });
        };
        if !packages::names().any(|known| known == name) {
            let suggestion = match nearest(name, packages::names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("use {}", packages::names().collect::<Vec<_>>().join(", ")),
            };
            refuse(package.span().start, format!("the contract has no package `{name}`"), suggestion);
            continue;
        }
        let example = format!("for example `\"{name}\" = \"0.1\"`");
        match value.get_ref().as_str().map(VersionReq::parse) {
            Some(Ok(requirement)) => {
                required.insert(name.to_owned(), requirement);
            }
            Some(Err(error)) => {
                refuse(value.span().start, format!("not a version requirement ({error})"), example);
            }
            None => {
                let message = format!("the requirement of `{name}` is {}", article(value.get_ref()));
                refuse(value.span().start, message, example);
            }
        }
    }
    (findings.len() == before).then_some(Value::Requirements(required))
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The manifest of a complete set of values.
fn build(values: &BTreeMap<&'static str, Value>) -> Manifest {
    macro_rules! value {
        ($kind:ident, $key:literal) => {
            match values.get($key) {
                Some(Value::$kind(value)) => value.clone(),
                _ => unreachable!("the row of `{}` has this kind, and a file without problems has all rows", $key),
            }
        };
    }
    let world = value!(Text, "world");
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Manifest {
        path: value!(Path, "path"),
        version: value!(Version, "version"),
        world: World::from_name(&world).expect("the row of `world` lists the names of the worlds"),
        description: value!(Text, "description"),
        capabilities: value!(Capabilities, "capabilities"),
        overridable: value!(Flag, "overridable"),
        instance: match value!(Text, "instance").as_str() {
            "resident" => InstancePolicy::Resident,
            _ => InstancePolicy::Fresh,
        },
        retry_safe: value!(Flag, "retry_safe"),
        limits: Limits {
            cpu_ms: value!(Number, "limits.cpu_ms"),
            wall_ms: value!(Number, "limits.wall_ms"),
            memory_bytes: value!(Number, "limits.memory_mb") * MIB,
            output_bytes: value!(Number, "limits.output_mb") * MIB,
            host_calls: value!(Number, "limits.host_calls"),
            host_bytes: value!(Number, "limits.host_mb") * MIB,
        },
        failure: FailurePolicy {
            quarantine_after: narrow(value!(Number, "failure.quarantine_after")),
            quarantine_secs: narrow(value!(Number, "failure.quarantine_secs")),
            rollback: value!(Flag, "failure.rollback"),
        },
        http: HttpPolicy { allow: value!(Hosts, "http.allow") },
        contract: value!(Requirements, "contract"),
        build: BuildPolicy {
            target: match value!(Text, "build.target").as_str() {
                "wasm32-wasip2" => BuildTarget::Wasip2,
                _ => BuildTarget::Unknown,
            },
        },
        source: Language::new(value!(Text, "source.language"))
            .ok()
            .map(|language| SourcePolicy { language, entry: value!(Text, "source.entry") }),
    }
}
