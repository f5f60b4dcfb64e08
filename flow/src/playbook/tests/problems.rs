use super::super::yaml::{DEEPEST, LARGEST};
use super::super::{Severity, parse};
use super::{document, problems};

/// Problems of a workflow that begins on line 5.
fn of(workflow: &str) -> String {
    problems(&document(workflow), false)
}

#[test]
fn all_problems_are_reported_at_once_with_place_path_and_suggestion() {
    let text = "\
apiVersion: noetl.io/v1
kind: Playbook
metadata: {nmae: x}
workflwo: []
workflow:
  - step: start
    tol: {kind: noop}
    next: {arcs: [{step: fetchh}]}
  - step: fetch
    tool: {kind: noop}
    loop: {in: '{{ xs }}', spec: {mode: paralel, max_in_flight: 0}}
  - step: fetch
    tool: {kind: noop}
";
    let expected = "\
1:13: error: apiVersion: expected `noetl.io/v2`, found `noetl.io/v1`; did you mean `noetl.io/v2`?
3:11: error: metadata: `name` is missing: what the playbook is called
4:1: warning: workflwo: unknown key `workflwo` is ignored; did you mean `workflow`?
6:5: error: workflow[0]: `tool` is missing in step `start`; use `kind: noop` to do nothing
7:5: warning: workflow[0].tol: unknown key `tol` is ignored; did you mean `tool`?
8:26: error: workflow[0].next.arcs[0].step: there is no step `fetchh`; did you mean `fetch`?
9:11: warning: workflow[1].step: the step `fetch` never runs: no path of arcs leads to it from `start`
11:11: error: workflow[1].loop: `iterator` is missing: the variable an item is bound to, also as `iter.<name>`
11:41: error: workflow[1].loop.spec.mode: expected `sequential` or `parallel` or `cursor`, found `paralel`; did you mean `parallel`?
11:65: error: workflow[1].loop.spec.max_in_flight: expected a whole number of at least 1 or a template (`{{ ... }}`), found `0`
12:11: error: workflow[2].step: the step `fetch` is already on line 9; names are unique
";
    assert_eq!(problems(text, false), expected);
}

#[test]
fn unknown_keys_are_errors_only_for_the_strict_and_keys_of_tools_are_not_ours() {
    let text = document("  - {step: start, tool: {kind: http, urll: x}, nxt: end, vars: {a: 1}}\n");
    let warnings = parse(&text, false).expect("only warnings").warnings;
    assert!(warnings.iter().all(|problem| problem.severity == Severity::Warning), "{warnings:?}");
    let problems = parse(&text, true).expect_err("strict");
    let errors: Vec<&str> =
        problems.iter().filter(|p| p.severity == Severity::Error).map(|p| p.path.as_str()).collect();
    assert_eq!(errors, ["workflow[0].nxt"], "{problems:?}");
}

#[test]
fn each_mistake_has_its_message() {
    for (workflow, message) in [
        ("  - {step: begin, tool: {kind: noop}}", "there is no step `start`, with which an execution begins"),
        ("  - {step: start, tool: {kind: noop}, case: []}", "`case` is not supported; write guards on the arcs"),
        ("  - {step: start, tool: {}}", "tool: `kind` is missing"),
        ("  - {step: start, tool: []}", "the list has no tools"),
        (
            "  - {step: start, tool: [{kind: subscription, stream: S, consumer: c}, {kind: noop}]}",
            "`ack: on_success` acknowledges when the poll is done",
        ),
        (
            "  - {step: start, tool: [{kind: nats, operation: js_consume, stream: S, consumer: c}, {kind: noop}]}",
            "`js_consume` acknowledges when its call is done",
        ),
        (
            "  - {step: start, tool: [{kind: wasm, plugin: tools/subscription, input: {stream: S}}, {kind: noop}]}",
            "`ack: on_success` acknowledges when the poll is done",
        ),
        ("  - {step: start, tool: noop}", "expected a map or a list, found `noop`"),
        ("  - {step: start, tool: {kind: htpp}}", "did you mean `http`?"),
        ("  - {step: start, tool: {kind: 'A B'}}", "cannot be a kind of tool"),
        ("  - {step: start, tool: {kind: workbook, name: x}}", "the workbook has no `x`"),
        ("  - {step: start, tool: {kind: workbook}}", "which tool of the workbook"),
        ("  - {step: start, tool: {kind: wasm}}", "the path of the plugin"),
        ("  - {step: start, tool: [{name: a, kind: noop}, {name: a, kind: noop}]}", "the label `a` is used twice"),
        ("  - {step: start, tool: [{name: a, kind: park}]}", "the only tool of its step"),
        ("  - {step: start, tool: {kind: park}, loop: {in: [1], iterator: i}}", "cannot have a loop"),
        ("  - {step: start, tool: {kind: noop}, loop: {iterator: i}}", "`in` is missing"),
        ("  - {step: start, tool: {kind: noop}, loop: {in: true, iterator: i}}", "expected a list, or a template"),
        ("  - {step: start, tool: {kind: noop}, loop: {in: [1], iterator: 1a}}", "cannot be a variable"),
        ("  - {step: start, tool: {kind: noop}, loop: {iterator: i, spec: {mode: cursor}}}", "`cursor` is missing"),
        (
            "  - {step: start, tool: {kind: noop}, loop: {in: [1], cursor: {kind: pg}, iterator: i}}",
            "`in` or over a `cursor`, not both",
        ),
        ("  - {step: start, tool: {kind: noop, timeout: 0}}", "a time limit of 0"),
        ("  - {step: start, tool: {kind: noop, timeout: soon}}", "such as `500ms`"),
        ("  - {step: start, tool: {kind: noop}, spec: {on_error: explode}}", "expected `fail` or `continue`"),
        ("  - {step: start, tool: {kind: http, url: '{{ x'}}", ""),
        ("  - {step: start, tool: {kind: http, url: '{{ x + }}'}}", "the template does not compile"),
        ("  - {step: start, tool: {kind: noop}, when: 'a =='}", "the condition does not compile"),
        ("  - {step: start, tool: {kind: noop}, when: ''}", "an expression or a boolean"),
        ("  - {step: start, tool: {kind: noop}, next: {arcs: [{step: start, when: '{{ a = }}'}]}}", "does not compile"),
        ("  - {step: start, tool: {kind: noop}, next: {arcs: [{step: start}, {step: start}]}}", "never taken"),
        ("  - {step: ctx, tool: {kind: noop}}", "hides the variable"),
        ("  - {step: '', tool: {kind: noop}}", "cannot be empty"),
        ("  - {step: 5, tool: {kind: noop}}", "expected text, found `5`"),
    ] {
        let found = of(workflow);
        assert!(found.contains(message), "{workflow}\nwants: {message}\n{found}");
    }
}

#[test]
fn rules_are_checked() {
    let rule = |rules: &str| {
        of(&format!("  - step: start\n    tool: [{{name: a, kind: noop, spec: {{policy: {{rules: {rules}}}}}}}]\n"))
    };
    for (rules, message) in [
        ("[{when: true, then: {do: rety}}]", "did you mean `retry`?"),
        ("[{when: true, then: {do: jump}}]", "`to` is missing"),
        ("[{when: true, then: {do: jump, to: b}}]", "no tool with the label `b`"),
        ("[{else: {do: jump, to: b}}]", "no tool with the label `b`"),
        ("[{when: true, then: {do: retry, attempts: 0}}]", "at least 1"),
        ("[{when: true, then: {do: retry, backoff: slow}}]", "expected `none` or `fixed`"),
        ("[{when: true, then: {do: retry, jitter: 2}}]", "a number from 0 to 1"),
        ("[{when: true, else: {do: fail}}]", "either `when` or `else`"),
        ("[{else: {do: fail}}, {when: true, then: {do: continue}}]", "never apply"),
        ("[{when: 'output..x', then: {do: fail}}]", "the condition does not compile"),
        ("{}", "expected a list, found a map"),
    ] {
        let found = rule(rules);
        assert!(found.contains(message), "{rules}\nwants: {message}\n{found}");
    }
    assert_eq!(rule("[{when: true, then: {do: jump, to: '@previous'}}]"), "");
}

#[test]
fn whole_documents_are_refused_with_a_reason() {
    let deep = "[".repeat(DEEPEST + 2) + &"]".repeat(DEEPEST + 2);
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", "));
        }
        text
    };
    for (text, message) in [
        ("", "the document is empty"),
        ("# only a comment\n", "the document is empty"),
        ("- a\n", "1:1: error: expected a playbook"),
        ("a: [", "not YAML"),
        ("a: 1\nb: 2\na: 3\n", "3:1: error: a: duplicate key `a`; it is already on line 1"),
        ("a: 1\n---\nb: 2\n", "a second document begins here"),
        ("a: \0b", "1:4: error: a control character"),
        ("? [a]\n: b\n", "a key has to be text"),
        ("a: &x [*x]\n", "contains it"),
        ("a: &x {b: 1}\nc: {<<: *x}\n", "merge keys"),
        (&deep, "nested deeper"),
        (&bomb, "too large, with its aliases written out"),
        (&"x".repeat(LARGEST + 1), "make it smaller"),
    ] {
        let found = problems(text, false);
        let shown: String = text.chars().take(100).collect();
        assert!(found.contains(message), "{shown}\nwants: {message}\n{found}");
    }
}

#[test]
fn schedules_and_executors_are_checked() {
    let with =
        |block: &str| problems(&format!("{block}\n{}", document("  - {step: start, tool: {kind: noop}}")), false);
    for (block, message) in [
        ("schedule: {cron: '61 * * * *'}", "1:18: error: schedule.cron: `61` is no minute"),
        ("schedule: {cron: '@daily', timezone: Mars}", "schedule.timezone: there is no time zone `Mars`"),
        ("schedule: {}", "`cron` is missing"),
        ("schedule: {cron: '@daily', missed: all}", "expected `run_once`"),
        ("executor: {runtime: wasm}", "`plugin` is missing"),
        ("executor: {plugin: a}", "has no effect without `runtime: wasm`"),
        ("executor: {runtime: wasm, plugin: {version: 1}}", "executor.plugin: `path` is missing"),
        ("executor: {spec: {entry_step: strat}}", "did you mean `start`?"),
        ("executor: {spec: {policy: {failures: never}}}", "expected `lenient` or `strict`"),
        ("workbook: [{name: a, tool: {kind: noop}}, {name: a, tool: {kind: noop}}]", "`a` twice"),
        ("workload: {a: '{{ x + }}'}", "1:15: warning: workload.a: the template does not compile"),
        ("workload: {a: 99999999999999999999}", "warning: workload.a: `99999999999999999999` is too large"),
        ("workload: {a: !secret x}", "the tag `!secret` is ignored"),
        ("vars: {a: 1}", "put variables into `workload`"),
    ] {
        let found = with(block);
        assert!(found.contains(message), "{block}\nwants: {message}\n{found}");
    }
}

#[test]
fn aliases_have_paths_of_their_own() {
    let text = document("  - {step: start, tool: &t {kind: a b}, next: two}\n  - {step: two, tool: *t}\n");
    let found = problems(&text, false);
    assert!(found.contains("5:35: error: workflow[0].tool.kind:"), "{found}");
    assert!(found.contains("5:35: error: workflow[1].tool.kind:"), "{found}");
}

#[test]
fn what_is_copied_is_bounded() {
    let long = "x".repeat(1 << 20);
    let references = "{kind: workbook, name: a}, ".repeat(100);
    let workbook = format!("workbook: [{{name: a, tool: {{kind: noop, code: {long}}}}}]\n");
    let text = document(&format!(
        "  - {{step: start, tool: {{kind: noop}}, next: b}}\n  - {{step: b, tool: [{references}]}}\n"
    ));
    assert!(problems(&format!("{workbook}{text}"), false).contains("written out the playbook is too large"));
    let tools = "{kind: noop}, ".repeat(100);
    let text = document(&format!("  - {{step: start, tool: [{tools}], input: {{a: {long}}}}}\n"));
    assert!(problems(&text, false).contains("written out the playbook is too large"));
    assert!(problems(&text.replace("input", "vars"), false).contains("has no effect"));
}
