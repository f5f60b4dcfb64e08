//! What an execution that still runs waits for.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::event::Event;
use crate::ids::CommandId;
use crate::view::segment::Placed;
use crate::view::time::rfc3339;

#[derive(Default)]
pub struct Waiting<'a> {
    /// When each was issued.
    commands: BTreeMap<&'a CommandId, u64>,
    /// The execution and path of each, and the tool of a pipeline that waits for it.
    children: BTreeMap<&'a CommandId, (&'a str, &'a str, Option<&'a str>)>,
    /// By step and run.
    parked: BTreeMap<(&'a str, u32), Parked<'a>>,
    cancelling: bool,
}

struct Parked<'a> {
    message: Option<&'a str>,
    since: u64,
    until: Option<u64>,
}

pub fn of<'a>(events: &'a [Placed<'a>]) -> Waiting<'a> {
    let mut waiting = Waiting::default();
    for event in events {
        waiting.event(event);
    }
    waiting
}

impl<'a> Waiting<'a> {
    fn event(&mut self, event: &'a Placed) {
        let at = event.recorded.at;
        match &event.recorded.event {
            Event::Issued { command, .. } => {
                self.commands.insert(command, at);
            }
            Event::Reported(reported) => {
                self.commands.remove(&reported.command);
                self.children.remove(&reported.command);
                self.parked.remove(&(reported.command.step.as_str(), reported.command.run));
            }
            Event::Lost { command } => {
                self.commands.remove(command);
                self.children.remove(command);
            }
            Event::ChildStarted { command, execution, path, label } => {
                self.children.insert(command, (execution, path, label.as_deref()));
            }
            Event::Parked { step, run, message, until } => {
                let parked = Parked { message: message.as_deref(), since: at, until: *until };
                self.parked.insert((step, *run), parked);
            }
            Event::Resumed { step, run, .. } => {
                self.parked.remove(&(step.as_str(), *run));
            }
            Event::CancelRequested { .. } => self.cancelling = true,
            _ => {}
        }
    }

    pub fn headline(&self) -> String {
        let mut parts = Vec::new();
        let count = |parts: &mut Vec<String>, number: usize, one: &str, many: &str| {
            if number > 0 {
                parts.push(format!("{number} {}", if number == 1 { one } else { many }));
            }
        };
        // A command whose child runs is waited for through the child.
        let own = self.commands.keys().filter(|command| !self.children.contains_key(*command)).count();
        count(&mut parts, own, "command", "commands");
        count(&mut parts, self.children.len(), "child execution", "child executions");
        count(&mut parts, self.parked.len(), "parked step", "parked steps");
        let state = if self.cancelling { "running, and to be cancelled" } else { "running" };
        match parts.is_empty() {
            true => format!("{state}: waits for nothing but the next decision"),
            false => format!("{state}: waits for {}", parts.join(", ")),
        }
    }

    pub fn into_json(self) -> Json {
        let commands: Vec<_> = self
            .commands
            .iter()
            .map(|(command, at)| json!({"command": command.to_string(), "step": command.step, "since": rfc3339(*at)}))
            .collect();
        let children: Vec<_> = self
            .children
            .iter()
            .map(|(command, (execution, path, label))| {
                json!({"command": command.to_string(), "step": command.step, "label": label, "execution_id": execution,
                       "path": path})
            })
            .collect();
        let parked: Vec<_> = self
            .parked
            .iter()
            .map(|((step, run), Parked { message, since, until })| {
                let until = until.map(rfc3339);
                json!({"step": step, "run": run, "message": message, "since": rfc3339(*since), "until": until})
            })
            .collect();
        let timers: Vec<_> = self
            .parked
            .iter()
            .filter_map(|((step, run), parked)| {
                parked.until.map(|until| json!({"at": rfc3339(until), "step": step, "run": run}))
            })
            .collect();
        json!({"commands": commands, "children": children, "parked": parked, "timers": timers})
    }
}
