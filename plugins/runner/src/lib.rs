//! The service `system/runner`: glue between the world `runner` and `noetl_flow::task`.
//!
//! The instance keeps compiled tasks and nothing else. A command's own memory is its continuation, which the kernel
//! holds.

use std::cell::RefCell;

use noetl_flow::task::Runner;
use noetl_flow::task::turn;
use noetl_sdk::engine::runner::running;

thread_local! {
    static RUNNER: RefCell<Runner> = RefCell::new(Runner::new());
}

struct Service;

noetl_sdk::runner!(Service);

impl running::Guest for Service {
    fn advance(turns: Vec<running::Turn>) -> Vec<running::Next> {
        RUNNER.with(|runner| {
            let mut runner = runner.borrow_mut();
            turns.into_iter().map(|turn| advance(&mut runner, turn)).collect()
        })
    }
}

fn advance(runner: &mut Runner, turn: running::Turn) -> running::Next {
    let next = runner.advance(turn::Turn {
        execution: turn.execution,
        command: &turn.command,
        time_ms: turn.time_ms,
        task: &turn.task,
        continuation: &turn.continuation,
        news: news(turn.news),
    });
    running::Next { action: action(next.action), continuation: next.continuation }
}

fn news(news: running::News) -> turn::News {
    match news {
        running::News::Begin => turn::News::Begin,
        running::News::Called(called) => turn::News::Called(turn::Called {
            outcome: called.outcome.map(answered).map_err(failed),
            duration_ms: called.duration_ms,
            plugin: called.plugin,
            digest: called.digest,
        }),
        running::News::Resolved(payloads) => turn::News::Resolved(payloads),
        running::News::Executed(running::Executed { execution, status, body }) => {
            turn::News::Executed(turn::Executed { execution, status, body })
        }
        running::News::Slept => turn::News::Slept,
    }
}

fn answered(running::Answered { output, body }: running::Answered) -> turn::Answered {
    turn::Answered { output, body }
}

fn failed(running::Failed { code, message, retryable, unknown }: running::Failed) -> turn::Failed {
    turn::Failed { code, message, retryable, unknown }
}

fn action(action: turn::Action) -> running::Action {
    match action {
        turn::Action::Call(call) => running::Action::Call(self::call(call)),
        turn::Action::Resolve(digests) => running::Action::Resolve(digests),
        turn::Action::Execute(execute) => running::Action::Execute(self::execute(execute)),
        turn::Action::Sleep(ms) => running::Action::Sleep(ms),
        turn::Action::Done(turn::Done { report, bulk }) => running::Action::Done(running::Done { report, bulk }),
    }
}

fn execute(execute: turn::Execute) -> running::Execute {
    let turn::Execute { path, version, payload, wait, returns, timeout_ms, label, visit } = execute;
    running::Execute { path, version, payload, wait, returns, timeout_ms, label, visit }
}

fn call(call: turn::Call) -> running::Call {
    running::Call {
        kind: call.kind,
        plugin: call.plugin,
        version: call.version,
        arguments: call.arguments,
        body: call.body,
        capabilities: call.capabilities,
        timeout_ms: call.timeout_ms,
        label: call.label,
        visit: call.visit,
        attempt: call.attempt,
    }
}

#[cfg(test)]
mod tests {
    use running::{Action, Answered, Called, Guest, News, Turn};

    use super::*;

    fn turn(continuation: Vec<u8>, news: News) -> Turn {
        let task = br#"{"step":"a","tools":[{"label":"a","kind":"noop","config":{"x":"{{ n }}"}}],"pipeline":false}
{"context":{"n":2}}"#;
        Turn { execution: 7, command: "a#1".to_owned(), time_ms: 1, task: task.to_vec(), continuation, news }
    }

    #[test]
    fn a_command_calls_its_tool_and_is_done() {
        let mut answers = Service::advance(vec![turn(Vec::new(), News::Begin), turn(Vec::new(), News::Begin)]);
        assert_eq!(answers.len(), 2);
        let first = answers.remove(0);
        let Action::Call(call) = first.action else { panic!("not a call") };
        assert_eq!((call.kind.as_str(), call.arguments.as_str()), ("noop", r#"{"x":2}"#));
        let answered = Answered { output: r#"{"x":2}"#.to_owned(), body: None };
        let called = Called { outcome: Ok(answered), duration_ms: 5, plugin: "p".to_owned(), digest: "d".to_owned() };
        let mut answers = Service::advance(vec![turn(first.continuation, News::Called(called))]);
        let Action::Done(done) = answers.remove(0).action else { panic!("not done") };
        let report: noetl_flow::task::Report = serde_json::from_slice(&done.report).expect("a report");
        assert_eq!((report.error, report.plugin.as_deref(), report.took), (None, Some("p"), 5));
    }
}
