//! A runner, and a kernel that does what it asks for.

mod calls;
mod context;
mod payloads;
mod pipeline;
mod policy;
mod robust;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::turn::{Action, Answered, Call, Called, Execute, Executed, Failed, News, Turn};
use super::{Report, Runner};

/// How a tool answers a call: its own code for a failure, `!` in front of one that may be retried, `?` of one that
/// nobody knows the outcome of.
type Tool<'t> = dyn FnMut(&Call) -> Result<Json, &'static str> + 't;

/// What happened while a command ran, and its end.
#[derive(Debug)]
struct Ran {
    /// `label` and attempt of each call, `sleep 100`, `resolve`, `execute path`.
    log: Vec<String>,
    calls: Vec<Call>,
    executes: Vec<Execute>,
    report: Report,
    bulk: Option<Vec<u8>>,
}

impl Ran {
    fn data(&self) -> &Json {
        &self.report.data.value
    }

    fn code(&self) -> Option<&str> {
        self.report.error.as_ref().map(|error| error.code.as_str())
    }

    fn arguments(&self, call: usize) -> Json {
        let made = self.calls.get(call).unwrap_or_else(|| panic!("there was no such call: {:?}", self.report));
        serde_json::from_str(&made.arguments).expect("arguments are JSON")
    }
}

#[derive(Default)]
struct Kernel {
    payloads: BTreeMap<String, Vec<u8>>,
    /// How a child ends: status and answer.
    child: Option<(&'static str, Json)>,
}

impl Kernel {
    fn run(&self, spec: &Json, inputs: &Json, tool: &mut Tool<'_>) -> Ran {
        let task = format!("{spec}\n{inputs}");
        let (mut log, mut calls, mut executes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut news, mut continuation) = (News::Begin, Vec::new());
        let mut runner = Runner::new();
        loop {
            // There is nothing in a runner that the next turn needs, so any will do; for long runs one is faster.
            if log.len() < 100 {
                runner = Runner::new();
            }
            let next = runner.advance(Turn {
                execution: 7,
                command: "step#1",
                time_ms: 1_700_000_000_000,
                task: task.as_bytes(),
                continuation: &continuation,
                news,
            });
            continuation = next.continuation;
            news = match next.action {
                Action::Call(call) => {
                    log.push(format!("{} {}", call.label, call.attempt));
                    let outcome = answer(tool(&call));
                    calls.push(call);
                    News::Called(Called { outcome, duration_ms: 5, plugin: "tools/x@1".into(), digest: "d".into() })
                }
                Action::Resolve(wanted) => {
                    log.push(format!("resolve {}", wanted.join(" ")));
                    News::Resolved(
                        wanted.into_iter().map(|name| (name.clone(), self.payloads.get(&name).cloned())).collect(),
                    )
                }
                Action::Execute(execute) => {
                    log.push(format!("execute {}", execute.path));
                    let (status, body) = self.child.clone().unwrap_or(("started", json!({})));
                    executes.push(execute);
                    News::Executed(Executed { execution: 99, status: status.to_owned(), body: body.to_string() })
                }
                Action::Sleep(milliseconds) => {
                    log.push(format!("sleep {milliseconds}"));
                    News::Slept
                }
                Action::Done(done) => {
                    let report = serde_json::from_slice(&done.report).expect("a report is JSON");
                    return Ran { log, calls, executes, report, bulk: done.bulk };
                }
            };
        }
    }
}

fn answer(outcome: Result<Json, &'static str>) -> Result<Answered, Failed> {
    match outcome {
        Ok(output) => Ok(Answered { output: output.to_string(), body: None }),
        Err(code) => Err(Failed {
            code: code.trim_start_matches(['!', '?']).to_owned(),
            message: format!("it is {code}"),
            retryable: code.starts_with('!'),
            unknown: code.starts_with('?'),
        }),
    }
}

/// A tool as the orchestrator writes it down.
fn tool(label: &str, more: Json) -> Json {
    let mut tool = json!({"label": label, "kind": "test", "config": {}});
    for (key, value) in more.as_object().expect("an object") {
        tool[key] = value.clone();
    }
    tool
}

fn object(tool: Json) -> Json {
    json!({"step": "s", "tools": [tool], "pipeline": false})
}

fn list(tools: Vec<Json>) -> Json {
    json!({"step": "s", "tools": tools, "pipeline": true})
}

fn run(spec: &Json, context: Json, tool: &mut Tool<'_>) -> Ran {
    Kernel::default().run(spec, &json!({"context": context}), tool)
}

/// A tool that gives its answers one after the other, the last one for ever.
fn answers<const N: usize>(
    answers: [Result<Json, &'static str>; N],
) -> impl FnMut(&Call) -> Result<Json, &'static str> {
    let mut next = 0;
    move |_| {
        let answer = answers[next.min(N - 1)].clone();
        next += 1;
        answer
    }
}
