//! What can be asked of the end of a step: of an answer, of a loop, of a child, and what a failure means.

mod common;

use common::{Kernel, playbook, run};
use serde_json::json;

#[test]
fn a_step_of_a_child_is_told_exactly_however_large_and_however_early_it_was() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: playbook, path: child, return_step: first}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: ['{{ start.rows | length }}', '{{ start.rows[699] }}', '{{ start.status }}', '{{ start.execution_id }}']}
",
    ));
    let rest = (2..12).map(|n| {
        format!(
            "- {{step: s{n}, tool: {{kind: noop, repeat: 300, result: 'something else of step {n}'}}, next: s{}}}\n",
            n + 1
        )
    });
    let rest: String = rest.collect();
    kernel.catalog.insert(
        "child".to_owned(),
        playbook(&format!(
            "workflow:\n- {{step: start, tool: {{kind: noop}}, next: first}}\n- {{step: first, tool: {{kind: noop, repeat: 700, \
             result: one row of the first step and there are many}}, next: s2}}\n{rest}- {{step: s12, tool: {{kind: noop, \
             result: last}}}}\n"
        )),
    );
    let id = kernel.start("{}");
    kernel.run();
    let row = "one row of the first step and there are many";
    assert_eq!(kernel.result(id, "end"), json!([700, row, "completed", (id + 1).to_string()]), "{:#?}", kernel.journal);
}

#[test]
fn a_step_of_a_child_that_never_ran_has_no_result_and_no_other_takes_its_place() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: playbook, path: child, return_step: end}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: ['{{ start.status }}', '{{ start.early is defined }}']}
",
    ));
    kernel.catalog.insert(
        "child".to_owned(),
        playbook(
            "workflow:\n- {step: start, tool: {kind: noop, result: {early: true}}, next: {arcs: [{step: end, when: false}]}}\n\
             - {step: end, tool: {kind: noop}}\n",
        ),
    );
    let id = kernel.start("{}");
    kernel.run();
    assert_eq!(kernel.result(id, "end"), json!(["completed", false]), "{:#?}", kernel.journal);
}

#[test]
fn a_small_result_has_an_address_when_the_playbook_asks_for_one() {
    let mut kernel = Kernel::with(&playbook(
        "
workflow:
- step: start
  tool: {kind: playbook, path: child, return_result: true}
  output: {store: {kind: auto}}
  set: {ctx.at: '{{ output._ref }}'}
  next: {arcs: [{step: end, when: '{{ start._ref is defined }}'}]}
- step: end
  tool: {kind: noop, result: ['{{ start.n }}', '{{ ctx.at }}']}
",
    ));
    kernel
        .catalog
        .insert("child".to_owned(), playbook("workflow: [{step: start, tool: {kind: noop, result: {n: 1}}}]"));
    let id = kernel.start("{}");
    kernel.run();
    let address = format!("noetl://payload/{}", common::digest(br#"{"n":1}"#));
    assert_eq!(kernel.result(id, "end"), json!([1, address]), "{:#?}", kernel.journal);
}

#[test]
fn where_failures_are_passed_over_work_that_could_not_be_done_at_all_is_not() {
    let text = |more: &str, code: &str| {
        playbook(&format!(
            "
workflow:
- step: start
  {more}
  tool: {{kind: noop, fail: true, code: {code}, result: {{left: 1}}}}
  next: {{arcs: [{{step: asked, when: \"{{{{ error.code == 'asked' }}}}\"}}, {{step: end}}]}}
- step: end
  tool: {{kind: noop, result: reached}}
- step: asked
  tool: {{kind: noop, result: asked}}
"
        ))
    };
    let looped = "loop: {in: [1, 2], iterator: n}";
    for (more, code, status, entered) in [
        ("desc: soft", "exit_code", "completed", &["start", "end"][..]),
        ("desc: hard", "unknown_tool", "failed", &["start"]),
        ("spec: {on_error: continue}", "unknown_tool", "completed", &["start", "end"]),
        ("spec: {on_error: fail}", "exit_code", "failed", &["start"]),
        (looped, "exit_code", "completed", &["start", "end"]),
        (looped, "unknown_tool", "failed", &["start"]),
    ] {
        let mut kernel = Kernel::with(&text(more, code));
        kernel.lenient = true;
        let id = kernel.start("{}");
        kernel.run();
        assert_eq!(
            (kernel.status(id), &kernel.entered(id)[..]),
            (status, &entered.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]),
            "{more} {code}"
        );
        assert_eq!(kernel.state_of(id).failed_steps, ["start"], "it is told in any case");
    }
}

#[test]
fn a_child_that_a_pipeline_waits_for_ends_with_its_parent() {
    use noetl_flow::decide::{ChildStarted, Happening, Outcome};
    let text = playbook(
        "
workflow:
- step: start
  tool: [{name: one, kind: playbook, path: slow, return_result: true}]
",
    );
    let started = |kernel: &mut Kernel, id: u64| {
        let by = Some(("one".to_owned(), "slow".to_owned()));
        kernel.feed(id, Happening::ChildStarted(ChildStarted { command: "start#1".to_owned(), execution: 900, by }));
    };
    let mut kernel = Kernel::with(&text);
    kernel.forgetful = true;
    let id = kernel.start("{}");
    assert_eq!(kernel.load(id).commands.len(), 1);
    started(&mut kernel, id);
    let owed = kernel.load(id);
    assert_eq!(
        (owed.commands.len(), owed.waiting.len()),
        (1, 0),
        "the command is still the runner's, who finds the child"
    );
    let cancel = noetl_flow::decide::Cancel { reason: "enough".to_owned(), requested_by: "tester".to_owned() };
    kernel.clock += 1;
    let input = noetl_flow::decide::Input { execution: id, time_ms: kernel.clock, what: Happening::Cancel(cancel) };
    kernel.load(id);
    let Outcome::Decided(decided) = kernel.orchestrator.drive(vec![input]).remove(0).outcome else { panic!("decided") };
    assert_eq!((decided.orphaned, decided.withdrawn), (vec![900], vec!["start#1".to_owned()]));
}

#[test]
fn a_child_that_a_lost_worker_waited_for_does_not_outlive_the_wait() {
    use noetl_flow::decide::{ChildStarted, Happening, Input, Outcome};
    for (repeat, command) in [("", "start#1"), ("loop: {in: 1, iterator: n}", "start#1[0]")] {
        for lost_before in [false, true] {
            let mut kernel = Kernel::with(&playbook(&format!(
                "
workflow:
- step: start
  {repeat}
  tool: [{{name: one, kind: playbook, path: slow, return_result: true}}]
"
            )));
            let id = kernel.start("{}");
            let by = Some(("one".to_owned(), "slow".to_owned()));
            let started = ChildStarted { command: command.to_owned(), execution: 900, by };
            kernel.feed(id, Happening::ChildStarted(started));
            let mut lost = command.to_owned();
            if lost_before {
                // The one after it dies before it has found the child again.
                let outcome = kernel.feed(id, Happening::Lost(lost, true));
                let Outcome::Decided(decided) = outcome else { panic!("{outcome:?}") };
                assert_eq!((decided.orphaned, decided.commands.len()), (vec![], 1));
                lost = format!("{command}~2");
            }
            let input = Input { execution: id, time_ms: kernel.clock + 1, what: Happening::Lost(lost, false) };
            let outcome = kernel.orchestrator.drive(vec![input]).remove(0).outcome;
            let Outcome::Decided(decided) = outcome else { panic!("{outcome:?}") };
            assert_eq!(decided.orphaned, vec![900], "{command} {lost_before}");
            assert_eq!(decided.ended.expect("an end").status, "failed");
        }
    }
}

#[test]
fn an_http_answer_says_the_same_in_arcs_guards_and_sets_whether_it_is_a_failure_or_not() {
    for (form, fail) in [("", false), ("", true), ("- ", false), ("- ", true)] {
        let (kernel, id) = run(&format!(
            "
workflow:
- step: start
  spec: {{on_error: continue}}
  tool:
    {form}{{kind: noop, name: ask, fail: {fail}, code: rate_limit, result: {{status_code: 429, headers: {{retry-after: '2'}}, data: {{n: 5}}}}}}
  set: {{ctx.code: '{{{{ output.http.status }}}}', ctx.n: '{{{{ output.data.data.n }}}}', ctx.after: '{{{{ output.error.retry_after }}}}'}}
  next: {{arcs: [{{step: end, when: \"{{{{ output.http.headers['retry-after'] == '2' }}}}\", set: {{ctx.status: '{{{{ error.http_status }}}}'}}}}]}}
- step: end
  when: '{{{{ start.http.status == 429 }}}}'
  tool: {{kind: noop, result: ['{{{{ code }}}}', '{{{{ n }}}}', '{{{{ after }}}}', '{{{{ status }}}}', '{{{{ start.error.http_status }}}}']}}
"
        ));
        let told = if fail { json!([429, 5, 2, 429, 429]) } else { json!([429, 5, null, null, null]) };
        assert_eq!(kernel.result(id, "end"), told, "{form:?} {fail} {:#?}", kernel.journal);
    }
}

#[test]
fn a_loop_tells_its_numbers_beside_its_list_too() {
    let (kernel, id) = run("
workflow:
- step: start
  loop: {in: [1, 2, 3], iterator: n}
  tool: {kind: noop, result: '{{ n }}'}
  next: {arcs: [{step: end, when: '{{ output.data.stats.total == 3 and output.data | length == 3 }}'}]}
- step: end
  tool: {kind: noop, result: ['{{ start.data.stats.failed }}', '{{ start.data[2] }}', '{{ start.data.count }}', '{{ start.data | sum }}']}
");
    assert_eq!(kernel.result(id, "end"), json!([0, 3, 3, 6]), "{:#?}", kernel.journal);
}

#[test]
fn the_variables_of_an_execution_can_be_listed() {
    let (kernel, id) = run("
workload: {a: 1, b: 1}
workflow:
- step: start
  tool: {kind: noop}
  set: {ctx.b: 2, ctx.c: 3}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ variables }}'}
");
    assert_eq!(kernel.result(id, "end"), json!({"a": 1, "b": 2, "c": 3}), "{:#?}", kernel.journal);
}
