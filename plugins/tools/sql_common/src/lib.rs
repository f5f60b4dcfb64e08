//! What the tools over databases share: their options ([`options`]) and the form of their answers ([`output`]).

pub mod options;
pub mod output;

pub use options::{Options, Plan};
pub use output::answer;
