//! What the tools that send requests share: their options ([`options`]), what goes out with one ([`sent`]) and the request
//! it all comes to ([`request`]).

pub mod options;
pub mod request;
pub mod sent;
mod text;

pub use options::{Options, Plan, ResponseType};
