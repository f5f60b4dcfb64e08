//! What the tools over databases share: their options ([`options`]), which database is meant ([`database`]), where a script is
//! ([`source`]) and the form of their answers ([`output`]).

pub mod database;
pub mod options;
pub mod output;
pub mod source;

pub use options::{Options, Plan};
pub use output::answer;
