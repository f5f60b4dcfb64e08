//! What playbooks do, feature by feature.

mod common;

use common::{Kernel, playbook, run};
use serde_json::json;

#[test]
fn a_line_of_steps_ends_with_the_result_of_the_last() {
    let (kernel, id) = run("
workload: {name: world, greeting: 'hello {{ name }}'}
workflow:
- step: start
  tool: {kind: noop, result: {text: '{{ greeting }}', id: '{{ execution_id }}'}}
  set: {ctx.seen: '{{ output.text }}'}
  next: {arcs: [{step: middle}]}
- step: middle
  tool: {kind: noop, result: ['{{ ctx.seen }}', '{{ start.data.text }}', '{{ workload.name }}']}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ middle }}'}
");
    assert_eq!(kernel.status(id), "completed", "{:#?}", kernel.journal);
    assert_eq!(kernel.result(id, "end"), json!(["hello world", "hello world", "world"]));
    assert_eq!(kernel.entered(id), ["start", "middle", "end"]);
}

#[test]
fn a_step_of_its_own_may_go_on_after_failures() {
    let (kernel, id) = run("
workflow:
- step: start
  spec: {on_error: continue}
  tool: {kind: noop, fail: true}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ start.status }}'}
");
    assert_eq!((kernel.status(id), kernel.result(id, "end")), ("completed", json!("error")));
    assert_eq!(kernel.state_of(id).failed_steps, ["start"]);
}

#[test]
fn a_merge_inside_a_loop_of_arcs_waits_in_every_round() {
    let text = playbook(
        "
workflow:
- step: start
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
- step: left
  tool: {kind: noop}
  next: {arcs: [{step: merge}]}
- step: right
  tool: {kind: noop}
  next: {arcs: [{step: merge}]}
- step: merge
  tool: {kind: noop}
  set: {ctx.rounds: '{{ (ctx.rounds | default(0)) + 1 }}'}
  next: {arcs: [{step: start, when: '{{ ctx.rounds < 3 }}'}, {step: end}]}
- step: end
  tool: {kind: noop, result: '{{ ctx.rounds }}'}
",
    );
    let mut kernel = Kernel::with(&text);
    let id = kernel.start("{}");
    while !kernel.todo.is_empty() {
        let last = kernel.todo.len() - 1;
        kernel.perform(last);
    }
    assert_eq!(kernel.result(id, "end"), json!(3), "{:#?}", kernel.journal);
    let state = kernel.state_of(id);
    let runs: Vec<u32> = ["start", "left", "right", "merge"].iter().map(|name| state.steps[*name].run).collect();
    assert_eq!(runs, [3, 3, 3, 3]);
}

#[test]
fn a_step_that_is_led_to_while_it_runs_runs_again_afterwards() {
    let (kernel, id) = run("
workflow:
- step: start
  tool: {kind: noop}
  set: {ctx.n: '{{ (ctx.n | default(0)) + 1 }}'}
  next: {spec: {mode: inclusive}, arcs: [{step: a, when: '{{ ctx.n == 1 }}'}, {step: b, when: '{{ ctx.n == 1 }}'}]}
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: start}]}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: start}]}
");
    assert_eq!(kernel.status(id), "completed");
    assert_eq!(kernel.state_of(id).steps["start"].run, 3, "once for `a` and once for `b`");
}

#[test]
fn a_child_that_takes_too_long_is_given_up() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  spec: {timeout: 5s}
  tool: {kind: playbook, path: slow, return_result: true}
  next: {arcs: [{step: end, when: \"{{ error.code == 'timeout' }}\"}]}
- step: end
  tool: {kind: noop}
",
    ));
    kernel.catalog.insert("slow".to_owned(), playbook("workflow: [{step: start, tool: {kind: park}}]"));
    let id = kernel.start("{}");
    kernel.run();
    let due = kernel.wakes[&id].expect("there is a time to wake at");
    kernel.clock = due;
    kernel.feed(id, noetl_flow::decide::Happening::Wake);
    kernel.run();
    assert_eq!((kernel.status(id), kernel.status(id + 1)), ("completed", "cancelled"));
}

#[test]
fn a_failure_does_not_wait_for_children_and_parked_steps() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: parked}, {step: child}, {step: fails}]}
- step: parked
  tool: {kind: park}
- step: child
  tool: {kind: playbook, path: slow, return_result: true}
- step: fails
  tool: {kind: noop, fail: true}
",
    ));
    kernel.catalog.insert("slow".to_owned(), playbook("workflow: [{step: start, tool: {kind: park}}]"));
    let id = kernel.start("{}");
    kernel.perform(0);
    while kernel.todo.len() > 1 {
        let child = kernel.todo.iter().position(|todo| matches!(todo, common::Todo::StartChild(..)));
        kernel.perform(child.expect("the child comes first"));
    }
    kernel.run();
    assert_eq!((kernel.status(id), kernel.status(id + 1)), ("failed", "cancelled"));
    let again = kernel.again(id, None);
    kernel.run();
    let entered = kernel.entered(again);
    assert_eq!(entered, ["fails", "child", "parked"], "all that had not come to an end");
}

#[test]
fn a_variable_is_not_the_place_for_bulk() {
    let (kernel, id) = run("
workflow:
- step: start
  tool: {kind: noop, repeat: 50000, result: a row of some length to be repeated}
  set: {ctx.rows: '{{ output.rows }}'}
");
    assert_eq!(kernel.status(id), "failed");
    let error = kernel.error(id);
    assert_eq!(error.code, "too_large");
    assert!(error.message.contains("`rows`"), "{}", error.message);
}

#[test]
fn a_playbook_says_whether_it_waits_for_another() {
    for (how, status, result) in [
        ("wait: true", "completed", json!(7)),
        ("return_result: true", "completed", json!(7)),
        ("return_step: start, wait: false", "completed", json!("started")),
        ("return_result: false", "completed", json!("started")),
    ] {
        let mut kernel = Kernel::with(&playbook(&format!(
            "
workflow:
- step: start
  tool: {{kind: playbook, path: other, {how}}}
  next: {{arcs: [{{step: end}}]}}
- step: end
  tool: {{kind: noop, result: '{{{{ start.status | default(start) }}}}'}}
"
        )));
        kernel.catalog.insert("other".to_owned(), playbook("workflow: [{step: start, tool: {kind: noop, result: 7}}]"));
        let id = kernel.start("{}");
        kernel.run();
        assert_eq!((kernel.status(id), kernel.result(id, "end")), (status, result), "{how}");
    }
}

#[test]
fn the_input_of_a_playbook_may_be_the_json_of_an_object() {
    for (given, status) in [(r#"{"a": 4}"#, "completed"), ("[4]", "failed"), ("four", "failed")] {
        let mut kernel = Kernel::with(&playbook(
            "
workload: {given: ''}
workflow:
- step: start
  tool: {kind: playbook, path: kid, return_result: true, input: '{{ given }}'}
",
        ));
        let kid = "workload: {a: 0}\nworkflow: [{step: start, tool: {kind: noop, result: '{{ a }}'}}]";
        kernel.catalog.insert("kid".to_owned(), playbook(kid));
        let id = kernel.start(&json!({"given": given}).to_string());
        kernel.run();
        assert_eq!(kernel.status(id), status, "{given}");
        match status {
            "completed" => assert_eq!(kernel.result(id, "start"), json!(4)),
            _ => assert!(kernel.error(id).message.contains("an object"), "{given}"),
        }
    }
}

#[test]
fn a_result_of_maps_that_was_handed_on_is_read_as_it_is() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: playbook, path: kid, return_step: start}
  set: {ctx.id: '{{ output.data.user.id }}', ctx.total: '{{ output.result.order.total }}'}
  next: {arcs: [{step: end, when: '{{ output.data.user.data.x == 1 }}'}]}
- step: end
  tool: {kind: noop, result: ['{{ start.data.user.id }}', '{{ start.result.user.data.x }}', '{{ start.total }}', '{{ id }}', '{{ total }}']}
",
    ));
    let kid = "workflow: [{step: start, tool: {kind: noop, result: {user: {id: 3, data: {x: 1}}, order: {total: 5, result: 6}}}}]";
    kernel.catalog.insert("kid".to_owned(), playbook(kid));
    let id = kernel.start("{}");
    kernel.run();
    assert_eq!(kernel.result(id, "end"), json!([3, 1, 5, 3, 5]), "{:#?}", kernel.journal);
}

#[test]
fn code_that_is_given_a_pipeline_as_a_whole_finds_the_fields_of_its_tools() {
    let (kernel, id) = run("
workflow:
- step: start
  tool:
  - {name: make, kind: noop, result: {total: 3}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ start }}'}
");
    assert_eq!(kernel.result(id, "end"), json!({"make": {"total": 3}, "total": 3}), "{:#?}", kernel.journal);
}

#[test]
fn what_cannot_be_run_again_is_refused() {
    use noetl_flow::decide::{Again, Happening, Outcome};
    let mut kernel = Kernel::with(&playbook("workflow: [{step: start, tool: {kind: noop}}]"));
    let id = kernel.start("{}");
    let refusal = |kernel: &mut Kernel, step: Option<&str>| {
        let mut request = kernel.request("main", "{}");
        let segments = kernel.chains[&id].clone();
        request.again = Some(Again { execution: id, step: step.map(str::to_owned), segments });
        match kernel.feed(500, Happening::Start(Box::new(request))) {
            Outcome::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refusal(&mut kernel, None).contains("has not ended"));
    kernel.run();
    assert!(refusal(&mut kernel, None).contains("no step to be run again"));
    assert!(refusal(&mut kernel, Some("nobody")).contains("no such step"));
    assert!(!kernel.chains.contains_key(&500), "nothing was recorded");
}

#[test]
fn a_lost_command_is_tried_again_but_not_for_ever() {
    use noetl_flow::decide::Happening;
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  loop: {in: 2, iterator: n}
  tool: {kind: noop, result: '{{ n }}'}
",
    ));
    let id = kernel.start("{}");
    kernel.feed(id, Happening::Lost("start#1[0]".to_owned(), true));
    for attempt in 2..1_000 {
        assert_eq!(kernel.status(id), "running");
        kernel.feed(id, Happening::Lost(format!("start#1[0]~{attempt}"), true));
    }
    kernel.feed(id, Happening::Lost("start#1[0]~1000".to_owned(), true));
    assert_eq!((kernel.status(id), kernel.error(id).code.as_str()), ("failed", "lost"));
}

#[test]
fn inputs_after_a_need_answer_the_same_need() {
    use noetl_flow::decide::{Happening, Input, Need, Orchestrator, Outcome};
    let text = playbook("workflow: [{step: start, tool: {kind: noop}}]");
    let kernel = Kernel::with(&text);
    let request = kernel.request("main", "{}");
    let digest = request.digest.clone();
    let mut orchestrator = Orchestrator::new();
    let start = Input { execution: 1, time_ms: 5, what: Happening::Start(Box::new(request)) };
    let wake = Input { execution: 1, time_ms: 6, what: Happening::Wake };
    let other = Input { execution: 2, time_ms: 6, what: Happening::Wake };
    let batch = vec![start.clone(), wake.clone(), other];
    let outcomes: Vec<Outcome> = orchestrator.drive(batch).into_iter().map(|decision| decision.outcome).collect();
    let need = || Outcome::Needs(Need::Playbook(digest.clone()));
    assert_eq!(outcomes, [need(), need(), Outcome::Needs(Need::State)]);
    orchestrator.learn(&digest, &text).expect("a playbook");
    let outcomes: Vec<Outcome> = orchestrator.drive(vec![start, wake]).into_iter().map(|d| d.outcome).collect();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Decided(_))), "{outcomes:?}");
    assert_eq!((orchestrator.usage().executions, orchestrator.usage().playbooks), (1, 1));
}

#[test]
fn a_turn_that_waits_for_a_payload_is_given_up_for_another_input() {
    use noetl_flow::decide::{Happening, Input, Need, Outcome};
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: noop, repeat: 500, result: a row of some length to be repeated}
  next: {arcs: [{step: end, when: '{{ output.rows[499] }}'}]}
- step: end
  tool: {kind: noop}
",
    ));
    let id = kernel.start("{}");
    let Some(common::Todo::Run(_, command)) = kernel.todo.pop() else { panic!("a command") };
    let report = Happening::Report(kernel.work(id, &command));
    let drive = |kernel: &mut Kernel, what: Happening| {
        let input = Input { execution: id, time_ms: 2_000, what };
        kernel.orchestrator.drive(vec![input]).pop().expect("a decision").outcome
    };
    let needs = drive(&mut kernel, report.clone());
    assert!(matches!(needs, Outcome::Needs(Need::Value(_))), "{needs:?}");
    assert_eq!(drive(&mut kernel, report), needs, "until it is supplied");
    assert_eq!(drive(&mut kernel, Happening::Abort("gone".to_owned())), Outcome::Needs(Need::State));
    kernel.feed(id, Happening::Abort("gone".to_owned()));
    assert_eq!(kernel.error(id).message, "gone");
    assert!(kernel.state_of(id).step("start").is_some_and(|step| step.result.is_none()), "the report was not recorded");
}

#[test]
fn a_loop_of_arcs_with_nothing_to_do_is_an_error() {
    let (kernel, id) = run("
workflow:
- step: start
  loop: {in: [], iterator: n}
  tool: {kind: noop}
  next: {arcs: [{step: skipped}]}
- step: skipped
  when: '{{ false }}'
  tool: {kind: noop}
  next: {arcs: [{step: start}]}
");
    assert_eq!((kernel.status(id), kernel.error(id).code.as_str()), ("failed", "endless"));
}

#[test]
fn rules_write_variables_and_fields_of_them() {
    let (kernel, id) = run("
workflow:
- step: start
  tool: {kind: noop}
  set: {ctx.totals: {a: 1}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, set: {ctx.totals.b: 2, iter.c: 3, ctx.d: 4}}
");
    let variables = serde_json::to_value(&kernel.state_of(id).variables).expect("JSON");
    assert_eq!(variables, json!({"d": 4, "totals": {"a": 1, "b": 2}}));
    let sent: Vec<&String> = kernel.journal.iter().filter(|line| line.contains("run end#1")).collect();
    assert!(sent[0].contains("\"totals\":{\"a\":1}"), "the runner needs what the variable is: {sent:?}");
}

#[test]
fn secrets_are_placeholders_in_tools_variables_and_arcs_alike() {
    let (kernel, id) = run("
keychain:
- {name: ai, credential: openai, map: {key: api_key}}
workflow:
- step: start
  tool: {kind: noop, result: {declared: '{{ keychain.ai.key }}', bare: 'Bearer {{ keychain.pg.password }}'}}
  set: {ctx.later: '{{ keychain.ai.key }}'}
  next: {arcs: [{step: end, when: \"{{ 'openai' in keychain.ai.key }}\"}]}
- step: end
  tool: {kind: noop, result: ['{{ later }}', '{{ token(\"ai\") }}', '{{ start.declared }}']}
");
    assert_eq!(kernel.status(id), "completed", "{:#?}", kernel.journal);
    let key = "NOETL~SECRET~openai~api_key~END";
    let bare = "Bearer NOETL~SECRET~pg~password~END";
    assert_eq!(kernel.result(id, "start"), json!({ "declared": key, "bare": bare }));
    assert_eq!(kernel.result(id, "end"), json!([key, "NOETL~SECRET~ai~token~END", key]));
}

#[test]
fn what_a_playbook_writes_has_a_tag_and_what_data_has_gets_none() {
    let mut kernel = Kernel::with(&playbook("
workload: {early: '{{ keychain.pg.password }}', data: ''}
workflow:
- step: start
  tool: {kind: noop, result: ['{{ keychain.pg.password }}', '{{ token(\"pg\") }}', '{{ early }}', '{{ data }}', '{{ env }}']}
  set: {ctx.later: '{{ keychain.pg.password }}'}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ later }}'}
"));
    kernel.environment = vec![("NOETL~SEAL".to_owned(), "the seal".to_owned())];
    let data = "NOETL~SECRET~pg~password~END";
    let id = kernel.start(&json!({ "data": data }).to_string());
    kernel.run();
    assert_eq!(kernel.status(id), "completed", "{:#?}", kernel.journal);
    let tagged = |field: &str| noetl_flow::keychain::placeholder(Some("the seal"), "pg", field);
    let password = tagged("password");
    assert_eq!(kernel.result(id, "start"), json!([password, tagged("token"), password, data, {}]));
    assert_eq!(kernel.result(id, "end"), json!(password));
    assert!(password.len() > data.len());
}

#[test]
fn result_is_what_the_step_before_came_to_unless_something_else_is_called_so() {
    let (kernel, id) = run("
workflow:
- step: start
  tool: {kind: noop, result: {n: 1}}
  set: {ctx.by_set: '{{ result.n }}'}
  next: {arcs: [{step: wrong, when: '{{ result.n == 2 }}'}, {step: list, when: '{{ result.status == ''success'' }}'}]}
- step: wrong
  tool: {kind: noop}
- step: list
  loop: {in: '{{ [result.n, 5] }}', iterator: item}
  tool: {kind: noop, result: '{{ item + result.n }}'}
  next: {arcs: [{step: last}]}
- step: last
  tool: {kind: noop, result: ['{{ result.data }}', '{{ ctx.by_set }}']}
  next: {arcs: [{step: named, set: {result: mine}}]}
- step: named
  tool: {kind: noop, result: '{{ result }}'}
");
    assert_eq!(kernel.status(id), "completed", "{:#?}", kernel.journal);
    assert_eq!(kernel.result(id, "last"), json!([[2, 6], 1]));
    assert_eq!(kernel.result(id, "named"), json!("mine"));
}

#[test]
fn result_is_that_of_the_branch_that_came_and_of_the_round_before() {
    let (kernel, id) = run("
workflow:
- step: start
  tool: {kind: noop, result: {n: 1}}
  next: {arcs: [{step: other, when: false}, {step: count}]}
- step: other
  tool: {kind: noop, result: {n: 100}}
  next: {arcs: [{step: count}]}
- step: count
  tool: {kind: noop, result: {n: '{{ result.n + 1 }}'}}
  next: {arcs: [{step: count, when: '{{ output.n < 4 }}'}]}
");
    assert_eq!((kernel.status(id), kernel.result(id, "count")), ("completed", json!({"n": 4})));
}

#[test]
fn each_result_of_a_loop_over_a_pipeline_is_read_as_a_pipelines() {
    let (kernel, id) = run("
workflow:
- step: start
  loop: {in: [3, 4], iterator: item}
  tool:
  - {name: a, kind: noop, result: {score: '{{ item }}'}}
  - {name: b, kind: noop, result: {saved: true}}
  next: {arcs: [{step: end, when: '{{ output.results[1].score == 4 and start.data[0].saved }}'}]}
- step: end
  tool: {kind: noop, result: ['{{ start.results[0].score }}', '{{ start.data[1].score }}', '{{ start.data[1].a.score }}']}
");
    assert_eq!((kernel.status(id), kernel.result(id, "end")), ("completed", json!([3, 4, 4])));
}
