//! The engine's services as the host sees them: components the kernel calls itself, with typed exports.
//!
//! All of them are resident and pure, so a call is a plain function call on the caller's own thread: nothing is
//! queued, nobody is woken. Whoever drives executions owns a [`Residents`] and calls through it.

use noetl_contract::manifest::World;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use crate::call::{self, TransformFunc};
use crate::error::{Fault, FaultClass};
use crate::module::Module;
use crate::state::CallState;

mod bindings {
    wasmtime::component::bindgen!({
        inline: "
            package noetl:kernel;
            world services {
                export noetl:engine/orchestration@0.1.0;
                export noetl:engine/scheduling@0.1.0;
                export noetl:engine/running@0.1.0;
                export noetl:engine/state-building@0.1.0;
                export noetl:engine/projecting@0.1.0;
                export noetl:engine/publishing@0.1.0;
            }
        ",
        world: "noetl:kernel/services",
        path: [
            "../../wit/log/0.1.0",
            "../../wit/metrics/0.1.0",
            "../../wit/clock/0.1.0",
            "../../wit/random/0.1.0",
            "../../wit/kv/0.1.0",
            "../../wit/payload/0.1.0",
            "../../wit/objects/0.1.0",
            "../../wit/http-client/0.1.0",
            "../../wit/secrets/0.1.0",
            "../../wit/files/0.1.0",
            "../../wit/sql/0.1.0",
            "../../wit/nats/0.1.0",
            "../../wit/process/0.1.0",
            "../../wit/worlds/0.1.0",
            "../../wit/engine/0.1.0",
        ],
        require_store_data_send: true,
    });
}

pub use bindings::exports::noetl::engine::{
    orchestration, projecting, publishing, running, scheduling, state_building,
};
pub use bindings::noetl::engine::chain;

use crate::resident::Residents;

impl chain::Host for CallState {}

/// What a resident instance exports, looked up once.
pub(crate) enum Exports {
    Transform(TransformFunc<'static>),
    Orchestrator { orchestration: orchestration::Guest, scheduling: scheduling::Guest },
    Runner(running::Guest),
    StateBuilder(state_building::Guest),
    Projector(projecting::Guest),
    Publisher(publishing::Guest),
}

impl Exports {
    pub(crate) fn find(
        store: &mut Store<CallState>,
        instance: &Instance,
        pre: &InstancePre<CallState>,
        module: &Module,
    ) -> wasmtime::Result<Self> {
        Ok(match module.spec.world {
            World::Transform | World::Tool | World::Interpreter => {
                Self::Transform(call::transform_export(store, instance, module)?)
            }
            World::Orchestrator => Self::Orchestrator {
                orchestration: orchestration::GuestIndices::new(pre)?.load(&mut *store, instance)?,
                scheduling: scheduling::GuestIndices::new(pre)?.load(&mut *store, instance)?,
            },
            World::Runner => Self::Runner(running::GuestIndices::new(pre)?.load(store, instance)?),
            World::StateBuilder => Self::StateBuilder(state_building::GuestIndices::new(pre)?.load(store, instance)?),
            World::Projector => Self::Projector(projecting::GuestIndices::new(pre)?.load(store, instance)?),
            World::Publisher => Self::Publisher(publishing::GuestIndices::new(pre)?.load(store, instance)?),
        })
    }
}

/// The module is of another world than the function called; only a caller's own mistake leads here.
pub(crate) fn other_world(module: &Module) -> Fault {
    Fault::new(FaultClass::Trap, format!("{} is of the world `{}`", module.spec.path, module.spec.world))
}

macro_rules! service_calls {
    ($($(#[$doc:meta])* $name:ident($pattern:pat => $guest:ident . $call:ident)($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        impl Residents {
            $($(#[$doc])*
            pub fn $name(&mut self, module: &std::sync::Arc<Module>, $($arg: $ty),*) -> Result<$out, Fault> {
                self.with(module, |exports, store| match exports {
                    $pattern => Some($guest.$call(store, $($arg),*)),
                    _ => None,
                })
            })*
        }
    };
}

service_calls! {
    /// One decision an input, in order.
    drive(Exports::Orchestrator { orchestration, .. } => orchestration.call_drive)(
        batch: &[orchestration::Input]
    ) -> Vec<orchestration::Decision>;
    learn(Exports::Orchestrator { orchestration, .. } => orchestration.call_learn)(
        digest: &str, text: &str
    ) -> Result<(), String>;
    load(Exports::Orchestrator { orchestration, .. } => orchestration.call_load)(
        execution: u64, checkpoint: Option<&[u8]>, segments: &[chain::Segment]
    ) -> Result<orchestration::Owed, orchestration::LoadError>;
    supply(Exports::Orchestrator { orchestration, .. } => orchestration.call_supply)(
        execution: u64, digest: &str, value: &[u8]
    ) -> ();
    evict(Exports::Orchestrator { orchestration, .. } => orchestration.call_evict)(executions: &[u64]) -> ();
    validate(Exports::Orchestrator { orchestration, .. } => orchestration.call_validate)(
        text: &str, strict: bool
    ) -> String;
    usage(Exports::Orchestrator { orchestration, .. } => orchestration.call_usage)() -> orchestration::Footprint;
    due(Exports::Orchestrator { scheduling, .. } => scheduling.call_evaluate)(
        schedule: &str, last_ms: u64, now_ms: u64
    ) -> Result<scheduling::Due, String>;
    /// One answer a turn, in order.
    advance(Exports::Runner(running) => running.call_advance)(turns: &[running::Turn]) -> Vec<running::Next>;
    build(Exports::StateBuilder(building) => building.call_build)(
        checkpoint: Option<&[u8]>, segments: &[chain::Segment]
    ) -> Result<Vec<u8>, String>;
    view(Exports::StateBuilder(building) => building.call_view)(
        segments: &[chain::Segment], cutoff: state_building::Cutoff
    ) -> Result<String, String>;
    explain(Exports::StateBuilder(building) => building.call_explain)(
        segments: &[chain::Segment]
    ) -> Result<String, String>;
    project(Exports::Projector(projecting) => projecting.call_project)(
        segments: &[chain::Segment]
    ) -> Vec<projecting::Change>;
    expand(Exports::Projector(projecting) => projecting.call_expand)(segments: &[chain::Segment]) -> Vec<String>;
    tick(Exports::Publisher(publishing) => publishing.call_tick)(
        state: &[u8], time_ms: u64, tip: u64, extents: &[publishing::Extent], results: &[publishing::ResultOf]
    ) -> publishing::Plan;
    encode(Exports::Publisher(publishing) => publishing.call_encode)(
        segments: &[chain::Segment]
    ) -> Vec<publishing::Message>;
}
