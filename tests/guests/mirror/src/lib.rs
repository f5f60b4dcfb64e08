//! A tool that answers with what it was given. The body is a reference, so passing it on costs the same for any size.

use noetl_sdk::tool::Response;

noetl_sdk::tool!(|request| Ok(Response { output: request.arguments, body: request.body }));
