//! The tool `tools/noop`: glue between the world `transform` and [`answer`].
//!
//! It is pure and resident, so the engine calls it on its own thread and needs no commit of its own for it.

mod answer;

noetl_sdk::transform_json!(|arguments| Ok(answer::answer(arguments)), include_str!("../describe.json"));
