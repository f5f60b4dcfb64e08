//! The tool `tools/noop`: glue between the world `tool` and [`echo`].
//!
//! It asks for no capability. The body is a reference, so passing it on costs the same for any size.

mod echo;

noetl_sdk::tool!(|request| Ok(echo::answer(request)));
