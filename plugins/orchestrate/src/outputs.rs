//! What was decided, in the words of the contract. Everything is moved, nothing copied.

use noetl_flow::decide;
use noetl_flow::state::State;
use noetl_sdk::engine::orchestrator::orchestration as wit;

pub fn decision(decision: decide::Decision) -> wit::Decision {
    let outcome = match decision.outcome {
        decide::Outcome::Decided(decided) => wit::Outcome::Decided(self::decided(*decided)),
        decide::Outcome::Needs(decide::Need::State) => wit::Outcome::Needs(wit::Need::State),
        decide::Outcome::Needs(decide::Need::Playbook(digest)) => wit::Outcome::Needs(wit::Need::Playbook(digest)),
        decide::Outcome::Needs(decide::Need::Value(digest)) => wit::Outcome::Needs(wit::Need::Value(digest)),
        decide::Outcome::Ignored(reason) => wit::Outcome::Ignored(reason),
        decide::Outcome::Refused(reason) => wit::Outcome::Refused(reason),
    };
    wit::Decision { execution: decision.execution, outcome }
}

pub fn owed(owed: decide::Owed, state: &State) -> wit::Owed {
    let parent = state.started.parent.as_ref().and_then(|parent| {
        // A parent's id was written from a number.
        let execution = parent.execution.parse().ok()?;
        Some(wit::Parent { execution, command: parent.command.to_string() })
    });
    wit::Owed {
        commands: owed.commands.into_iter().map(command).collect(),
        children: owed.children.into_iter().map(child).collect(),
        waiting: owed.waiting,
        wake_at: owed.wake_at,
        ended: owed.ended,
        path: state.started.path.clone(),
        parent,
        last_event: state.last,
    }
}

pub fn load_error(error: decide::LoadError) -> wit::LoadError {
    match error {
        decide::LoadError::Playbook(digest) => wit::LoadError::Playbook(digest),
        decide::LoadError::Broken(problem) => wit::LoadError::Broken(problem),
    }
}

fn decided(decided: decide::Decided) -> wit::Decided {
    let ended = |decide::Ended { status, body }| wit::Ended { status, body };
    wit::Decided {
        events: decided.events,
        keep: decided.keep,
        commands: decided.commands.into_iter().map(command).collect(),
        children: decided.children.into_iter().map(child).collect(),
        withdrawn: decided.withdrawn,
        orphaned: decided.orphaned,
        wake_at: decided.wake_at,
        ended: decided.ended.map(ended),
    }
}

fn command(command: decide::Command) -> wit::Command {
    let decide::Command { id, pool, tools, task, timeout_ms, retry_safe } = command;
    wit::Command { id, pool, tools, task, timeout_ms, retry_safe }
}

fn child(child: decide::Child) -> wit::Child {
    let decide::Child { command, path, version, payload, returns } = child;
    wit::Child { command, path, version, payload, returns }
}
