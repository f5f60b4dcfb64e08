//! What the kernel says, in the words of `noetl_flow`. Everything is moved, nothing copied.

use noetl_flow::decide;
use noetl_sdk::engine::orchestrator::orchestration as wit;

pub fn input(input: wit::Input) -> decide::Input {
    decide::Input { execution: input.execution, time_ms: input.time_ms, what: happening(input.what) }
}

/// The events of segments; their places are checked by the fold, as events count up.
pub fn events(segments: Vec<wit::Segment>) -> Vec<Vec<u8>> {
    segments.into_iter().map(|segment| segment.events).collect()
}

fn happening(what: wit::Happening) -> decide::Happening {
    match what {
        wit::Happening::Start(begin) => decide::Happening::Start(Box::new(start(begin))),
        wit::Happening::Report(wit::Report { command, body, stored }) => {
            decide::Happening::Report(decide::ReportInput { command, body, stored })
        }
        wit::Happening::ChildStarted(wit::ChildStarted { command, execution, by }) => {
            decide::Happening::ChildStarted(decide::ChildStarted { command, execution, by })
        }
        wit::Happening::ChildEnded(wit::ChildEnded { command, execution, status, body }) => {
            decide::Happening::ChildEnded(decide::ChildEnded { command, execution, status, body })
        }
        wit::Happening::Wake => decide::Happening::Wake,
        wit::Happening::Lost((command, again)) => decide::Happening::Lost(command, again),
        wit::Happening::Resume(wit::Resume { step, value, requested_by }) => {
            decide::Happening::Resume(decide::Resume { step, value, requested_by })
        }
        wit::Happening::Cancel(wit::Cancel { reason, requested_by }) => {
            decide::Happening::Cancel(decide::Cancel { reason, requested_by })
        }
        wit::Happening::Abort(reason) => decide::Happening::Abort(reason),
    }
}

fn start(start: wit::Start) -> decide::Start {
    let parent = |wit::Parent { execution, command }| decide::Parent { execution, command };
    let again =
        |wit::Again { execution, step, segments }| decide::Again { execution, step, segments: events(segments) };
    decide::Start {
        tenant: start.tenant,
        path: start.path,
        version: start.version,
        digest: start.digest,
        payload: start.payload,
        parent: start.parent.map(parent),
        root: start.root,
        pool: start.pool,
        environment: start.environment,
        lenient: start.lenient,
        trace: start.trace,
        requested_by: start.requested_by,
        again: start.again.map(again),
        returns: start.returns,
    }
}
