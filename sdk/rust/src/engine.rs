//! The worlds of the engine's services.
//!
//! A service is a type that implements the `Guest` traits of its world, and one line that exports it:
//!
//! ```ignore
//! struct Runner;
//! impl noetl_sdk::engine::runner::running::Guest for Runner { ... }
//! noetl_sdk::runner!(Runner);
//! ```
//!
//! The macros put one thing before each call: the panic hook ([`crate::export`]), because a service that traps without
//! its last words is the hardest to mend.

/// The world `orchestrator`.
#[cfg(feature = "orchestrator")]
pub mod orchestrator {
    pub use crate::bindings::orchestrator::exports::noetl::engine::{orchestration, scheduling};
}

/// The world `runner`.
#[cfg(feature = "runner")]
pub mod runner {
    pub use crate::bindings::runner::exports::noetl::engine::running;
}

/// The world `state-builder`.
#[cfg(feature = "state-builder")]
pub mod state_builder {
    pub use crate::bindings::state_builder::exports::noetl::engine::state_building;
}

/// The world `projector`.
#[cfg(feature = "projector")]
pub mod projector {
    pub use crate::bindings::projector::exports::noetl::engine::projecting;
}

/// The world `publisher`.
#[cfg(feature = "publisher")]
pub mod publisher {
    pub use crate::bindings::publisher::exports::noetl::engine::publishing;
}

/// Export a type as the world `orchestrator`.
#[cfg(feature = "orchestrator")]
#[macro_export]
macro_rules! orchestrator {
    ($service:ty) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            use $crate::engine::orchestrator::{orchestration, scheduling};
            struct Plugin;
            impl orchestration::Guest for Plugin {
                fn drive(batch: Vec<orchestration::Input>) -> Vec<orchestration::Decision> {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::drive(batch)
                }

                fn learn(digest: String, text: String) -> Result<(), String> {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::learn(digest, text)
                }

                fn load(
                    execution: u64,
                    checkpoint: Option<Vec<u8>>,
                    segments: Vec<orchestration::Segment>,
                ) -> Result<orchestration::Owed, orchestration::LoadError> {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::load(execution, checkpoint, segments)
                }

                fn supply(execution: u64, digest: String, value: Vec<u8>) {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::supply(execution, digest, value)
                }

                fn evict(executions: Vec<u64>) {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::evict(executions)
                }

                fn validate(text: String, strict: bool) -> String {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::validate(text, strict)
                }

                fn usage() -> orchestration::Footprint {
                    $crate::export::report_panics();
                    <$service as orchestration::Guest>::usage()
                }
            }
            impl scheduling::Guest for Plugin {
                fn evaluate(schedule: String, last_ms: u64, now_ms: u64) -> Result<scheduling::Due, String> {
                    $crate::export::report_panics();
                    <$service as scheduling::Guest>::evaluate(schedule, last_ms, now_ms)
                }
            }
    $crate::bindings::orchestrator::export_orchestrator!(Plugin with_types_in $crate::bindings::orchestrator);
        };
    };
}

/// Export a type as the world `runner`.
#[cfg(feature = "runner")]
#[macro_export]
macro_rules! runner {
    ($service:ty) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            use $crate::engine::runner::running;
            struct Plugin;
            impl running::Guest for Plugin {
                fn advance(turns: Vec<running::Turn>) -> Vec<running::Next> {
                    $crate::export::report_panics();
                    <$service as running::Guest>::advance(turns)
                }
            }
    $crate::bindings::runner::export_runner!(Plugin with_types_in $crate::bindings::runner);
        };
    };
}

/// Export a type as the world `state-builder`.
#[cfg(feature = "state-builder")]
#[macro_export]
macro_rules! state_builder {
    ($service:ty) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            use $crate::engine::state_builder::state_building;
            struct Plugin;
            impl state_building::Guest for Plugin {
                fn build(
                    checkpoint: Option<Vec<u8>>,
                    segments: Vec<state_building::Segment>,
                ) -> Result<Vec<u8>, String> {
                    $crate::export::report_panics();
                    <$service as state_building::Guest>::build(checkpoint, segments)
                }

                fn view(
                    segments: Vec<state_building::Segment>,
                    cutoff: state_building::Cutoff,
                ) -> Result<String, String> {
                    $crate::export::report_panics();
                    <$service as state_building::Guest>::view(segments, cutoff)
                }

                fn explain(segments: Vec<state_building::Segment>) -> Result<String, String> {
                    $crate::export::report_panics();
                    <$service as state_building::Guest>::explain(segments)
                }
            }
            $crate::bindings::state_builder::export_state_builder!(Plugin with_types_in $crate::bindings::state_builder);
        };
    };
}

/// Export a type as the world `projector`.
#[cfg(feature = "projector")]
#[macro_export]
macro_rules! projector {
    ($service:ty) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            use $crate::engine::projector::projecting;
            struct Plugin;
            impl projecting::Guest for Plugin {
                fn project(segments: Vec<projecting::Segment>) -> Vec<projecting::Change> {
                    $crate::export::report_panics();
                    <$service as projecting::Guest>::project(segments)
                }

                fn expand(segments: Vec<projecting::Segment>) -> Vec<String> {
                    $crate::export::report_panics();
                    <$service as projecting::Guest>::expand(segments)
                }
            }
    $crate::bindings::projector::export_projector!(Plugin with_types_in $crate::bindings::projector);
        };
    };
}

/// Export a type as the world `publisher`.
#[cfg(feature = "publisher")]
#[macro_export]
macro_rules! publisher {
    ($service:ty) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            use $crate::engine::publisher::publishing;
            struct Plugin;
            impl publishing::Guest for Plugin {
                fn tick(
                    state: Vec<u8>,
                    time_ms: u64,
                    tip: u64,
                    extents: Vec<publishing::Extent>,
                    results: Vec<publishing::ResultOf>,
                ) -> publishing::Plan {
                    $crate::export::report_panics();
                    <$service as publishing::Guest>::tick(state, time_ms, tip, extents, results)
                }

                fn encode(segments: Vec<publishing::Segment>) -> Vec<publishing::Message> {
                    $crate::export::report_panics();
                    <$service as publishing::Guest>::encode(segments)
                }
            }
    $crate::bindings::publisher::export_publisher!(Plugin with_types_in $crate::bindings::publisher);
        };
    };
}
