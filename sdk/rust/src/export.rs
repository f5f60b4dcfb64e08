//! Turns an author's function into the exported world of a component.
//!
//! Every call first makes sure that the panic hook is set. It is set by the call and not by a constructor, because a
//! constructor would run in every instance even when the host only looks at it. The hook hands the panic's message
//! and place to `noetl:worlds/diagnostics`, which is linked in every ring; the guest traps right after.

use std::sync::Once;

use crate::Failure;
use crate::bindings::noetl::worlds::{diagnostics, failures};
#[cfg(feature = "tool")]
use crate::tool::{Request, Response};

/// Export `fn(Vec<u8>) -> Result<Vec<u8>, Failure>` as the world `transform`.
#[macro_export]
macro_rules! transform {
    ($run:expr, $description:expr) => {
        $crate::transform!($run);
        $crate::describe!($description);
    };
    ($run:expr) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            struct Plugin;
            impl $crate::bindings::transform::Guest for Plugin {
                fn run(input: Vec<u8>) -> Result<Vec<u8>, $crate::bindings::transform::Failure> {
                    $crate::export::run_transform(input, $run)
                }
            }
    $crate::bindings::transform::export_transform!(Plugin with_types_in $crate::bindings::transform);
        };
    };
}

/// Export `fn(Input) -> Result<Output, Failure>` as the world `transform`, with JSON on both sides.
///
/// Input that is not the JSON that `Input` wants is answered with the failure `invalid_input`.
#[cfg(feature = "json")]
#[macro_export]
macro_rules! transform_json {
    ($run:expr, $description:expr) => {
        $crate::transform_json!($run);
        $crate::describe!($description);
    };
    ($run:expr) => {
        $crate::transform!(|input| $crate::json::transform(input, $run));
    };
}

/// Export `fn(tool::Request) -> Result<tool::Response, Failure>` as the world `tool`.
#[cfg(feature = "tool")]
#[macro_export]
macro_rules! tool {
    ($call:expr, $description:expr) => {
        $crate::tool!($call);
        $crate::describe!($description);
    };
    ($call:expr) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            struct Plugin;
            impl $crate::bindings::tool::Guest for Plugin {
                fn call(
                    request: $crate::tool::Request,
                ) -> Result<$crate::tool::Response, $crate::bindings::tool::Failure> {
                    $crate::export::call_tool(request, $call)
                }
            }
    $crate::bindings::tool::export_tool!(Plugin with_types_in $crate::bindings::tool);
        };
    };
}

/// Export what the component says about itself: one JSON document, as text. It is also the second argument of the
/// macros above: `noetl_sdk::tool!(call, include_str!("../describe.json"))`.
///
/// The document has a `summary` and may have `fields`, `result`, `errors`, `examples` and `notes`;
/// `noetl schema description` prints its schema.
#[macro_export]
macro_rules! describe {
    ($description:expr) => {
        // The exported symbols are unsafe attributes in the author's own crate.
        #[allow(unsafe_code)]
        const _: () = {
            struct Described;
            impl $crate::bindings::described::exports::noetl::describe::describing::Guest for Described {
                fn describe() -> String {
                    $crate::export::report_panics();
                    String::from($description)
                }
            }
    $crate::bindings::described::export_described!(Described with_types_in $crate::bindings::described);
        };
    };
}

#[doc(hidden)]
pub fn run_transform(
    input: Vec<u8>,
    run: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, failures::Failure> {
    report_panics();
    run(input).map_err(Into::into)
}

#[cfg(feature = "tool")]
#[doc(hidden)]
pub fn call_tool(
    request: Request,
    call: impl FnOnce(Request) -> Result<Response, Failure>,
) -> Result<Response, failures::Failure> {
    report_panics();
    call(request).map_err(Into::into)
}

/// Called first by everything that is exported.
#[doc(hidden)]
pub fn report_panics() {
    static SET: Once = Once::new();
    SET.call_once(|| std::panic::set_hook(Box::new(|panic| diagnostics::panicked(&panic.to_string()))));
}
