//! The variables an execution begins with: the playbook's defaults under the payload.
//!
//! Templates of the defaults are rendered once, each text by itself. A payload is taken as it is, because whoever sends one
//! need not be allowed to write templates; it can be asked for as `input`.
//!
//! A default may refer to others, which are then rendered first, wherever they stand. A text that refers to something there
//! is not yet (the result of a step, an item) stays as it is written, for whoever uses it later; so does one that cannot be
//! rendered, and those that refer to each other in a circle. A name that has a default of its own in the template
//! (`{{ size | default(10) }}`) need not be there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::program::{Binding, Program};
use crate::template::{Context, KEYCHAIN, References, Template, Value, from_json, is_template, references};

/// Names besides those of the workload, functions among them.
const GIVEN: [&str; 13] = [
    "workload",
    "ctx",
    "input",
    "payload",
    "execution_id",
    "job",
    "env",
    "keychain",
    "now",
    "range",
    "dict",
    "token",
    "loop",
];

pub(super) fn workload(
    id: u64,
    at: u64,
    program: &Program,
    payload: &Map<String, Json>,
    (env, seal): (&Map<String, Json>, Option<&str>),
) -> Map<String, Json> {
    let mut all = program.playbook.workload.clone();
    all.extend(payload.clone());
    let mut open: BTreeMap<&str, &Binding> = program
        .workload
        .iter()
        .filter(|(name, value)| !value.tree.is_constant() && !payload.contains_key(name))
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    if open.is_empty() {
        return all;
    }
    let id = id.to_string();
    let given = json!({ "execution_id": id, "job": { "uuid": id, "execution_id": id }, "env": env,
        "input": payload, "payload": payload });
    let given = given.as_object().expect("it is written as one");
    let given = Context::sealed(at, seal)
        .with(given.iter().map(|(name, value)| (name.as_str(), from_json(value))))
        .with(program.keychain.clone().map(|keychain| (KEYCHAIN, keychain)));
    let settled = all.iter().filter(|(name, _)| !open.contains_key(name.as_str()));
    let mut known: BTreeMap<String, Value> = settled.map(|(name, value)| (name.clone(), from_json(value))).collect();
    while let Some(name) = next(&open) {
        let Some(binding) = open.remove(name) else { break };
        let names = || known.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let context = given.with(names()).with([("workload", Value::from_pairs(names()))]);
        let value = Leaf { program, context, known: &known }.render(&binding.raw);
        known.insert(name.to_owned(), from_json(&value));
        all.insert(name.to_owned(), value);
    }
    all
}

/// A default that waits for no other. It does not wait for itself: until it is rendered, it is nothing.
fn next<'a>(open: &BTreeMap<&'a str, &Binding>) -> Option<&'a str> {
    let waits = |name: &str, refers: &References| {
        refers.paths.iter().any(|path| {
            let wanted = match path.as_slice() {
                [scope, wanted, ..] if scope == "workload" => wanted,
                [wanted, ..] => wanted,
                [] => return false,
            };
            wanted != name && open.contains_key(wanted.as_str())
        })
    };
    open.iter().find(|(name, binding)| !waits(name, &binding.refers)).map(|(name, _)| *name)
}

/// What a text is rendered with.
struct Leaf<'a> {
    program: &'a Program,
    context: Context,
    known: &'a BTreeMap<String, Value>,
}

impl Leaf<'_> {
    /// A value with every text in it rendered that can be.
    fn render(&self, raw: &Json) -> Json {
        match raw {
            Json::String(text) if is_template(text) => self.text(text).unwrap_or_else(|| raw.clone()),
            Json::Array(items) => items.iter().map(|item| self.render(item)).collect(),
            Json::Object(fields) => {
                let name = |name: &String| match is_template(name).then(|| self.text(name)).flatten() {
                    Some(Json::String(rendered)) => rendered,
                    _ => name.clone(),
                };
                Json::Object(fields.iter().map(|(key, field)| (name(key), self.render(field))).collect())
            }
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> Option<Json> {
        let template = Template::compile(text).ok()?;
        let waits = template.names().unwrap_or_else(|| roots(text)).iter().any(|name| self.is_later(name, text));
        if waits {
            return None;
        }
        template.render_json(&self.context).ok()
    }

    /// Whether a name is of something that comes later.
    fn is_later(&self, name: &str, text: &str) -> bool {
        if GIVEN.contains(&name) || self.known.contains_key(name) {
            return false;
        }
        let may_miss = ["default", "defined", "d("].iter().any(|word| text.contains(word));
        self.program.place(name).is_some() || !may_miss
    }
}

fn roots(text: &str) -> BTreeSet<String> {
    references(text).names().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::parse;

    fn begun(defaults: Json, payload: Json) -> Json {
        let text = json!({ "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": { "name": "w" },
            "workload": defaults, "workflow": [{ "step": "start", "tool": { "kind": "noop" } }] });
        let program = Program::new(parse(&text.to_string(), false).expect("a playbook").playbook).expect("a program");
        let env = Map::from_iter([("HOME".to_owned(), Json::from("/h"))]);
        Json::Object(workload(9, 0, &program, payload.as_object().expect("an object"), (&env, None)))
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
}
