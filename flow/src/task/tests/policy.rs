//! Rules, on both forms of a step's tool.

use super::*;

fn retry(attempts: u32, backoff: &str) -> Json {
    json!({"retry": {"attempts": attempts, "backoff": backoff, "delay_ms": 100, "max_delay_ms": 1000, "jitter": 0.0}})
}

fn with_rules(rules: Json) -> Json {
    object(tool("t", json!({"rules": rules})))
}

#[test]
fn the_envelope_tells_what_happened() {
    for (kind, answer, guard, expected) in [
        ("test", Ok(json!({"x": 1})), "output.status == 'success' and output.data.x == 1 and not output.error", true),
        ("test", Ok(json!({"x": 1})), "output.error.retryable", false),
        ("test", Ok(json!({"x": 1})), "output.http is defined", false),
        (
            "http",
            Ok(json!({"status_code": 429, "headers": {"retry-after": " 7 "}})),
            "output.error.retry_after == 7 and output.error.retryable",
            true,
        ),
        (
            "http",
            Ok(json!({"status_code": 503, "headers": {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}})),
            "output.error.retry_after is none",
            true,
        ),
        ("http", Ok(json!({"status_code": 503, "repeatable": true})), "output.error.retryable", true),
        ("http", Ok(json!({"status_code": 503, "repeatable": false})), "output.error.retryable", false),
        ("http", Ok(json!({"status_code": 429, "repeatable": false})), "output.error.retryable", true),
        (
            "http",
            Ok(json!({"status_code": 503, "headers": {
                "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:27:50 GMT",
            }})),
            "output.error.retry_after == 10",
            true,
        ),
        ("test", Ok(json!(1)), "output.meta.attempt == 1 and _attempt == 1 and output.meta.duration_ms == 5", true),
        ("test", Err("!timeout"), "output.status == 'error' and output.error.kind == 'timeout'", true),
        ("test", Err("!timeout"), "output.error.code == 'timeout' and output.error.message == 'it is !timeout'", true),
        ("test", Err("!timeout"), "output.error.retryable", true),
        ("test", Err("boom"), "output.error.retryable", false),
        ("test", Err("boom"), "output.data.error.message == 'it is boom'", true),
        ("test", Err("?boom"), "output.error.kind == 'outcome_unknown' and not output.error.retryable", true),
        (
            "http",
            Ok(json!({"status_code": 404, "data": {"why": "no"}, "headers": {"h": "v"}})),
            "output.http.status == 404 and output.error.kind == 'not_found' and output.data.data.why == 'no'",
            true,
        ),
        (
            "http",
            Ok(json!({"status_code": 503, "headers": {"h": "v"}})),
            "output.error.retryable and output.error.status == 503 and output.http.headers.h == 'v'",
            true,
        ),
        (
            "http",
            Ok(json!({"status_code": 200})),
            "output.http.status in [200, 201] and output.status != 'error'",
            true,
        ),
        (
            "postgres",
            Err("twice [SQLSTATE 23505]"),
            "output.pg.sqlstate == '23505' and output.pg.code == '23505' and output.data.pg.code == '23505'",
            true,
        ),
        ("sqlite", Err("twice [SQLSTATE 23505]"), "output.pg.sqlstate == '23505'", true),
        ("transfer", Err("twice [SQLSTATE 23505]"), "output.pg.sqlstate == '23505'", true),
        ("postgres", Err("gone"), "output.pg is defined", false),
        ("test", Err("twice [SQLSTATE 23505]"), "output.pg is defined", false),
        ("postgres", Ok(json!({"rows": [], "pg": 1})), "output.pg is defined", false),
        ("test", Ok(json!(1)), "output.nosuch.deep", false),
        ("test", Ok(json!(1)), "limit == 3 and workload.limit == 3", true),
        ("test", Ok(json!(1)), "limit + 'x'", false),
    ] {
        let rules = json!([{"when": guard, "set": {"ctx.hit": true}, "action": "continue"}, {"action": "continue"}]);
        let spec = object(tool("t", json!({"kind": kind, "rules": rules})));
        let ran = run(&spec, json!({"limit": 3, "workload": {"limit": 3}}), &mut answers([answer]));
        assert_eq!(ran.report.set.contains_key("hit"), expected, "{guard}");
        assert_eq!(ran.code(), None, "{guard}");
    }
}

#[test]
fn the_first_rule_that_holds_decides() {
    for (rules, answer, code) in [
        (json!([]), Ok(json!(1)), None),
        (json!([]), Err("boom"), Some("boom")),
        (json!([{"when": false, "action": "fail"}]), Ok(json!(1)), None),
        (json!([{"when": true, "action": "fail"}]), Ok(json!(1)), Some("failed_by_rule")),
        (json!([{"when": "{{ output.status == 'error' }}", "action": "continue"}]), Err("boom"), None),
        (json!([{"when": "{{ output.status == 'error' }}", "action": "fail"}]), Err("boom"), Some("boom")),
        (json!([{"when": "{{ broken + 1 }}", "action": "continue"}]), Err("boom"), Some("boom")),
        (json!([{"action": "continue"}, {"when": true, "action": "fail"}]), Err("boom"), None),
        (json!([{"action": "break"}]), Err("boom"), None),
        (json!([{"set": {"ctx.a": 1}}]), Err("boom"), Some("boom")),
        (json!([{"set": {"ctx.a": 1}}]), Ok(json!(1)), None),
        (json!([{"action": {"jump": {"to": "nosuch"}}}]), Ok(json!(1)), Some("unknown_task")),
        (json!([{"action": {"jump": {"to": "previous"}}}]), Ok(json!(1)), Some("unknown_task")),
        (
            json!([{"when": true, "set": {"ctx.a": "{{ broken + 1 }}"}, "action": "continue"}]),
            Ok(json!(1)),
            Some("template"),
        ),
    ] {
        let spec = with_rules(rules.clone());
        let ran = run(&spec, json!({}), &mut answers([answer]));
        assert_eq!(ran.code(), code, "{rules}");
    }
}

#[test]
fn a_failure_that_is_continued_shows_in_the_result() {
    let ran = run(&with_rules(json!([{"action": "continue"}])), json!({}), &mut answers([Err("!slow")]));
    let error = json!({"kind": "slow", "code": "slow", "message": "it is !slow", "retryable": true});
    assert_eq!((ran.data(), ran.code()), (&json!({"status": "error", "error": error}), None));
    let spec = list(vec![
        tool("a", json!({"rules": [{"action": "continue"}], "set": {"x": 1}})),
        tool("b", json!({"config": {"v": "{{ a.error.code }}", "x": "{{ x is defined }}"}})),
    ]);
    let ran = run(&spec, json!({}), &mut answers([Err("slow"), Ok(json!(2))]));
    assert_eq!(ran.arguments(1), json!({"v": "slow", "x": false}), "there was no output to set anything from");
    assert_eq!((ran.data()["b"].clone(), ran.code()), (json!(2), None));
}

#[test]
fn retries_wait_as_their_backoff_says() {
    for (backoff, sleeps) in [
        ("none", vec![]),
        ("fixed", vec![100, 100, 100, 100, 100, 100]),
        ("linear", vec![100, 200, 300, 400, 500, 600]),
        ("exponential", vec![100, 200, 400, 800, 1000, 1000]),
    ] {
        let ran = run(
            &with_rules(json!([{"when": "output.status == 'error'", "action": retry(7, backoff)}])),
            json!({}),
            &mut answers([Err("boom")]),
        );
        let slept: Vec<u64> = ran.log.iter().filter_map(|line| line.strip_prefix("sleep ")?.parse().ok()).collect();
        assert_eq!(slept, sleeps, "{backoff}");
        let calls: Vec<u32> = ran.calls.iter().map(|call| call.attempt).collect();
        assert_eq!((calls, ran.code(), ran.report.calls), (vec![1, 2, 3, 4, 5, 6, 7], Some("boom"), 7), "{backoff}");
    }
}

#[test]
fn a_server_that_asks_to_be_left_alone_is() {
    let busy = |seconds: &str| json!({"status_code": 429, "headers": {"retry-after": seconds}});
    for (backoff, asked, slept) in [
        ("none", "0.4", "sleep 400"),
        ("fixed", "0.4", "sleep 400"),
        ("fixed", "0.05", "sleep 100"),
        ("fixed", "86400", "sleep 1000"),
        ("fixed", "soon", "sleep 100"),
    ] {
        let rules = json!([{"when": "{{ output.status == 'error' }}", "action": retry(2, backoff)}]);
        let spec = object(tool("t", json!({"kind": "http", "rules": rules})));
        let ran = run(&spec, json!({}), &mut answers([Ok(busy(asked)), Ok(json!({"status_code": 200}))]));
        assert_eq!(ran.log, ["t 1", slept, "t 2"], "{backoff}, asked for {asked}");
    }
    let rules = json!([{"when": "{{ output.data.pending }}", "action": retry(2, "fixed")}]);
    let waits = json!({"status_code": 200, "headers": {"retry-after": "0.9"}, "pending": true});
    let spec = object(tool("t", json!({"kind": "http", "rules": rules})));
    let ran = run(&spec, json!({}), &mut answers([Ok(waits), Ok(json!({"status_code": 200}))]));
    assert_eq!(ran.log, ["t 1", "sleep 100", "t 2"], "an answer that is no failure is not busy");
}

#[test]
fn a_delay_can_be_a_template() {
    let rules = |delay: &str| {
        let action = json!({"retry": {"attempts": 2, "backoff": "fixed", "delay_ms": 100, "delay": delay,
            "max_delay_ms": 60_000, "jitter": 0.0}});
        with_rules(json!([{"when": "{{ output.status == 'error' }}", "action": action}]))
    };
    for (delay, slept) in [
        ("{{ wait }}", "sleep 3000"),
        ("{{ wait * _attempt * 2 }}", "sleep 6000"),
        ("{{ wait }}00ms", "sleep 300"),
        ("{{ output.error.retry_after }}", "sleep 100"),
        ("{{ '' }}", "sleep 100"),
        ("{{ wait * 1000 }}", "sleep 60000"),
    ] {
        let ran = run(&rules(delay), json!({"wait": 3}), &mut answers([Err("boom"), Ok(json!(1))]));
        assert_eq!(ran.log, ["t 1", slept, "t 2"], "{delay}");
    }
    for wrong in ["{{ 'soon' }}", "{{ [1] }}", "{{ -1 }}", "{{ wait + 'x' }}"] {
        let ran = run(&rules(wrong), json!({"wait": 3}), &mut answers([Err("boom")]));
        assert_eq!((ran.log.len(), ran.code()), (1, Some("template")), "{wrong}");
    }
}

#[test]
fn a_retry_that_succeeds_goes_on() {
    let rules = json!([
        {"when": "{{ output.status == 'error' }}", "set": {"ctx.tries": "{{ _attempt }}"}, "action": retry(3, "fixed")},
        {"when": "{{ output.data.pending }}", "action": retry(5, "none")},
    ]);
    let mut tool = answers([Err("boom"), Err("boom"), Ok(json!({"pending": true})), Ok(json!({"pending": false}))]);
    let ran = run(&with_rules(rules.clone()), json!({}), &mut tool);
    assert_eq!(ran.log, ["t 1", "sleep 100", "t 2", "sleep 100", "t 3", "t 4"]);
    assert_eq!((ran.data(), &ran.report.set["tries"]), (&json!({"pending": false}), &json!(2)));
    let ran = run(&with_rules(rules), json!({}), &mut answers([Ok(json!({"pending": true}))]));
    assert_eq!((ran.calls.len(), ran.code()), (5, Some("retries_exhausted")));
    let once = json!([{"action": retry(0, "none")}]);
    assert_eq!(run(&with_rules(once), json!({}), &mut answers([Err("boom")])).calls.len(), 1, "one try is the least");
}

#[test]
fn jitter_takes_a_part_of_the_delay_and_always_the_same() {
    let rules = json!([{"action": {"retry": {
        "attempts": 20, "backoff": "fixed", "delay_ms": 10_000, "max_delay_ms": 100_000, "jitter": 0.5,
    }}}]);
    let slept = || -> Vec<u64> {
        let ran = run(&with_rules(rules.clone()), json!({}), &mut answers([Err("boom")]));
        ran.log.iter().filter_map(|line| line.strip_prefix("sleep ")?.parse().ok()).collect()
    };
    let (first, again) = (slept(), slept());
    assert_eq!(first, again);
    assert!(first.iter().all(|delay| (5_000..=10_000).contains(delay)), "{first:?}");
    assert!(first.iter().collect::<std::collections::BTreeSet<_>>().len() > 10, "{first:?}");
}

#[test]
fn a_template_that_fails_is_not_tried_again() {
    let spec = object(tool("t", json!({"config": {"a": "{{ x + y }}"}, "rules": [{"action": retry(9, "fixed")}]})));
    let ran = run(&spec, json!({}), &mut answers([Ok(json!(1))]));
    assert_eq!((ran.log.len(), ran.code()), (0, Some("template")));
}

#[test]
fn jumps_and_breaks_make_a_loop_within_a_step() {
    let spec = list(vec![
        tool(
            "claim",
            json!({"set": {"iter.n": "{{ output.n }}"}, "rules": [{"when": "{{ output.data.n > 3 }}", "action": "break"}]}),
        ),
        tool(
            "work",
            json!({"config": {"n": "{{ iter.n }}"}, "rules": [
                {"when": "{{ output.status == 'error' }}", "action": retry(2, "none")},
                {"action": {"jump": {"to": "claim"}}, "set": {"ctx.sum": "{{ (sum | default(0)) + iter.n }}", "iter.x": 1}},
            ]}),
        ),
        tool("never", json!({})),
    ]);
    let mut claims = 0;
    let ran = run(&spec, json!({"iter": {}}), &mut |call| {
        if call.label == "claim" {
            claims += 1;
            return Ok(json!({"n": claims}));
        }
        if matches!(call.attempt, 1 | 4) { Err("boom") } else { Ok(json!({"done": claims})) }
    });
    assert_eq!(ran.code(), Some("boom"), "a jump does not give the tool new tries");
    assert_eq!(ran.log, ["claim 1", "work 1", "work 2", "claim 2", "work 3", "claim 3", "work 4"]);

    claims = 0;
    let ran = run(&spec, json!({"iter": {}}), &mut |call| {
        claims += u32::from(call.label == "claim");
        Ok(json!({"n": claims}))
    });
    assert_eq!(ran.code(), None);
    assert_eq!(ran.data(), &json!({"claim": {"n": 4}, "work": {"n": 3}}));
    assert_eq!(Json::Object(ran.report.set), json!({"sum": 6}), "`iter` stays within the run");
}

#[test]
fn a_jump_can_go_to_the_tool_before() {
    for word in ["previous", "prev", "_previous", "@previous", "a"] {
        let spec = list(vec![
            tool("a", json!({})),
            tool("b", json!({"rules": [{"when": "{{ output.data == 1 }}", "action": {"jump": {"to": word}}}]})),
        ]);
        let ran = run(&spec, json!({}), &mut answers([Ok(json!(0)), Ok(json!(1)), Ok(json!(0))]));
        assert_eq!(ran.log, ["a 1", "b 1", "a 2", "b 2"], "{word}");
    }
}

#[test]
fn a_tool_that_was_passed_has_all_its_tries_again() {
    let spec = list(vec![
        tool("a", json!({"rules": [{"when": "{{ output.status == 'error' }}", "action": retry(2, "none")}]})),
        tool("b", json!({"rules": [{"when": "{{ output.data < 4 }}", "action": {"jump": {"to": "a"}}}]})),
    ]);
    let (mut fails, mut n) = (false, 0);
    let ran = run(&spec, json!({}), &mut |call| {
        fails = call.label == "a" && !fails;
        n += u32::from(call.label == "b");
        if fails { Err("boom") } else { Ok(json!(n)) }
    });
    assert_eq!((ran.code(), ran.calls.len()), (None, 12));
}

#[test]
fn loops_without_end_are_ended() {
    let forever = list(vec![tool("a", json!({"rules": [{"action": retry(u32::MAX, "none")}]}))]);
    let ran = run(&forever, json!({}), &mut answers([Ok(json!(1))]));
    assert_eq!((ran.calls.len(), ran.code()), (crate::task::CALLS as usize, Some("too_many_calls")));
    let failing =
        list(vec![tool("a", json!({"config": {"a": "{{ x + y }}"}, "rules": [{"action": {"jump": {"to": "a"}}}]}))]);
    let ran = run(&failing, json!({}), &mut answers([Ok(json!(1))]));
    assert_eq!((ran.calls.len(), ran.code()), (0, Some("too_many_calls")));
}

#[test]
fn what_rules_set_is_reported_by_name() {
    let set = json!({"ctx.a": 1, "ctx.b.c": "{{ output.data.x }}", "bare": 2, "step.s": 3, "iter.i": 4});
    let spec = list(vec![
        tool("t", json!({"rules": [{"set": set}]})),
        tool("u", json!({"config": {"v": "{{ a }}{{ b.c }}{{ b.d }}{{ bare }}{{ s }}{{ iter.i }}{{ iter.j }}"}})),
    ]);
    let ran = run(&spec, json!({"b": {"d": 8}, "iter": {"j": 9}}), &mut answers([Ok(json!({"x": 7}))]));
    assert_eq!(ran.arguments(1), json!({"v": "1782349"}));
    assert_eq!(Json::Object(ran.report.set), json!({"a": 1, "b.c": 7, "bare": 2, "s": 3}));
}

/// The pieces of work that were asked for, as label and visit.
fn work(ran: &Ran) -> Vec<(&str, u32)> {
    ran.calls.iter().map(|call| (call.label.as_str(), call.visit)).collect()
}

#[test]
fn coming_back_to_a_tool_is_other_work_and_trying_what_failed_again_is_not() {
    let retry = json!({"when": "{{ output.status == 'error' }}", "action": {"retry": {"attempts": 3, "backoff": "fixed",
        "delay_ms": 10, "max_delay_ms": 10, "jitter": 0.0}}});
    let back = json!({"when": "{{ output.data.n < 2 }}", "action": {"jump": {"to": "a"}}});
    let spec = list(vec![tool("a", json!({"rules": [retry]})), tool("b", json!({"rules": [back]}))]);
    let outcomes = || answers([Err("!busy"), Ok(json!({})), Ok(json!({"n": 1})), Ok(json!({})), Ok(json!({"n": 2}))]);
    let ran = run(&spec, json!({}), &mut outcomes());
    assert_eq!(work(&ran), [("a", 1), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]);
    let attempts: Vec<u32> = ran.calls.iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 1, 3, 2]);
    // A command that is lost begins anew, and its work has the same names.
    assert_eq!(work(&run(&spec, json!({}), &mut outcomes())), work(&ran));
}

#[test]
fn doing_again_what_succeeded_is_other_work() {
    let poll = json!({"when": "{{ not output.data.ready }}", "action": {"retry": {"attempts": 5, "backoff": "none",
        "delay_ms": 0, "max_delay_ms": 0, "jitter": 0.0}}});
    let spec = object(tool("poll", json!({"rules": [poll]})));
    let not_yet = || Ok(json!({"ready": false}));
    let ran = run(&spec, json!({}), &mut answers([not_yet(), Err("!busy"), not_yet(), Ok(json!({"ready": true}))]));
    assert_eq!(work(&ran), [("poll", 1), ("poll", 2), ("poll", 2), ("poll", 3)]);
}

#[test]
fn a_playbook_that_failed_is_started_anew_when_it_is_tried_again() {
    let retry = json!({"when": "{{ output.status == 'error' }}", "action": {"retry": {"attempts": 2, "backoff": "none",
        "delay_ms": 0, "max_delay_ms": 0, "jitter": 0.0}}});
    let spec = object(tool(
        "sub",
        json!({"kind": "playbook", "config": {"path": "a/b", "return_step": "score"},
        "rules": [retry]}),
    ));
    let kernel = Kernel { child: Some(("failed", json!({}))), ..Kernel::default() };
    let ran = kernel.run(&spec, &json!({"context": {}}), &mut answers([Ok(json!(1))]));
    let asked: Vec<_> = ran.executes.iter().map(|execute| (execute.visit, execute.returns.as_deref())).collect();
    assert_eq!(asked, [(1, Some("score")), (2, Some("score"))]);
    assert_eq!(ran.code(), Some("child_failed"));
}
