//! Messages that would be acknowledged before the step that took them has succeeded.
//!
//! A tool acknowledges when its own call is done. In a pipeline others follow it, and when one of them fails, nobody hands
//! the messages out again. So such a tool may only be the last. It is looked at twice: when a playbook is registered, where
//! a template may still be anything, and before the call, where all is known. `auto` of a subscription is not refused:
//! whoever writes it asks for exactly that.

use serde_json::{Map, Value as Json};

use super::WHOLE;

type Fields = Map<String, Json>;

const POLL: &str = "`ack: on_success` acknowledges when the poll is done, and the tools after it may still fail: write \
     `ack: manual` and let the last tool be `operation: ack` with `ack_ids`, or poll in the last tool";
const CONSUME: &str = "`js_consume` acknowledges when its call is done, and the tools after it may still fail: write \
     `ack: false` and let the last tool be `kind: subscription` with `operation: ack` and `ack_ids`, or consume in the last \
     tool";

/// What is wrong with a tool that others follow, as far as its fields tell: templates that are not rendered yet, and an
/// input that is one, do not.
pub(crate) fn acknowledges_early(kind: &str, config: &Fields, input: &Fields) -> Option<&'static str> {
    let nothing = Fields::new();
    // A plugin that is called by its path is given the input alone.
    let (tool, config) = match kind {
        "wasm" => (called(config)?, &nothing),
        kind => (kind, config),
    };
    let given = |name: &str| match config.get(name).or_else(|| input.get(name)) {
        None | Some(Json::Null) if input.contains_key(WHOLE) => None,
        None | Some(Json::Null) => Some(String::new()),
        Some(Json::Bool(flag)) => Some(flag.to_string()),
        Some(other) => other.as_str().map(|text| text.trim().to_owned()),
    };
    let is = |name: &str, words: &[&str]| given(name).is_some_and(|word| words.contains(&word.as_str()));
    match tool {
        "subscription" if is("operation", &["", "poll"]) && is("ack", &["", "on_success"]) => Some(POLL),
        "nats" if is("operation", &["js_consume"]) && is("ack", &["", "true", "auto", "explicit", "on_success"]) => {
            Some(CONSUME)
        }
        _ => None,
    }
}

/// The tool of ours that a `kind: wasm` calls by its path.
pub(super) fn called(config: &Fields) -> Option<&str> {
    let plugin = config.get("plugin")?;
    plugin.as_str().or_else(|| plugin.get("path")?.as_str())?.trim().strip_prefix("tools/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn early(kind: &str, config: &Json, input: &Json) -> Option<&'static str> {
        let fields = |given: &Json| given.as_object().cloned().expect("an object");
        acknowledges_early(kind, &fields(config), &fields(input))
    }

    #[test]
    fn each_tool_that_acknowledges_at_its_end_is_told_what_to_write_instead() {
        for (kind, config, input, said) in [
            ("subscription", json!({}), json!({}), POLL),
            ("subscription", json!({"operation": "poll", "ack": ""}), json!({}), POLL),
            ("subscription", json!({}), json!({"ack": "on_success"}), POLL),
            ("nats", json!({"operation": "js_consume"}), json!({}), CONSUME),
            ("nats", json!({"operation": "js_consume", "ack": true}), json!({}), CONSUME),
            ("nats", json!({"operation": "js_consume"}), json!({"ack": "true"}), CONSUME),
            ("wasm", json!({"plugin": "tools/subscription"}), json!({}), POLL),
            ("wasm", json!({"plugin": {"path": "tools/nats"}}), json!({"operation": "js_consume"}), CONSUME),
            // Options beside the input of a plugin are not options of it.
            ("wasm", json!({"plugin": {"path": "tools/subscription"}, "ack": "manual"}), json!({}), POLL),
        ] {
            assert_eq!(early(kind, &config, &input), Some(said), "{kind} {config} {input}");
        }
    }

    #[test]
    fn whatever_leaves_it_to_the_playbook_or_is_not_known_yet_may_be_anywhere() {
        for (kind, config, input) in [
            ("subscription", json!({"ack": "manual"}), json!({})),
            ("subscription", json!({"ack": "auto"}), json!({})),
            ("subscription", json!({"operation": "ack"}), json!({})),
            ("subscription", json!({"ack": "{{ how }}"}), json!({})),
            ("subscription", json!({}), json!({"*": "{{ all }}"})),
            ("nats", json!({"operation": "js_consume", "ack": false}), json!({})),
            ("nats", json!({"operation": "js_consume", "ack": "manual"}), json!({})),
            ("nats", json!({"operation": "js_consume", "ack": "{{ how }}"}), json!({})),
            ("nats", json!({"operation": "js_consume"}), json!({"*": "{{ all }}"})),
            ("nats", json!({"operation": "js_get_msg"}), json!({})),
            ("nats", json!({}), json!({})),
            ("wasm", json!({"plugin": "shop/nats"}), json!({"operation": "js_consume"})),
            ("wasm", json!({"plugin": "tools/nats"}), json!({"operation": "js_consume", "ack": false})),
            ("wasm", json!({}), json!({})),
            ("noop", json!({}), json!({})),
        ] {
            assert_eq!(early(kind, &config, &input), None, "{kind} {config} {input}");
        }
    }
}
