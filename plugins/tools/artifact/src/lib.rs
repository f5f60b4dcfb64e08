//! The tool `tools/artifact`: glue between the world `tool` and the pure [`artifact`].
//!
//! The engine opens what a reference refers to, if it is the tenant's, and hands it over as the call's body; the tool could
//! not open anything by itself. What is kept goes the other way, as the body of the answer.

mod artifact;

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, payload};

use artifact::{Ask, Options};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    match Options::read(&request.arguments)?.ask()? {
        Ask::Get(encoding) => {
            let missing = "no reference: `result_ref` has to be the address of a payload, such as `{{ fetch._ref }}`; \
                           a result that is small enough is in the step itself and has none";
            let body = request.body.ok_or_else(|| Failure::invalid_input(missing))?;
            artifact::may_read(body.size())?;
            Ok(Response::raw(artifact::shown(encoding, body.bytes()?)?))
        }
        Ask::Put { media_type, bytes } => {
            let kept = payload::from_bytes(&media_type, &bytes)?;
            let output = artifact::kept(&kept.digest(), kept.size(), &media_type);
            Ok(Response::json(&output)?.with_body(kept))
        }
    }
}
