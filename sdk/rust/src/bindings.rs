//! The contract's WIT packages as Rust, generated; the modules beside this one make it pleasant.
//!
//! The capabilities are generated once, from a world that only imports, and both exporting worlds share those types.
//! So a plugin exports one world by naming it in a macro, and code that serves both worlds needs no generics. A
//! capability that no code refers to is dropped by the linker, and the component does not import it. The types of an
//! exporting world are not dropped, so the world `tool`, whose types need `noetl:payload`, is a feature. So are the worlds
//! of the engine, which few components have: their code is made only for those.

// Generated code crosses the component boundary with raw pointers; nothing written by hand here is unsafe.
#![allow(unsafe_code, missing_docs, clippy::all)]

macro_rules! generate {
    ([$($package:literal)?] $($option:tt)*) => {
        wit_bindgen::generate!({
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
                $($package)?
            ],
            $($option)*
        });
    };
}

generate! {
    []
    inline: "
        package noetl:sdk;
        world capabilities {
            import noetl:log/log@0.1.0;
            import noetl:metrics/metrics@0.1.0;
            import noetl:clock/clock@0.1.0;
            import noetl:random/random@0.1.0;
            import noetl:kv/kv@0.1.0;
            import noetl:payload/payload@0.1.0;
            import noetl:objects/objects@0.1.0;
            import noetl:http-client/http-client@0.1.0;
            import noetl:secrets/secrets@0.1.0;
            import noetl:files/files@0.1.0;
            import noetl:sql/sql@0.1.0;
            import noetl:nats/nats@0.1.0;
            import noetl:process/process@0.1.0;
            import noetl:worlds/diagnostics@0.1.0;
            import noetl:worlds/failures@0.1.0;
            import noetl:worlds/tooling@0.1.0;
        }
    ",
    world: "noetl:sdk/capabilities",
    generate_all,
}

macro_rules! exporting_world {
    ($world:literal, $export:literal $(, $interface:literal: $module:path)*) => {
        generate! {
            []
            world: $world,
            with: {
                "noetl:log/log@0.1.0": crate::bindings::noetl::log::log,
                "noetl:metrics/metrics@0.1.0": crate::bindings::noetl::metrics::metrics,
                "noetl:clock/clock@0.1.0": crate::bindings::noetl::clock::clock,
                "noetl:random/random@0.1.0": crate::bindings::noetl::random::random,
                "noetl:kv/kv@0.1.0": crate::bindings::noetl::kv::kv,
                "noetl:payload/payload@0.1.0": crate::bindings::noetl::payload::payload,
                "noetl:objects/objects@0.1.0": crate::bindings::noetl::objects::objects,
                "noetl:http-client/http-client@0.1.0": crate::bindings::noetl::http_client::http_client,
                "noetl:secrets/secrets@0.1.0": crate::bindings::noetl::secrets::secrets,
                "noetl:files/files@0.1.0": crate::bindings::noetl::files::files,
                "noetl:sql/sql@0.1.0": crate::bindings::noetl::sql::sql,
                "noetl:nats/nats@0.1.0": crate::bindings::noetl::nats::nats,
                "noetl:worlds/diagnostics@0.1.0": crate::bindings::noetl::worlds::diagnostics,
                "noetl:worlds/failures@0.1.0": crate::bindings::noetl::worlds::failures,
                $($interface: $module,)*
            },
            pub_export_macro: true,
            export_macro_name: $export,
        }
    };
}

pub mod transform {
    exporting_world!("noetl:worlds/transform", "export_transform");
}

#[cfg(feature = "tool")]
pub mod tool {
    exporting_world!(
        "noetl:worlds/tool",
        "export_tool",
        "noetl:worlds/tooling@0.1.0": crate::bindings::noetl::worlds::tooling,
        "noetl:process/process@0.1.0": crate::bindings::noetl::process::process
    );
}

/// What a component of any world may export besides.
pub mod described {
    generate! {
        ["../../wit/describe/0.1.0"]
        inline: "
            package noetl:sdk-described;
            world described {
                export noetl:describe/describing@0.1.0;
            }
        ",
        world: "noetl:sdk-described/described",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_described",
    }
}

/// A world of `noetl:engine`: none of them imports more than messages, numbers and last words.
#[cfg(any(
    feature = "orchestrator",
    feature = "runner",
    feature = "state-builder",
    feature = "projector",
    feature = "publisher"
))]
macro_rules! engine_world {
    ($world:literal, $export:literal) => {
        generate! {
            ["../../wit/engine/0.1.0"]
            world: $world,
            with: {
                "noetl:log/log@0.1.0": crate::bindings::noetl::log::log,
                "noetl:metrics/metrics@0.1.0": crate::bindings::noetl::metrics::metrics,
                "noetl:worlds/diagnostics@0.1.0": crate::bindings::noetl::worlds::diagnostics,
            },
            generate_all,
            pub_export_macro: true,
            export_macro_name: $export,
        }
    };
}

#[cfg(feature = "orchestrator")]
pub mod orchestrator {
    engine_world!("noetl:engine/orchestrator", "export_orchestrator");
}

#[cfg(feature = "runner")]
pub mod runner {
    engine_world!("noetl:engine/runner", "export_runner");
}

#[cfg(feature = "state-builder")]
pub mod state_builder {
    engine_world!("noetl:engine/state-builder", "export_state_builder");
}

#[cfg(feature = "projector")]
pub mod projector {
    engine_world!("noetl:engine/projector", "export_projector");
}

#[cfg(feature = "publisher")]
pub mod publisher {
    engine_world!("noetl:engine/publisher", "export_publisher");
}
