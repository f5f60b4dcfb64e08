//! The service `system/state_builder`: glue between the world `state-builder` and `noetl_flow::view`.

use noetl_flow::view::{self, Segment};
use noetl_sdk::engine::state_builder::state_building;

struct Service;

noetl_sdk::state_builder!(Service);

impl state_building::Guest for Service {
    fn build(checkpoint: Option<Vec<u8>>, segments: Vec<state_building::Segment>) -> Result<Vec<u8>, String> {
        view::build(checkpoint.as_deref(), &all(segments)).map_err(|broken| broken.to_string())
    }

    fn view(segments: Vec<state_building::Segment>, cutoff: state_building::Cutoff) -> Result<String, String> {
        let cutoff = match cutoff {
            state_building::Cutoff::Head => view::Cutoff::Head,
            state_building::Cutoff::Event(id) => view::Cutoff::Event(id),
            state_building::Cutoff::Position(position) => view::Cutoff::Position(position),
            state_building::Cutoff::TimeMs(ms) => view::Cutoff::TimeMs(ms),
        };
        view::view(&all(segments), cutoff).map(|view| view.to_string()).map_err(|broken| broken.to_string())
    }

    fn explain(segments: Vec<state_building::Segment>) -> Result<String, String> {
        view::explain(&all(segments)).map(|reason| reason.to_string()).map_err(|broken| broken.to_string())
    }
}

fn all(segments: Vec<state_building::Segment>) -> Vec<Segment> {
    let of = |segment| {
        let state_building::Segment { execution, tenant, version, position, time_ms, decided_by, events } = segment;
        Segment { execution, tenant, version, position, time_ms, decided_by, events }
    };
    segments.into_iter().map(of).collect()
}
