//! Playbooks as they are written in practice.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Work, parse};
use super::{listed, parsed};

/// A document with most of the language in it, in the manner of its users.
pub(super) const WHOLE: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: orders
  path: shop/orders
  description: |
    Fetch orders, page by page, and store them.
  tags: [demo]
workload:
  api_url: https://shop.example
  page_size: 50
  run: '{{ job.uuid }}'
workbook:
  - name: classify
    desc: Large or small
    tool:
      kind: python
      input: {total: null}
      code: |
        result = {"large": total > 100}
    assert: {expects: [total], returns: [large]}
workflow:
  - step: start
    desc: Prepare
    tool: {kind: noop}
    set:
      ctx.page: 1
    next:
      spec: {mode: exclusive}
      arcs:
        - step: fetch
  - step: fetch
    tool:
      - name: call
        kind: http
        method: GET
        url: "{{ api_url }}/orders"
        params: {page: "{{ ctx.page }}", size: "{{ page_size | int }}"}
        timeout: 8
        spec:
          policy:
            rules:
              - when: "{{ output.status == 'error' and output.http.status in [429, 500] }}"
                then: {do: retry, attempts: 6, backoff: exponential, delay: 0.5}
              - when: "{{ output.status == 'error' }}"
                then: {do: fail}
              - else:
                  then: {do: continue, set: {ctx.has_more: "{{ output.data.data.more }}"}}
      - name: save
        kind: postgres
        auth: pg
        command: |
          INSERT INTO orders SELECT '{{ call.data | tojson | replace("'", "''") }}'::jsonb;
    next:
      spec: {mode: exclusive}
      arcs:
        - step: fetch
          when: "{{ ctx.has_more }}"
          set: {ctx.page: "{{ ctx.page + 1 }}"}
        - step: each
  - step: each
    loop:
      in: "{{ fetch.call.items }}"
      iterator: order
      spec: {mode: parallel, max_in_flight: "{{ page_size }}"}
    tool: {kind: workbook, name: classify, input: {total: "{{ iter.order.total }}"}}
    next:
      spec: {mode: inclusive}
      arcs:
        - step: report
          when: "{{ event.name == 'loop.done' }}"
        - step: drain
  - step: report
    tool: {kind: playbook, path: shop/report, return_step: end, input: {count: "{{ each.stats.total }}"}}
    next: end
  - step: drain
    loop:
      cursor: {kind: postgres, auth: pg, claim: "SELECT 1 LIMIT {{ __frame_max_rows }}"}
      iterator: row
      spec: {mode: cursor, frame: {max_rows: 10, row_concurrency: 2}}
    tool: {kind: noop}
    next: [end]
  - step: end
    tool: {kind: noop, result: done}
"#;

#[test]
fn a_whole_playbook_is_read_without_a_word() {
    let read = parsed(WHOLE);
    assert_eq!(listed(&read.warnings), "");
    assert_eq!(read.playbook.steps.len(), 6);
    let Work::Task(each) = &read.playbook.step("each").expect("there").work else { panic!("a task") };
    assert_eq!(each.tools[0].kind, "python");
}

/// The older project's own playbooks, where they are at hand.
pub(super) fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/noetl-e2e");
    let mut folders = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                found.push(path);
            }
        }
    }
    found.retain(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("\nkind: Playbook")));
    found.sort();
    found
}

#[test]
fn playbooks_in_use_are_read_without_errors() {
    for path in fixtures() {
        let text = fs::read_to_string(&path).expect("it was read before");
        if let Err(problems) = parse(&text, true) {
            panic!("{}\n{}", path.display(), listed(&problems));
        }
    }
}
