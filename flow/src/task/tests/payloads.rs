//! Large values, coming in and going out.

use super::*;
use crate::extract::extract;

const SHA: &str = "aa";

fn large() -> Json {
    let rows: Vec<Json> = (0..500).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
    json!({"count": 500, "rows": rows, "note": "n".repeat(3000)})
}

fn kernel() -> Kernel {
    let payloads = BTreeMap::from([(SHA.to_owned(), large().to_string().into_bytes())]);
    Kernel { payloads, ..Kernel::default() }
}

/// What the orchestrator sends of a large result.
fn inputs() -> Json {
    json!({
        "context": {"fetch": extract(&large(), 4096, &[]).value, "other": {"x": 1}},
        "partial": [["fetch", {"payload": {"sha256": SHA, "size": 20000}}]],
        "results": [["fetch", false], ["other", false]],
    })
}

#[test]
fn a_payload_is_asked_for_only_when_its_extract_does_not_answer() {
    for (text, asked, expected) in [
        ("{{ fetch.count }}", false, json!(500)),
        ("{{ fetch.data.count }}", false, json!(500)),
        ("{{ fetch.rows[0].id }}", false, json!(0)),
        ("{{ fetch._ref }}", false, json!("noetl://payload/aa")),
        ("{{ fetch.nosuch }}", false, json!(null)),
        ("{{ other }}", false, json!({"x": 1})),
        ("{{ fetch.rows[1].id }}", true, json!(1)),
        ("{{ fetch.rows | length }}", true, json!(500)),
        ("{{ fetch.data.rows[499].name }}", true, json!("row 499")),
        ("{{ (fetch.note | length) + fetch.count }}", true, json!(3500)),
        ("{{ fetch | length }}", true, json!(3)),
        ("{{ ctx.fetch.rows | length }}", true, json!(500)),
        ("{{ ctx | length }}", true, json!(2)),
        ("{% for r in fetch.rows[1:3] %}{{ r.id }}{% endfor %}{{ fetch._ref is defined }}", true, json!("12true")),
    ] {
        for more in [json!({"config": {"v": text}}), json!({"input": {"v": text}, "config": {"v": "{{ v }}"}})] {
            let ran = kernel().run(&object(tool("t", more)), &inputs(), &mut answers([Ok(json!(1))]));
            assert_eq!(ran.arguments(0)["v"], expected, "{text}");
            let log: &[&str] = if asked { &["resolve aa", "t 1"] } else { &["t 1"] };
            assert_eq!(ran.log, log, "{text}");
        }
    }
}

#[test]
fn payloads_are_asked_for_when_an_outcome_is_settled_too() {
    let spec = list(vec![
        tool(
            "a",
            json!({"rules": [{"when": "{{ fetch.rows[2].id == output.data.id }}", "set": {"ctx.n": "{{ fetch.rows | length }}"}}]}),
        ),
        tool("b", json!({"config": {"n": "{{ n }}", "m": "{{ fetch.count }}"}})),
    ]);
    let ran = kernel().run(&spec, &inputs(), &mut answers([Ok(json!({"id": 2}))]));
    assert_eq!(ran.log, ["a 1", "resolve aa", "b 1"]);
    assert_eq!(ran.arguments(1), json!({"n": 500, "m": 500}));
    assert_eq!(ran.report.calls, 2);
}

#[test]
fn a_result_that_was_handed_on_is_whole_under_data() {
    let kid = json!({"user": {"id": 3, "data": {"x": 1}}, "order": {"total": 5}});
    for (handed_on, id) in [(json!(["kid"]), json!(3)), (json!([]), json!(null))] {
        let inputs = json!({"context": {"kid": kid}, "results": [["kid", true]], "handed_on": handed_on});
        let spec = object(tool("t", json!({"config": {"v": ["{{ kid.data.user.id }}", "{{ kid.total }}"]}})));
        let ran = Kernel::default().run(&spec, &inputs, &mut answers([Ok(json!(1))]));
        assert_eq!(ran.arguments(0)["v"], json!([id, 5]), "{handed_on}");
    }
}

#[test]
fn what_hides_an_extract_needs_no_payload() {
    let spec = list(vec![tool("fetch", json!({})), tool("b", json!({"config": {"v": "{{ fetch.rows }}"}}))]);
    let ran = kernel().run(&spec, &inputs(), &mut answers([Ok(json!({"rows": 1})), Ok(json!(1))]));
    assert_eq!((ran.log.len(), ran.arguments(1)), (2, json!({"v": 1})));
}

#[test]
fn a_payload_that_is_gone_or_broken_is_an_error() {
    let spec = object(tool("t", json!({"config": {"v": "{{ fetch.rows }}"}, "rules": [{"action": "continue"}]})));
    let ran = Kernel::default().run(&spec, &inputs(), &mut answers([Ok(json!(1))]));
    assert_eq!((ran.code(), ran.log.len()), (Some("reference_missing"), 1));
    let broken = Kernel { payloads: BTreeMap::from([(SHA.to_owned(), b"{".to_vec())]), ..Kernel::default() };
    assert_eq!(broken.run(&spec, &inputs(), &mut answers([Ok(json!(1))])).code(), Some("reference_invalid"));
    let task = format!("{spec}\n{}", inputs());
    let mut continuation = Vec::new();
    let mut news = News::Begin;
    for _ in 0..5 {
        let turn =
            Turn { execution: 1, command: "s#1", time_ms: 0, task: task.as_bytes(), continuation: &continuation, news };
        let next = Runner::new().advance(turn);
        continuation = next.continuation;
        // Somebody who never supplies what is asked for, and does not say that it is gone.
        news = News::Resolved(Vec::new());
        if let Action::Done(done) = next.action {
            let report: Report = serde_json::from_slice(&done.report).expect("a report");
            assert_eq!(report.error.map(|error| error.code).as_deref(), Some("reference_missing"));
            return;
        }
    }
    panic!("it asks for ever");
}

#[test]
fn results_of_a_loop_are_put_together_in_order() {
    let payloads = [
        ("c1", json!([[2, "two"], [0, "zero"]])),
        ("c2", json!([[10, "ten"], [1, "extract", {"sha256": "big", "size": 9}]])),
        ("big", json!(["one", "whole"])),
    ];
    let payloads = payloads.map(|(name, json)| (name.to_owned(), json.to_string().into_bytes()));
    let kernel = Kernel { payloads: BTreeMap::from(payloads), ..Kernel::default() };
    let chunks = json!({"chunks": [{"sha256": "c1", "size": 1}, {"sha256": "c2", "size": 1}]});
    let inputs = json!({
        "context": {"each": {"stats": {"total": 4}, "count": 4}},
        "partial": [["each", chunks]], "results": [["each", false]],
    });
    let all = json!(["zero", ["one", "whole"], "two", "ten"]);
    for (text, log, expected) in [
        ("{{ each.stats.total }}{{ each.count }}", vec!["t 1"], json!("44")),
        ("{{ each.results }}", vec!["resolve c1 c2", "resolve big c1 c2", "t 1"], all.clone()),
        ("{{ each.data }}", vec!["resolve c1 c2", "resolve big c1 c2", "t 1"], all.clone()),
        ("{{ each.results[1] }}", vec!["resolve c1 c2", "resolve big c1 c2", "t 1"], json!(["one", "whole"])),
    ] {
        let ran = kernel.run(&object(tool("t", json!({"config": {"v": text}}))), &inputs, &mut answers([Ok(json!(1))]));
        assert_eq!(
            (ran.arguments(0)["v"].clone(), ran.log),
            (expected, log.iter().map(|line| line.to_string()).collect()),
            "{text}"
        );
    }
}

#[test]
fn a_large_item_of_a_loop_reaches_its_tool_whole() {
    let item = extract(&large(), 4096, &[]).value;
    let reference = json!({"payload": {"sha256": SHA, "size": 20000}});
    let inputs = json!({
        "context": {"iter": {"row": item, "_index": 3}},
        "partial": [["row", reference], ["iter.row", reference]],
        "bind": {"row": item, "_index": 3},
    });
    let ran = kernel().run(
        &object(tool("t", json!({"config": {"v": "{{ iter.row.rows | length }}"}}))),
        &inputs,
        &mut answers([Ok(json!(1))]),
    );
    assert_eq!(ran.log, ["resolve aa", "t 1"]);
    assert_eq!(ran.arguments(0), json!({"v": 500, "input": {"row": large(), "_index": 3}}));
}

#[test]
fn a_large_result_goes_as_bulk_with_an_extract() {
    let ran = run(&object(tool("t", json!({}))), json!({}), &mut answers([Ok(large())]));
    assert_eq!(ran.bulk.as_deref().map(|bulk| serde_json::from_slice::<Json>(bulk).ok()), Some(Some(large())));
    assert_eq!(ran.data(), &extract(&large(), 4096, &[]).value);
    let ran = run(&object(tool("t", json!({}))), json!({}), &mut answers([Ok(json!("x".repeat(4094)))]));
    assert_eq!(ran.bulk, None, "4096 bytes are not too large");
}

#[test]
fn selected_fields_are_found_in_outputs_of_a_pipeline() {
    let mut spec = list(vec![tool("make", json!({})), tool("log", json!({}))]);
    spec["output_select"] = json!(["count", "log", "nosuch"]);
    let ran = run(&spec, json!({}), &mut answers([Ok(large()), Ok(json!("logged"))]));
    assert_eq!(ran.data(), &json!({"make": {"count": 500, "_omitted": 2}, "log": "logged", "_truncated": true}));
}

#[test]
fn a_large_answer_of_a_child_is_whole_inside_a_pipeline() {
    let data = json!({"value": extract(&large(), 4096, &[]).value, "reference": {"sha256": SHA, "size": 20000}});
    let spec = list(vec![
        tool("child", json!({"kind": "playbook", "config": {"path": "p", "return_step": "x"}})),
        tool(
            "b",
            json!({"config": {"v": "{{ child.rows | length }}", "s": "{{ child.status }}", "names": "{{ child | list }}"}}),
        ),
    ]);
    let kernel = Kernel { child: Some(("completed", json!({"steps": {"x": data}}))), ..kernel() };
    let ran = kernel.run(&spec, &json!({"context": {}}), &mut answers([Ok(json!(0))]));
    assert_eq!(ran.log, ["execute p", "resolve aa", "b 1"]);
    let names = json!(["execution_id", "status", "count", "rows", "note"]);
    assert_eq!(ran.arguments(0), json!({"v": 500, "s": "completed", "names": names}), "nothing is marked as missing");
}

#[test]
fn a_small_result_is_kept_too_when_the_playbook_means_to_refer_to_it() {
    for (value, kept) in [(json!({"n": 1}), true), (json!([1]), true), (json!(1), false), (json!(null), false)] {
        let mut spec = object(tool("t", json!({})));
        spec["keep"] = json!(true);
        let ran = run(&spec, json!({}), &mut answers([Ok(value.clone())]));
        assert_eq!(ran.data(), &value, "it is at hand all the same");
        assert_eq!(ran.bulk, kept.then(|| value.to_string().into_bytes()), "{value}");
    }
}
