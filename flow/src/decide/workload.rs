//! The variables an execution begins with: the playbook's defaults under the payload.
//!
//! Templates of the defaults are rendered once, each text by itself. A payload is taken as it is, because whoever sends one
//! need not be allowed to write templates; it can be asked for as `input`.
//!
//! A text may refer to others, of its own map too, which are then rendered first, wherever they stand. One that refers to
//! something there is not yet (the result of a step, an item) stays as it is written, for whoever uses it later; so does one
//! that cannot be rendered, and those that refer to each other in a circle. A name that the template can do without
//! (`{{ size | default(10) }}`, `{{ region or 'us' }}`) need not be there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::program::Program;
use crate::template::{Context, KEYCHAIN, Template, Value, from_json, is_template, references};

/// Names besides those of the workload and of what is known of the execution, functions among them.
const GIVEN: [&str; 8] = ["workload", "ctx", "keychain", "now", "range", "dict", "token", "loop"];

/// What of a template says that a name need not be there.
const WITHOUT: [&str; 6] = ["default", "defined", "d(", " or ", " if ", " is "];

/// Where a text is: the name of the variable, then keys and indexes.
type Place = Vec<String>;

/// `known` is what is known of the execution besides.
pub(super) fn workload(
    at: u64,
    program: &Program,
    payload: &Map<String, Json>,
    known: &Map<String, Json>,
    seal: Option<&str>,
) -> Map<String, Json> {
    let mut all = program.playbook.workload.clone();
    all.extend(payload.clone());
    let mut found = Vec::new();
    for (name, value) in program.playbook.workload.iter().filter(|(name, _)| !payload.contains_key(*name)) {
        texts(value, &mut vec![name.clone()], &mut found);
    }
    let texts = found.into_iter().filter_map(|(place, text)| Some((place, Text::new(text)?)));
    let texts = texts.filter(|(place, text)| !text.waits_for_steps(place, program, &all, known));
    let mut open: BTreeMap<Place, Text> = texts.collect();
    let given = Context::sealed(at, seal)
        .with(known.iter().map(|(name, value)| (name.as_str(), from_json(value))))
        .with(program.keychain.clone().map(|keychain| (KEYCHAIN, keychain)));
    loop {
        let ready: Vec<Place> =
            open.iter().filter(|(place, text)| !text.waits(place, &open)).map(|(place, _)| place.clone()).collect();
        if ready.is_empty() {
            break;
        }
        let context = with_all(&given, &all, None);
        for place in ready {
            let Some(text) = open.remove(&place) else { continue };
            // Until it is rendered, it is nothing to itself.
            let own = text.refers_to(&place).then(|| with_all(&given, &all, Some(&place)));
            let rendered = text.template.render_json(own.as_ref().unwrap_or(&context));
            if let (Ok(value), Some(slot)) = (rendered, slot(&mut all, &place)) {
                *slot = value;
            }
        }
    }
    let context = with_all(&given, &all, None);
    for (_, value) in all.iter_mut().filter(|(name, _)| !payload.contains_key(*name)) {
        rename(value, &context);
    }
    all
}

/// Every text of a value that may be a template.
fn texts(value: &Json, place: &mut Place, found: &mut Vec<(Place, String)>) {
    let mut below = |key: String, value: &Json| {
        place.push(key);
        texts(value, place, found);
        place.pop();
    };
    match value {
        Json::String(text) if is_template(text) => found.push((place.clone(), text.clone())),
        Json::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(at.to_string(), item)),
        Json::Object(fields) => fields.iter().for_each(|(key, field)| below(key.clone(), field)),
        _ => {}
    }
}

fn slot<'a>(all: &'a mut Map<String, Json>, place: &[String]) -> Option<&'a mut Json> {
    let (name, below) = place.split_first()?;
    below.iter().try_fold(all.get_mut(name)?, |value, key| match value {
        Json::Object(fields) => fields.get_mut(key),
        Json::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// All variables, by name and as `workload`, but for the one of a place.
fn with_all(given: &Context, all: &Map<String, Json>, without: Option<&Place>) -> Context {
    let gone = without.filter(|place| place.len() == 1).map(|place| place[0].as_str());
    let names = || all.iter().filter(|(name, _)| Some(name.as_str()) != gone);
    let names = || names().map(|(name, value)| (name.as_str(), from_json(value)));
    given.with(names()).with([("workload", Value::from_pairs(names()))])
}

/// Names of fields that are templates, below what is rendered.
fn rename(value: &mut Json, context: &Context) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| rename(item, context)),
        Json::Object(fields) => {
            fields.iter_mut().for_each(|(_, field)| rename(field, context));
            if fields.keys().any(|name| is_template(name)) {
                let named = |name: String| match Template::compile(&name).map(|name| name.render_json(context)) {
                    Ok(Ok(Json::String(rendered))) if is_template(&name) => rendered,
                    _ => name,
                };
                *fields = std::mem::take(fields).into_iter().map(|(name, field)| (named(name), field)).collect();
            }
        }
        _ => {}
    }
}

/// A text that compiles, and what it refers to.
struct Text {
    template: Template,
    /// Places below the variables; an empty one means all of them.
    refers: BTreeSet<Place>,
    names: BTreeSet<String>,
    can_do_without: bool,
}

impl Text {
    fn new(text: String) -> Option<Self> {
        let template = Template::compile(&text).ok()?;
        let found = references(&text);
        let names = template.names().unwrap_or_else(|| found.names().map(str::to_owned).collect());
        let mut refers: BTreeSet<Place> = found
            .paths
            .into_iter()
            .map(|path| if path.first().is_some_and(|name| name == "workload") { path[1..].to_vec() } else { path })
            .collect();
        if found.whole_context {
            refers.insert(Vec::new());
        }
        Some(Self { template, refers, names, can_do_without: WITHOUT.iter().any(|word| text.contains(word)) })
    }

    /// Whether it refers to something that is not there before the first step.
    fn waits_for_steps(
        &self,
        own: &Place,
        program: &Program,
        all: &Map<String, Json>,
        known: &Map<String, Json>,
    ) -> bool {
        self.names.iter().any(|name| {
            let is_itself = own.len() == 1 && own[0] == *name;
            if (all.contains_key(name) && !is_itself) || known.contains_key(name) || GIVEN.contains(&name.as_str()) {
                return false;
            }
            !self.can_do_without || (program.place(name).is_some() && !is_itself)
        })
    }

    /// Whether it refers to others that are not rendered yet.
    fn waits(&self, own: &Place, open: &BTreeMap<Place, Text>) -> bool {
        let is_open = |place: &Place| {
            let above = (1..place.len()).any(|end| place[..end] != own[..] && open.contains_key(&place[..end]));
            let mut below = open.range::<Place, _>(place..).map(|(open, _)| open);
            above || below.by_ref().take_while(|open| open.starts_with(place)).any(|open| open != own)
        };
        self.refers.iter().any(is_open)
    }

    fn refers_to(&self, own: &Place) -> bool {
        self.refers.iter().any(|place| place.starts_with(own))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::playbook::parse;

    fn begun(defaults: Json, payload: Json) -> Json {
        let text = json!({ "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": { "name": "w" },
            "workload": defaults, "workflow": [{ "step": "start", "tool": { "kind": "noop" } }] });
        let program = Program::new(parse(&text.to_string(), false).expect("a playbook").playbook).expect("a program");
        let payload = payload.as_object().expect("an object");
        let known = json!({ "execution_id": "9", "job": { "uuid": "9" }, "env": { "HOME": "/h" }, "input": payload,
            "parent_execution_id": null });
        Json::Object(workload(0, &program, payload, known.as_object().expect("an object"), None))
    }

    #[test]
    fn defaults_are_rendered_in_the_order_they_need_each_other() {
        let defaults = json!({
            "a": "{{ b }}!", "b": "{{ workload.c + 1 }}", "c": "{{ ctx.d }}", "d": 1,
            "deep": {"{{ e }}": ["{{ b }}", {"id": "{{ job.uuid }}"}]}, "e": "{{ env.HOME }}",
            "list": "{% for x in [d, d] %}{{ x }}{% endfor %}",
        });
        let expected = json!({
            "a": "2!", "b": 2, "c": 1, "d": 1, "deep": {"/h": [2, {"id": "9"}]}, "e": "/h", "list": "11",
        });
        assert_eq!(begun(defaults, json!({})), expected);
    }

    #[test]
    fn a_payload_is_taken_as_it_is_and_can_be_asked_for() {
        let defaults = json!({"url": "{{ input.host }}/{{ host }}", "host": "default", "none": "{{ input.x }}"});
        let begun = begun(defaults, json!({"host": "{{ url }}"}));
        assert_eq!(begun, json!({"url": "{{ url }}/{{ url }}", "host": "{{ url }}", "none": null}));
    }

    #[test]
    fn what_refers_to_something_later_stays_as_it_is_written() {
        let defaults = json!({
            "query": "SELECT {{ start.id }} {{ n }}", "row": "{{ item.name }}", "n": 1,
            "some": {"kept": "{{ output.x }}", "done": "{{ n }}"}, "kept": "{{ start.id | default(3) }}",
            "round": "{{ about }}", "about": "{{ round }}", "self": "{{ self }}", "other": "{{ other | default(5) }}",
            "broken": "{{ .Names }}", "fails": "{{ n + 'x' }}", "loop": "{% for x in rows %}{{ x }}{% endfor %}",
        });
        let expected = json!({
            "query": "SELECT {{ start.id }} {{ n }}", "row": "{{ item.name }}", "n": 1,
            "some": {"kept": "{{ output.x }}", "done": 1}, "kept": "{{ start.id | default(3) }}",
            "round": "{{ about }}", "about": "{{ round }}", "self": "{{ self }}", "other": 5,
            "broken": "{{ .Names }}", "fails": "{{ n + 'x' }}", "loop": "{% for x in rows %}{{ x }}{% endfor %}",
        });
        assert_eq!(begun(defaults, json!({})), expected);
    }

    #[test]
    fn texts_of_a_map_refer_to_each_other_and_to_those_of_other_maps() {
        let defaults = json!({
            "pg": {"host": "localhost", "url": "http://{{ workload.pg.host }}:80", "bare": "{{ pg.host }}"},
            "api": {"base": "http://x", "h": "{{ workload.db.host }}", "id": "{{ execution_id }}"},
            "db": {"host": "h", "dsn": "{{ workload.api.base }}/z", "all": ["{{ api.h }}", "{{ db.dsn }}"]},
            "uses": "{{ workload.db.host }}", "cfg": {"fmt": "{{ .Names }}", "id": "{{ execution_id }}"},
        });
        let expected = json!({
            "pg": {"host": "localhost", "url": "http://localhost:80", "bare": "localhost"},
            "api": {"base": "http://x", "h": "h", "id": "9"},
            "db": {"host": "h", "dsn": "http://x/z", "all": ["h", "http://x/z"]},
            "uses": "h", "cfg": {"fmt": "{{ .Names }}", "id": "9"},
        });
        assert_eq!(begun(defaults, json!({})), expected);
    }

    #[test]
    fn what_a_template_can_do_without_need_not_be_there() {
        let defaults = json!({
            "region": "{{ override or 'us' }}", "mode": "{{ 'fast' if quick else 'slow' }}",
            "debug": "{{ True if env.DEBUG else False }}", "start": "{{ start | default(1) }}",
            "parent": "{{ parent_execution_id }}", "dump": "{{ workload.n }}{{ workload | length }}", "n": 1,
        });
        let expected = json!({
            "region": "us", "mode": "slow", "debug": false, "start": 1, "parent": null, "dump": "17", "n": 1,
        });
        assert_eq!(begun(defaults, json!({})), expected);
    }
}
