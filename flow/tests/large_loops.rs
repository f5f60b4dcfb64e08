//! A loop of very many iterations: the state stays small, and so does every decision.

mod common;

use common::{Kernel, Todo};
use noetl_flow::decide::Happening;
use noetl_flow::state::checkpoint;

/// Fewer in a build that is not optimised.
const ITERATIONS: u32 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

fn run(playbook: &str, largest: usize) -> (Kernel, u64) {
    let text = format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t, path: t}}\n{playbook}");
    let mut kernel = Kernel::with(&text);
    let id = kernel.start(&format!("{{\"iterations\": {ITERATIONS}}}"));
    let mut rounds = 0_u32;
    while let Some(todo) = kernel.todo.pop() {
        let Todo::Run(execution, command) = todo else { panic!("there are commands only") };
        let report = kernel.work(execution, &command);
        kernel.feed(execution, Happening::Report(report));
        kernel.journal.clear();
        rounds += 1;
        if rounds.is_multiple_of(997) {
            let size = checkpoint(kernel.orchestrator.state(id).expect("in memory")).len();
            assert!(size < largest, "{size} bytes of state after {rounds} reports");
        }
    }
    (kernel, id)
}

#[test]
fn the_state_of_a_loop_is_bounded() {
    let (kernel, id) = run(
        "
workflow:
- step: start
  loop: {in: '{{ iterations }}', iterator: n, spec: {mode: parallel, max_in_flight: 50}}
  tool: {kind: noop, result: {index: '{{ n }}', text: some text that makes the result longer}}
  next: {arcs: [{step: end, when: '{{ start.stats.failed == 0 }}'}]}
- step: end
  tool: {kind: noop, result: ['{{ start.results | length }}', '{{ start.results[19999].index }}', '{{ start.count }}']}
",
        128 * 1024,
    );
    assert_eq!(kernel.status(id), "completed");
    assert_eq!(kernel.result(id, "end"), serde_json::json!([ITERATIONS, 19_999, ITERATIONS]));
    let longest = kernel.chains[&id].iter().map(Vec::len).max().expect("there are commits");
    assert!(longest < 64 * 1024, "a commit of {longest} bytes");
}
