//! The ways a secret goes out, one playbook each. Which secret, and where to, comes with the execution. Those of `http` are
//! here, those of the other tools in [`tools`].

use serde_json::{Value, json};

use crate::planted::{Planted, json_escaped, percent};
use crate::tools;

const WAYS: [&str; 13] = [
    "auth",
    "url",
    "header",
    "json",
    "form",
    "declared",
    "failing",
    "refused",
    "elsewhere",
    "template",
    "large",
    "redirect",
    "page",
];

pub const SECRET: &str = "{{ keychain[alias][field] }}";

pub fn playbook(path: &str, workflow: Value) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": { "name": name, "path": path },
        "workload": { "alias": "", "field": "", "header_field": "", "url": "", "closed": "", "elsewhere": "",
                      "nats_url": "", "secret": "" },
        "keychain": [{ "name": "mine", "credential": "canary-00", "map": { "key": "token" } }],
        "workflow": workflow,
    });
    document.to_string()
}

/// All ways whose results are in events; what `http` sends comes first, so that the wallet has opened the secret.
pub fn all() -> impl Iterator<Item = &'static str> {
    WAYS.into_iter().chain(tools::WAYS)
}

/// All playbooks, by path.
pub fn playbooks() -> Vec<(String, String)> {
    let one = |way: &'static str| (format!("canary/{way}"), playbook(&format!("canary/{way}"), workflow(way)));
    all().chain(tools::BY_REFERENCE).map(one).collect()
}

/// What a step sends and answers goes on to another step and into a variable.
fn workflow(way: &str) -> Value {
    json!([
        {"step": "start", "tool": tool(way), "spec": {"on_error": "continue"},
         "set": {"ctx.kept": "{{ output }}"}, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": {"start": "{{ start }}", "kept": "{{ kept }}"}}},
    ])
}

fn tool(way: &str) -> Value {
    let to = |place: &str| format!("{{{{ url }}}}{place}");
    match way {
        "auth" => json!({"kind": "http", "url": to("/echo"), "auth": "{{ alias }}"}),
        "url" => json!({"kind": "http", "url": to(&format!("/pieces?secret={SECRET}"))}),
        "header" => json!({"kind": "http", "url": to("/echo"),
                           "headers": {"x-secret": "{{ keychain[alias][header_field] }}"}}),
        "json" => json!({"kind": "http", "method": "POST", "url": to("/echo"), "json": {"deep": [{"secret": SECRET}]}}),
        "form" => json!({"kind": "http", "method": "POST", "url": to("/echo"), "form": {"a": "1", "secret": SECRET}}),
        "declared" => json!({"kind": "http", "url": to("/echo"), "headers": {"x-secret": "{{ keychain.mine.key }}"}}),
        "failing" => json!({"kind": "http", "url": to(&format!("/fail?secret={SECRET}"))}),
        "refused" => json!({"kind": "http", "url": format!("{{{{ closed }}}}/?secret={SECRET}")}),
        "elsewhere" => json!({"kind": "http", "url": format!("{{{{ elsewhere }}}}/?secret={SECRET}")}),
        "template" => json!({"kind": "http", "url": to("/echo?secret={{ keychain[alias][field] + 1 }}")}),
        "large" => json!({"kind": "http", "url": to(&format!("/large?secret={SECRET}"))}),
        "page" => json!({"kind": "http", "url": to(&format!("/page?secret={SECRET}"))}),
        "redirect" => {
            json!({"kind": "http", "follow_redirects": true, "url": to(&format!("/redirect?secret={SECRET}"))})
        }
        other => tools::tool(other),
    }
}

/// What the server must have received; nothing where nothing is sent.
pub fn on_the_wire(way: &str, planted: &Planted) -> Option<String> {
    match way {
        "auth" if planted.signs() => None,
        "auth" | "header" => Some(planted.in_header()),
        "url" | "failing" | "large" | "page" | "python_web" | "javascript_web" | "artifact_read" | "transfer_web" => {
            Some(format!("secret={}", percent(planted.secret)))
        }
        "form" => Some(percent(planted.secret)),
        "json" => Some(json_escaped(planted.secret)),
        "redirect" => Some(format!("again={}", percent(planted.secret))),
        "declared" => Some(crate::planted::PLANTED[0].secret.to_owned()),
        _ => None,
    }
}
