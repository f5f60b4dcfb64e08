//! What a noetl plugin is written with.
//!
//! A plugin is a function and one line that exports it:
//!
//! ```
//! use noetl_sdk::{Failure, log};
//!
//! noetl_sdk::transform!(shout);
//!
//! fn shout(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
//!     let text = String::from_utf8(input)?;
//!     log::info!("shouting {} bytes", text.len());
//!     Ok(text.to_uppercase().into_bytes())
//! }
//! ```
//!
//! [`transform!`] takes bytes to bytes, [`transform_json!`] (feature `json`) a typed value to a typed value, and
//! [`tool!`] (feature `tool`) serves a step that acts on the outside. The services of the engine have worlds of their own
//! ([`engine`], a feature each). A component has one of them, once. Beside it [`describe!`] tells others what it takes
//! and gives.
//!
//! Invariants:
//! 1. A component imports only the capabilities its code refers to, because the linker drops the rest. What it does
//!    import must be listed in `plugin.toml`.
//! 2. A panic reaches the operator with its message and place before the guest traps ([`export`]).
//! 3. The crate compiles natively too, so that a plugin's own logic is tested with plain `cargo test`. There [`log`]
//!    writes to standard error; every other capability needs a host and ends the process. Test what uses one with
//!    the [`harness`].

pub mod bindings;
pub mod clock;
pub mod engine;
pub mod export;
mod failure;
pub mod files;
pub mod http;
pub mod kv;
pub mod log;
pub mod metrics;
pub mod nats;
pub mod objects;
pub mod payload;
pub mod process;
pub mod random;
mod redirect;
pub mod secrets;
pub mod sql;

#[cfg(feature = "arrow")]
pub mod arrow;
#[cfg(all(feature = "harness", not(target_family = "wasm")))]
pub mod harness;
#[cfg(feature = "json")]
pub mod json;
#[cfg(all(feature = "json", feature = "tool"))]
pub mod options;
#[cfg(feature = "tool")]
pub mod tool;

pub use failure::Failure;

#[cfg(all(feature = "allocator", target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();
