use serde_json::{Value as Json, json};

use super::super::{Failures, Limit, NextMode, OnError, OnNoMatch, Work};
use super::{document, parsed, playbook};
use crate::event::LoopMode;
use crate::task::{Action, Backoff, Rule, Spec, Tool};

/// The task of the first step.
fn task(workflow: &str) -> Spec {
    match playbook(workflow).steps.remove(0).work {
        Work::Task(spec) => spec,
        Work::Park(park) => panic!("{park:?}"),
    }
}

fn tool(workflow: &str) -> Tool {
    task(workflow).tools.remove(0)
}

fn rules(rules: &str) -> Vec<Rule> {
    tool(&format!("  - step: start\n    tool: {{kind: noop, spec: {{policy: {{rules: {rules}}}}}}}\n")).rules
}

#[test]
fn a_tool_has_its_own_keys_and_ours_are_taken_out() {
    let tool = tool(
        "  - step: start
    tool:
      kind: http
      url: '{{ u }}'
      timeout: 2s
      input: {a: 1}
      set: {ctx.x: '{{ output }}'}
      eval: []
",
    );
    assert_eq!((tool.label.as_str(), tool.kind.as_str(), tool.timeout_ms), ("start", "http", Some(2000)));
    assert_eq!(Json::Object(tool.config), json!({ "url": "{{ u }}", "timeout": "2s" }));
    assert_eq!(Json::Object(tool.input), json!({ "a": 1 }));
    assert_eq!(Json::Object(tool.set), json!({ "ctx.x": "{{ output }}" }));
}

#[test]
fn older_places_of_a_tools_keys_are_read() {
    let nested = tool("  - {step: start, tool: {kind: http, method: PUT, spec: {url: u, method: GET, input: {a: 1}}}}");
    assert_eq!(Json::Object(nested.config), json!({ "method": "PUT", "url": "u" }));
    assert_eq!(Json::Object(nested.input), json!({ "a": 1 }));
    let older = tool("  - {step: start, tool: {kind: python, args: {a: 1}}}");
    assert_eq!((older.config.len(), Json::Object(older.input)), (0, json!({ "a": 1 })));
    let container = tool("  - {step: start, tool: {kind: container, args: [x]}}");
    assert_eq!((Json::Object(container.config), container.input.len()), (json!({ "args": ["x"] }), 0));
}

#[test]
fn a_steps_input_is_under_that_of_its_tools() {
    let spec = task(
        "  - step: start
    input: {a: step, b: step}
    args: {c: older}
    tool:
      - {name: one, kind: noop, input: {a: tool}}
      - two: {kind: noop, name: kept}
      - {kind: noop}
    output: {output_select: [count]}
",
    );
    let labels: Vec<&str> = spec.tools.iter().map(|tool| tool.label.as_str()).collect();
    assert_eq!((labels, spec.pipeline), (vec!["one", "two", "task_3"], true));
    assert_eq!(spec.output_select, ["count"]);
    assert_eq!(Json::Object(spec.tools[0].input.clone()), json!({ "a": "tool", "b": "step" }));
    assert_eq!(Json::Object(spec.tools[1].input.clone()), json!({ "c": "older", "a": "step", "b": "step" }));
    assert_eq!(spec.tools[0].config.len(), 0);
    assert_eq!(Json::Object(spec.tools[1].config.clone()), json!({ "name": "kept" }));
}

#[test]
fn rules_are_read_in_every_form() {
    let read = rules(
        "[{when: 'output.status == 1', then: {do: retry, attempts: 5, backoff: linear, delay: 0.5, max_delay: 1m, jitter: 0.2}},
          {when: false, then: {do: jump, to: start, set: {ctx.a: 1}}},
          {when: '{{ x }}', then: {set: {iter.b: 2}}},
          {else: {then: {do: break}}}]",
    );
    let retry = Action::Retry {
        attempts: 5,
        backoff: Backoff::Linear,
        delay_ms: 500,
        delay: None,
        max_delay_ms: 60_000,
        jitter: 0.2,
    };
    assert_eq!(read[0], Rule { when: Some(json!("output.status == 1")), action: Some(retry), set: Default::default() });
    assert_eq!(read[1].when, Some(json!(false)));
    assert_eq!(read[1].action, Some(Action::Jump { to: "start".to_owned() }));
    assert_eq!(Json::Object(read[1].set.clone()), json!({ "ctx.a": 1 }));
    assert_eq!((read[2].action.clone(), read[2].set.len()), (None, 1));
    assert_eq!((read[3].when.clone(), read[3].action.clone()), (None, Some(Action::Break)));
    // `then` may be left out, and `else` may stand beside it.
    for form in ["[{else: {do: fail}}]", "[{else: , then: {do: fail}}]", "[{when: true, do: fail}]"] {
        assert_eq!(rules(form)[0].action, Some(Action::Fail), "{form}");
    }
}

#[test]
fn a_retry_has_defaults() {
    let retry = |backoff, delay_ms| Action::Retry {
        attempts: 3,
        backoff,
        delay_ms,
        delay: None,
        max_delay_ms: 3_600_000,
        jitter: 0.0,
    };
    for (form, expected) in [
        ("{do: retry}", retry(Backoff::None, 1000)),
        ("{do: retry, delay: 2}", retry(Backoff::Fixed, 2000)),
        ("{do: retry, delay: 2, backoff: none}", retry(Backoff::None, 2000)),
        ("{do: retry, backoff: exponential}", retry(Backoff::Exponential, 1000)),
    ] {
        assert_eq!(rules(&format!("[{{else: {form}}}]"))[0].action, Some(expected), "{form}");
    }
    let read = rules("[{else: {do: retry, delay: '{{ wait }}'}}]").remove(0).action;
    let Some(Action::Retry { delay, backoff, .. }) = read else { panic!("{read:?}") };
    assert_eq!((delay.as_deref(), backoff), (Some("{{ wait }}"), Backoff::Fixed));
}

#[test]
fn next_is_read_in_every_form() {
    let next = |form: &str| {
        let end = "  - {step: a, tool: {kind: noop}}\n  - {step: b, tool: {kind: noop}}\n";
        let text = format!("  - {{step: start, tool: {{kind: noop}}, {form}}}\n{end}");
        playbook(&text).steps.remove(0).next
    };
    let shape = |form: &str| {
        let next = next(form);
        let arcs = next.arcs.iter().map(|arc| (arc.step.clone(), arc.when.clone())).collect::<Vec<_>>();
        (next.mode, arcs, next.on_no_match)
    };
    let (a, b) = (("a".to_owned(), None), ("b".to_owned(), None));
    let (exclusive, inclusive, end) = (NextMode::Exclusive, NextMode::Inclusive, OnNoMatch::End);
    assert_eq!(shape("when: true"), (exclusive, vec![], end));
    assert_eq!(shape("next: a"), (exclusive, vec![a.clone()], end));
    assert_eq!(shape("next: [a, b]"), (inclusive, vec![a.clone(), b.clone()], end));
    let guarded = ("b".to_owned(), Some(json!("x > 1")));
    let targets = "next: [{step: b, when: 'x > 1', args: {k: 1}}, {step: a}]";
    assert_eq!(shape(targets), (exclusive, vec![guarded, a.clone()], end));
    assert_eq!(Json::Object(next(targets).arcs[0].set.clone()), json!({ "k": 1 }));
    assert_eq!(shape("spec: {next_mode: inclusive}, next: [{step: a}]").0, inclusive);
    assert_eq!(shape("spec: {next_mode: inclusive}, next: {spec: {mode: exclusive}, arcs: []}").0, exclusive);
    let full = "next: {spec: {mode: inclusive, on_no_match: fail}, arcs: [{step: a, set: {ctx.x: 1}}, {step: b}]}";
    assert_eq!(shape(full), (inclusive, vec![a, b], OnNoMatch::Fail));
    assert_eq!(Json::Object(next(full).arcs[0].set.clone()), json!({ "ctx.x": 1 }));
    assert_eq!(shape("next: {spec: {on_no_match: quiet}, arcs: []}").2, end);
}

#[test]
fn loops_are_read_in_every_mode() {
    let repeat = |form: &str| {
        let text = format!("  - {{step: start, tool: {{kind: noop}}, loop: {form}}}\n");
        playbook(&text).steps.remove(0).repeat.expect(form)
    };
    let plain = repeat("{in: '{{ xs }}', iterator: x}");
    assert_eq!((plain.mode, plain.over, plain.max_in_flight), (LoopMode::Sequential, json!("{{ xs }}"), None));
    let parallel = repeat("{in: [1, 2], iterator: x, spec: {mode: parallel, max_in_flight: 5}}");
    assert_eq!((parallel.mode, parallel.over), (LoopMode::Parallel, json!([1, 2])));
    assert_eq!(parallel.max_in_flight, Some(Limit::Number(5)));
    let quoted = repeat("{in: 3, iterator: x, spec: {max_in_flight: '7'}}").max_in_flight;
    assert_eq!(quoted, Some(Limit::Template("7".to_owned())));
    let limit = repeat("{in: 3, iterator: x, spec: {max_in_flight: '{{ n }}'}}").max_in_flight;
    assert_eq!(limit, Some(Limit::Template("{{ n }}".to_owned())));
    let cursor = repeat(
        "{cursor: {kind: postgres, auth: pg, claim: SELECT 1}, iterator: row,
          spec: {mode: cursor, frame: {max_rows: 50}}}",
    );
    assert_eq!((cursor.mode, cursor.over), (LoopMode::Cursor, Json::Null));
    let cursor = cursor.cursor.expect("a cursor");
    assert_eq!((cursor.max_rows, cursor.row_concurrency, cursor.claim.kind.as_str()), (50, 1, "postgres"));
    assert_eq!(Json::Object(cursor.claim.config), json!({ "auth": "pg", "command": "SELECT 1" }));
}

#[test]
fn the_workbook_is_resolved_in_both_forms() {
    let workbook = "workbook:
  - name: greet
    tool: {kind: python, code: c, input: {a: 1, b: 1}, spec: {policy: {rules: [{else: {do: fail}}]}}}
";
    let of = |tool: &str| {
        let text = format!("{workbook}{}", document(&format!("  - {{step: start, tool: {tool}}}\n")));
        match parsed(&text).playbook.steps.remove(0).work {
            Work::Task(spec) => spec.tools,
            Work::Park(park) => panic!("{park:?}"),
        }
    };
    for (form, label) in [
        ("{kind: workbook, name: greet, input: {b: 2}}", "start"),
        ("[{kind: workbook, name: greet, input: {b: 2}}]", "greet"),
        ("[{name: first, kind: workbook, task: greet, input: {b: 2}}]", "first"),
        ("[{hello: {kind: workbook, name: greet, input: {b: 2}}}]", "hello"),
    ] {
        let tools = of(form);
        assert_eq!((tools[0].label.as_str(), tools[0].kind.as_str(), tools.len()), (label, "python", 1), "{form}");
        assert_eq!(Json::Object(tools[0].config.clone()), json!({ "code": "c" }), "{form}");
        assert_eq!(Json::Object(tools[0].input.clone()), json!({ "a": 1, "b": 2 }), "{form}");
        assert_eq!(tools[0].rules[0].action, Some(Action::Fail), "{form}");
    }
    let on_top = of("{kind: workbook, name: greet, timeout: 3, spec: {policy: {rules: [{else: {do: break}}]}}}");
    assert_eq!((on_top[0].rules[0].action.clone(), on_top[0].timeout_ms), (Some(Action::Break), Some(3000)));
}

#[test]
fn the_rest_of_a_step_is_read() {
    let mut steps = playbook(
        "  - step: start
    desc: 'not a {{ template'
    when: 'a > 1'
    tool: {kind: noop}
    set: {ctx.a: '{{ output }}'}
    spec:
      timeout: 5m
      on_error: continue
      policy: {admit: {mode: exclusive, rules: [{when: '{{ e }}', then: {allow: true}}, {else: {then: {allow: false}}}]}}
    next: wait
  - step: wait
    tool: {kind: park, message: 'ask {{ who }}', timeout: 1h}
",
    )
    .steps;
    let park = match steps.pop().expect("two steps").work {
        Work::Park(park) => park,
        Work::Task(spec) => panic!("{spec:?}"),
    };
    assert_eq!((park.message.as_deref(), park.timeout_ms), (Some("ask {{ who }}"), Some(3_600_000)));
    let step = steps.pop().expect("two steps");
    assert_eq!(
        (step.when, step.timeout_ms, step.on_error),
        (Some(json!("a > 1")), Some(300_000), Some(OnError::Continue))
    );
    assert_eq!(Json::Object(step.set), json!({ "ctx.a": "{{ output }}" }));
    let admit: Vec<_> = step.admit.into_iter().map(|admit| (admit.when, admit.allow)).collect();
    assert_eq!(admit, [(Some(json!("{{ e }}")), true), (None, false)]);
}

#[test]
fn a_playbook_for_a_plugin_lowers_its_steps_to_calls_of_it() {
    let text = format!(
        "executor: {{runtime: wasm, plugin: {{path: p/x, version: 2, capabilities: [kv]}}}}\n{}",
        document(
            "  - {step: start, input: {a: 1}, next: other}
  - {step: other, tool: {kind: wasm}, next: third}
  - {step: third, tool: {kind: wasm, plugin: q/y}}\n"
        )
    );
    let playbook = parsed(&text).playbook;
    let plugin = json!({ "path": "p/x", "version": "2", "capabilities": ["kv"] });
    let tools: Vec<&Tool> = playbook.tools().collect();
    assert!(tools.iter().all(|tool| tool.kind == "wasm"));
    assert_eq!((tools[0].config["plugin"].clone(), tools[1].config["plugin"].clone()), (plugin.clone(), plugin));
    assert_eq!(tools[2].config["plugin"], json!({ "path": "q/y" }));
    assert_eq!(Json::Object(tools[0].input.clone()), json!({ "a": 1 }));
}

#[test]
fn the_document_as_a_whole_is_read() {
    let text = "
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: n, path: p/n, description: d, labels: {team: a, level: 3, on: true}, owner: someone}
workload: {b: 1, a: {x: [1.5, null, 'null']}}
keychain: [{name: k}]
schedule: {cron: '0 9 * * 1', timezone: Europe/Berlin, payload: {a: 1}}
executor:
  profile: auto
  version: noetl-runtime/1
  requires: {tools: [http], features: [result_storage]}
  spec: {entry_step: first, no_next_is_error: true, timeout: 1h, policy: {failures: lenient}}
workflow:
  - {step: first, tool: {kind: system_pool}}
";
    let read = parsed(text);
    assert_eq!(read.warnings, []);
    let playbook = read.playbook;
    assert_eq!(playbook.digest.len(), 64);
    assert_eq!((playbook.metadata.name.as_str(), playbook.metadata.path.as_str()), ("n", "p/n"));
    let labels: Vec<(&str, &str)> = playbook.metadata.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(labels, [("level", "3"), ("on", "true"), ("team", "a")]);
    assert_eq!(serde_json::to_string(&playbook.workload).expect("json"), r#"{"b":1,"a":{"x":[1.5,null,"null"]}}"#);
    assert_eq!((playbook.keychain["k"].credential.as_str(), playbook.entry.as_str()), ("k", "first"));
    assert_eq!(playbook.schedule.expect("a schedule")["payload"], json!({ "a": 1 }));
    assert_eq!((playbook.executor.timeout_ms, playbook.executor.failures), (Some(3_600_000), Some(Failures::Lenient)));
    assert_eq!(
        (playbook.executor.requires.tools, playbook.executor.requires.features),
        (vec!["http".to_owned()], vec!["result_storage".to_owned()])
    );
    assert_eq!(playbook.steps[0].next.on_no_match, OnNoMatch::Fail);
    let other = parsed(&format!("{text}# more\n")).playbook;
    assert_ne!(other.digest, playbook.digest);
    assert_eq!(other.system_kinds(), ["system_pool"]);
}

#[test]
fn names_of_credentials_stand_for_what_is_declared() {
    let text = document("- {step: start, tool: {kind: noop}}");
    let keychain = "
keychain:
  - {name: plain, kind: bearer}
  - {name: other, kind: credential, credential: prod/api, map: {key: api_key}}
  - {name: old, auth: pg_k8s}
  - {name: cloud, kind: secrets, provider: gcp, auth: google, map: {key: projects/1/x}}
  - {name: inline, kind: static, token: abc}
  - {name: template, credential: '{{ alias }}'}
  - {kind: bearer}
";
    let read = parsed(&format!("{text}{keychain}"));
    let stands: Vec<(&str, &str)> =
        read.playbook.keychain.iter().map(|(name, declared)| (name.as_str(), declared.credential.as_str())).collect();
    let expected = [
        ("cloud", "cloud"),
        ("inline", "inline"),
        ("old", "pg_k8s"),
        ("other", "prod/api"),
        ("plain", "plain"),
        ("template", "template"),
    ];
    assert_eq!(stands, expected);
    assert_eq!(read.playbook.keychain["other"].fields["key"], "api_key");
    assert!(read.playbook.keychain["cloud"].fields.is_empty(), "where another place keeps it is no field");
    let warnings: Vec<&str> = read.warnings.iter().map(|warning| warning.message.as_str()).collect();
    for (warning, part) in warnings.iter().zip(["`gcp`", "`token`", "by its alias", "without a `name`"]) {
        assert!(warning.contains(part), "{warnings:#?}");
    }
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
}

#[test]
fn a_result_is_kept_for_those_who_ask_for_it() {
    for (output, keep) in [
        ("output: {output_select: [count]}", true),
        ("output: {store: {kind: auto}}", true),
        ("output: {store: kv, output_select: []}", true),
        ("output: {output_select: []}", false),
        ("output: {store: false}", false),
        ("desc: none", false),
        ("output: {store: kv}\n    loop: {in: [1], iterator: n}", false),
    ] {
        let spec = task(&format!("  - step: start\n    tool: {{kind: noop}}\n    {output}\n"));
        assert_eq!(spec.keep, keep, "{output}");
    }
}
