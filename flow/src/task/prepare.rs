//! From a tool's templates to the call of it.

use serde_json::{Map, Value as Json, json};

use super::memory::Stage;
use super::outcome::{Outcome, Wanted};
use super::plan::Planned;
use super::scope::Scope;
use super::turn::{Action, Call, Execute};
use super::{TOLD, VARIABLES, acknowledges_early, aliases, early, reads_context};
use crate::playbook::duration;
use crate::template::{Cause, RenderError, from_json, is_truthy, payload_of};

type Fields = Map<String, Json>;

/// What goes out, and what is waited for then.
pub(super) struct Prepared {
    pub action: Action,
    pub stage: Stage,
}

/// Who calls, for tools that tell it to the code of a step.
pub(super) struct Caller<'a> {
    pub execution: u64,
    pub step: &'a str,
    /// The how-manieth call of the tool, and the how-manieth piece of work.
    pub attempt: u32,
    pub visit: u32,
}

/// What cannot be rendered, or makes no call, is an outcome like that of a tool that failed.
pub(super) fn prepare(tool: &Planned, scope: &Scope<'_>, caller: &Caller<'_>) -> Result<Prepared, Box<Outcome>> {
    let (mut input, mut config) = rendered(tool, scope)
        .map_err(|error| Box::new(Outcome::failure("template", format!("`{}`: {error}", tool.label), false)))?;
    if !tool.last
        && let Some(wrong) = acknowledges_early(&tool.kind, &config, &input)
    {
        return Err(invalid(format!("`{}`: {wrong}", tool.label)));
    }
    match tool.kind.as_str() {
        "wasm" => aliases::resolve(&tool.keychain, early::called(&config).unwrap_or_default(), &mut input),
        kind => aliases::resolve(&tool.keychain, kind, &mut config),
    }
    let timeout_ms = time_limit(tool, &config).map_err(invalid)?;
    if tool.kind == "playbook" {
        return execute(tool, input, config, timeout_ms, caller.visit);
    }
    let mut call = Call {
        kind: tool.kind.clone(),
        plugin: None,
        version: None,
        arguments: String::new(),
        body: None,
        capabilities: None,
        timeout_ms,
        label: tool.label.clone(),
        visit: caller.visit,
        attempt: caller.attempt,
    };
    call.body = referred(&tool.kind, &config, &input);
    let arguments = if tool.kind == "wasm" {
        name_plugin(&mut call, &config).map_err(invalid)?;
        input
    } else {
        if !input.is_empty() {
            config.insert("input".to_owned(), Json::Object(input));
        }
        if let ("http", Some(safe)) = (tool.kind.as_str(), tool.retry_safe) {
            // What the method says otherwise: whoever sends a request knows then which failures may be tried again.
            config.insert("retry_safe".to_owned(), safe.into());
        }
        if TOLD.contains(&tool.kind.as_str()) {
            // Ids are text everywhere, because JavaScript cannot count that far.
            let mut context = json!({ "execution_id": caller.execution.to_string(), "step": caller.step,
                                      "attempt": caller.attempt });
            if let Some(variables) = scope.variables() {
                context[VARIABLES] = variables;
            }
            if reads_context(&tool.kind, text(&config, "code")) {
                let wrong = |cause| Box::new(Outcome::failure("template", told(&tool.label, cause), false));
                context["results"] = scope.results().map_err(wrong)?;
            }
            config.insert("context".to_owned(), context);
        }
        config
    };
    call.arguments = Json::Object(arguments).to_string();
    Ok(Prepared { action: Action::Call(call), stage: Stage::Calling })
}

fn told(label: &str, cause: Cause) -> String {
    format!("`{label}`: {}", RenderError::new("context", None, cause))
}

/// The input of a tool, and its configuration, which sees the input's fields as names.
fn rendered(tool: &Planned, scope: &Scope<'_>) -> Result<(Fields, Fields), RenderError> {
    let context = scope.context(&tool.before, []);
    let mut input: Fields = scope.bound().map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
    if let Some(whole) = &tool.whole {
        input.extend(object(whole.render(&context)?)?);
    }
    for (name, value) in &tool.input {
        input.insert(name.render_text(&context)?, value.render(&context)?);
    }
    let config = match tool.config.constant() {
        Some(constant) => constant.clone(),
        None => {
            tool.config.render(&context.with(input.iter().map(|(name, value)| (name.as_str(), from_json(value)))))?
        }
    };
    match config {
        Json::Object(config) => Ok((input, config)),
        _ => unreachable!("an object renders as an object"),
    }
}

/// The input that one expression gives: an object, the JSON of one, or nothing.
fn object(given: Json) -> Result<Fields, RenderError> {
    let given = match given {
        Json::String(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
        other => other,
    };
    match given {
        Json::Object(fields) => Ok(fields),
        Json::Null => Ok(Fields::new()),
        other => {
            let cause = Cause::Failed(format!("it gives {}, and an input is an object", shortened(&other)));
            Err(RenderError::new("input", None, cause))
        }
    }
}

fn shortened(value: &Json) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(80).chain(['…']).collect() }
}

/// The payload that goes to the tool beside its arguments, by its sha256: what `body_ref` refers to, and for an artefact
/// the reference itself. Whether there is such a payload, and whose it is, is known to whoever keeps it.
fn referred(kind: &str, config: &Fields, input: &Fields) -> Option<String> {
    let names: &[&str] = if kind == "artifact" { &["result_ref", "ref", "uri"] } else { &["body_ref"] };
    let fields = if kind == "wasm" { [config, config] } else { [config, input] };
    names.iter().flat_map(|name| fields.map(|fields| fields.get(*name))).flatten().find_map(payload_of)
}

fn invalid(message: String) -> Box<Outcome> {
    Box::new(Outcome::failure("invalid_input", message, false))
}

fn text<'c>(config: &'c Fields, name: &str) -> Option<&'c str> {
    config.get(name).and_then(Json::as_str).filter(|text| !text.trim().is_empty())
}

fn name_plugin(call: &mut Call, config: &Fields) -> Result<(), String> {
    let empty = Map::new();
    let plugin = config.get("plugin").unwrap_or(&Json::Null);
    let fields = plugin.as_object().unwrap_or(&empty);
    let path = plugin.as_str().or_else(|| text(fields, "path"));
    call.plugin = Some(path.ok_or_else(|| format!("`{}` does not say which plugin to call", call.label))?.to_owned());
    call.version = fields.get("version").or_else(|| config.get("version")).and_then(|version| match version {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    });
    call.capabilities = match fields.get("capabilities").or_else(|| config.get("capabilities")) {
        None | Some(Json::Null) => None,
        Some(Json::Array(names)) if names.iter().all(Json::is_string) => {
            Some(names.iter().filter_map(Json::as_str).map(str::to_owned).collect())
        }
        Some(other) => return Err(format!("capabilities are a list of names and not `{other}`")),
    };
    Ok(())
}

/// How long the call may take: as it was written, or as a template of it gives. One that gives nothing is no limit.
fn time_limit(tool: &Planned, config: &Fields) -> Result<Option<u64>, String> {
    let given = ["timeout", "timeout_seconds"].iter().find_map(|name| Some((name, config.get(*name)?)));
    let (name, given) = match (tool.timeout_ms, given) {
        (None, Some(given)) => given,
        (limit, _) => return Ok(limit),
    };
    match given {
        Json::Null => Ok(None),
        Json::String(text) if text.trim().is_empty() => Ok(None),
        given => match duration::milliseconds(given) {
            Some(limit) if limit > 0 => Ok(Some(limit)),
            _ => Err(format!("`{name}` is `{given}`, which is not a time; write 30 or \"30s\"")),
        },
    }
}

fn execute(
    tool: &Planned,
    input: Fields,
    config: Fields,
    timeout_ms: Option<u64>,
    visit: u32,
) -> Result<Prepared, Box<Outcome>> {
    let path = text(&config, "path").or_else(|| text(&config, "catalog_id"));
    let path = path.ok_or_else(|| invalid(format!("`{}` does not say which playbook to run", tool.label)))?;
    let version = match config.get("version") {
        None | Some(Json::Null) => None,
        Some(version) => {
            let number = version.as_u64().or_else(|| version.as_str().and_then(|text| text.trim().parse().ok()));
            let number = number.and_then(|number| u32::try_from(number).ok());
            Some(number.ok_or_else(|| invalid(format!("`{version}` is not the version of a playbook")))?)
        }
    };
    let mut payload = input;
    if tool.input.is_empty() && tool.whole.is_none() {
        match config.get("payload") {
            None | Some(Json::Null) => {}
            Some(Json::Object(fields)) => payload.extend(fields.clone()),
            Some(other) => return Err(invalid(format!("the payload of a playbook is an object and not `{other}`"))),
        }
    }
    let step = text(&config, "return_step").or_else(|| text(&config, "result_step"));
    let returns = step.is_some() || config.get("return_result").is_some_and(|flag| is_truthy(&from_json(flag)));
    let wait = match config.get("wait") {
        None | Some(Json::Null) => returns,
        Some(wait) => is_truthy(&from_json(wait)),
    };
    let action = Action::Execute(Execute {
        path: path.to_owned(),
        version,
        payload: Json::Object(payload).to_string(),
        wait,
        returns: step.map(str::to_owned),
        timeout_ms,
        label: tool.label.clone(),
        visit,
    });
    let wanted = step.map_or(Wanted::Output, |step| Wanted::Step(step.to_owned()));
    Ok(Prepared { action, stage: Stage::Executing { path: path.to_owned(), wanted } })
}
