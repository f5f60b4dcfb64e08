//! How a playbook uses a tool, held against what the tool says about itself.
//!
//! What a playbook is, only the engine's own core knows: it lists where a tool is used, with which fields, and where
//! in the text they stand. Here that list meets the descriptions, which only the catalog has. So the language needs to
//! know no tool, and no tool the language.
//!
//! A tool may take more than it says, and a template may supply anything, so what is said here is careful: a field nobody
//! knows is a warning, and so is a value of the wrong type. Only what cannot work is an error: a required field that
//! nothing supplies, or two fields of which one is possible. Strict readers get errors for all of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Description, Field, Type, Types, bare};
use crate::manifest::errors::nearest;

/// The most problems that are reported; further ones of a document are no news.
pub const MOST: usize = 100;

/// One place in a playbook where a tool is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Use {
    pub kind: String,
    pub line: u32,
    pub column: u32,
    /// As in `workflow[2].tool`.
    pub path: String,
    #[serde(default)]
    pub fields: Vec<UsedField>,
    /// Names the tool is handed in its `input`.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Whether it is handed others too, which are known only when the step runs.
    #[serde(default)]
    pub open: bool,
    /// Whether it is only there for others to refer to, and none does: they would bring what it lacks.
    #[serde(default)]
    pub unused: bool,
}

/// One field that is written there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsedField {
    pub name: String,
    pub line: u32,
    pub column: u32,
    pub path: String,
    pub given: Given,
    /// The value itself, if it is a short one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub literal: Option<Value>,
    /// What is written in it, if it is a map and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Vec<UsedField>>,
    /// Whether the language gives the field a meaning of its own, besides what it means to the tool.
    #[serde(default)]
    pub ours: bool,
}

/// What stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// Known only when the step runs.
    Template,
    Nothing,
    Text,
    Integer,
    Number,
    Boolean,
    List,
    Map,
}

/// What is wrong, in the form in which problems of playbooks are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub severity: Severity,
    pub line: u32,
    pub column: u32,
    pub path: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// What one use of a tool does not get right.
pub fn problems(used: &Use, tool: &Description, strict: bool) -> Vec<Problem> {
    let check = Check { used, tool, doubt: if strict { Severity::Error } else { Severity::Warning } };
    let mut found = Vec::new();
    for field in &used.fields {
        match tool.field(&field.name) {
            Some(known) => {
                found.extend(check.value(field, known));
                found.extend(check.inside(field, known));
            }
            None if field.ours || tool.open => {}
            None => found.push(check.unknown(field)),
        }
    }
    found.extend(check.contradictions());
    found.extend(check.missing());
    found.truncate(MOST);
    found
}

/// That a tool is not there at all.
pub fn absent(used: &Use) -> Problem {
    let Use { kind, line, column, path, .. } = used;
    let message = format!("there is no tool `{kind}` here: the step fails until `tools/{kind}` is in the catalog");
    Problem {
        severity: Severity::Warning,
        line: *line,
        column: *column,
        path: path.clone(),
        message,
        suggestion: Some("`noetl tool list` shows the tools there are".to_owned()),
    }
}

/// One place in a playbook that names a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCredential {
    /// Its alias.
    pub name: String,
    /// The kind of tool that is to use it; empty if that is not known.
    #[serde(default)]
    pub kind: String,
    pub line: u32,
    pub column: u32,
    /// As in `workflow[2].tool.auth`.
    pub path: String,
}

/// That the wallet has no such credential. A payload may name another one, and one may be added: it is a warning.
pub fn no_credential(named: &NamedCredential) -> Problem {
    let NamedCredential { name, kind, line, column, path } = named;
    let types = if matches!(kind.as_str(), "postgres" | "nats") { format!(" --type {kind}") } else { String::new() };
    Problem {
        severity: Severity::Warning,
        line: *line,
        column: *column,
        path: path.clone(),
        message: format!("there is no credential `{name}`: the step fails until the wallet has it"),
        suggestion: Some(format!("`noetl credential add {name}{types}` adds it")),
    }
}

struct Check<'a> {
    used: &'a Use,
    tool: &'a Description,
    /// How bad it is that something looks wrong and may yet be right.
    doubt: Severity,
}

impl Check<'_> {
    fn unknown(&self, field: &UsedField) -> Problem {
        let message = format!("the tool `{}` does not say that it takes `{}`", self.used.kind, field.name);
        let suggestion = nearest(&field.name, self.tool.names()).map(|name| format!("did you mean `{name}`?"));
        at(field, self.doubt, message, suggestion)
    }

    fn value(&self, field: &UsedField, known: &Field) -> Option<Problem> {
        if !fits(field.given, &known.types) {
            let message = format!("`{}` is {}, and here is {}", field.name, known.types, field.given.found());
            return Some(at(field, self.doubt, message, None));
        }
        let literal = field.literal.as_ref()?;
        if known.choices.is_empty() || known.choices.iter().any(|choice| same(choice, literal)) {
            return None;
        }
        let words: Vec<String> = known.choices.iter().map(|choice| format!("`{}`", bare(choice))).collect();
        let message = format!("`{}` is one of {}, and not `{}`", field.name, words.join(", "), bare(literal));
        let choices: Vec<String> = known.choices.iter().map(bare).collect();
        let near = nearest(&bare(literal), choices.iter().map(String::as_str));
        Some(at(field, self.doubt, message, near.map(|word| format!("did you mean `{word}`?"))))
    }

    /// Two fields of one group, or two names of one field. A template may come to nothing, and then only one counts.
    fn contradictions(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let written: Vec<(&UsedField, &Field)> = self
            .used
            .fields
            .iter()
            .filter(|field| field.given != Given::Nothing)
            .filter_map(|field| Some((field, self.tool.field(&field.name)?)))
            .collect();
        for (at_index, (field, known)) in written.iter().enumerate() {
            let clash = written[..at_index].iter().find(|(_, other)| match (&known.one_of, &other.one_of) {
                _ if known.name == other.name => true,
                (Some(group), Some(same)) => group == same,
                _ => false,
            });
            let Some((first, _)) = clash else { continue };
            let open = field.given == Given::Template || first.given == Given::Template;
            let severity = if open { self.doubt } else { Severity::Error };
            let message = format!("`{}` and `{}` exclude each other: leave one out", first.name, field.name);
            found.push(at(field, severity, message, None));
        }
        found
    }

    fn missing(&self) -> Vec<Problem> {
        if self.used.open && self.tool.reads_input {
            return Vec::new();
        }
        let mut told: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for field in self.tool.fields.iter().filter(|field| self.requires(field)) {
            let group: Vec<&Field> = match field.one_of.as_deref() {
                Some(group) if told.contains(&group) => continue,
                Some(group) => {
                    told.push(group);
                    self.tool.fields.iter().filter(|other| other.one_of.as_deref() == Some(group)).collect()
                }
                None => vec![field],
            };
            if group.iter().any(|field| self.supplies(field)) {
                continue;
            }
            let names: Vec<String> = group.iter().map(|field| format!("`{}`", field.name)).collect();
            let Use { line, column, path, .. } = self.used;
            found.push(Problem {
                severity: if self.used.unused { self.doubt } else { Severity::Error },
                line: *line,
                column: *column,
                path: path.clone(),
                message: format!("{} is missing{}: {}", names.join(" or "), self.because(field), field.doc),
                suggestion: group.iter().find_map(|field| self.misplaced(field)),
            });
        }
        found
    }

    /// What a map lacks. Other fields than those that are listed may well be in it.
    fn inside(&self, field: &UsedField, known: &Field) -> Vec<Problem> {
        let Some(fields) = field.within.clone().filter(|_| !known.within.is_empty()) else { return Vec::new() };
        let (path, inputs) = (field.path.clone(), Vec::new());
        let used =
            Use { path, line: field.line, column: field.column, fields, inputs, open: false, ..self.used.clone() };
        let tool = Description { fields: known.within.clone(), reads_input: false, ..self.tool.clone() };
        Check { used: &used, tool: &tool, doubt: self.doubt }.missing()
    }

    fn requires(&self, field: &Field) -> bool {
        field.default.is_none() && (field.required || self.is_called_for(field))
    }

    /// Whether what the step says elsewhere makes the field one it cannot do without.
    fn is_called_for(&self, field: &Field) -> bool {
        let mut conditions = field.required_when.iter();
        let holds = |(name, values): (&String, &Vec<Value>)| {
            self.known(name).is_some_and(|known| values.iter().any(|value| same(value, known)))
        };
        !field.required_when.is_empty() && conditions.all(holds)
    }

    /// What a field is, if that is known before the step runs: as it is written, or what counts when it is left out.
    fn known(&self, name: &str) -> Option<&Value> {
        let field = self.tool.field(name)?;
        let mut written = self.used.fields.iter().filter(|used| used.given != Given::Nothing);
        match written.find(|used| is(field, &used.name)) {
            Some(used) => used.literal.as_ref(),
            None if self.tool.reads_input && self.handed(field).is_some() => None,
            None => field.default.as_ref(),
        }
    }

    /// What of the step calls for a field that is not always required.
    fn because(&self, field: &Field) -> String {
        let said = |name: &String| Some(format!("`{name}: {}`", bare(self.known(name)?)));
        let all: Vec<String> = field.required_when.keys().filter_map(said).collect();
        if field.required || all.is_empty() { String::new() } else { format!(" for {}", all.join(" and ")) }
    }

    fn supplies(&self, field: &Field) -> bool {
        let mut written = self.used.fields.iter().filter(|used| used.given != Given::Nothing);
        written.any(|used| is(field, &used.name)) || self.tool.reads_input && self.handed(field).is_some()
    }

    /// Its name in the step's `input`.
    fn handed(&self, field: &Field) -> Option<&str> {
        self.used.inputs.iter().map(String::as_str).find(|name| is(field, name))
    }

    fn misplaced(&self, field: &Field) -> Option<String> {
        let name = self.handed(field)?;
        Some(format!("`{name}` stands in `input`, which is for templates: write it beside `kind`"))
    }
}

fn is(field: &Field, name: &str) -> bool {
    field.names().any(|known| known == name)
}

fn at(field: &UsedField, severity: Severity, message: String, suggestion: Option<String>) -> Problem {
    let UsedField { line, column, path, .. } = field;
    Problem { severity, line: *line, column: *column, path: path.clone(), message, suggestion }
}

impl Given {
    fn found(self) -> &'static str {
        match self {
            Given::Template => "a template",
            Given::Nothing => "nothing",
            Given::Text => "text",
            Given::Integer | Given::Number => "a number",
            Given::Boolean => "`true` or `false`",
            Given::List => "a list",
            Given::Map => "a map",
        }
    }
}

fn fits(given: Given, types: &Types) -> bool {
    let fits = |one: &Type| match one {
        Type::Any => true,
        // A number or a boolean where text is wanted is what people write without quotes.
        Type::Text => matches!(given, Given::Text | Given::Integer | Given::Number | Given::Boolean),
        Type::Integer => given == Given::Integer,
        Type::Number => matches!(given, Given::Integer | Given::Number),
        Type::Boolean => given == Given::Boolean,
        Type::Duration => matches!(given, Given::Integer | Given::Number | Given::Text),
        Type::Map => given == Given::Map,
        Type::List => given == Given::List,
    };
    matches!(given, Given::Template | Given::Nothing) || types.is_any() || types.all().iter().any(fits)
}

/// Words are the same in any case: `get` is `GET`.
fn same(choice: &Value, literal: &Value) -> bool {
    match (choice.as_str(), literal.as_str()) {
        (Some(choice), Some(literal)) => choice.eq_ignore_ascii_case(literal.trim()),
        _ => choice == literal,
    }
}
