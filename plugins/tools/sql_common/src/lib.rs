//! What the tools over databases share: their options ([`options`]), where a script is ([`source`]) and the form of their
//! answers ([`output`]).

pub mod options;
pub mod output;
pub mod source;

pub use options::{Options, Plan};
pub use output::answer;
