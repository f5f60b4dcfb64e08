//! Every example, as its first lines say it is run, with what it has to come to; and what tools say about themselves.
//!
//! The outside is a small API of this suite's own and a private Postgres. Examples in other languages load their
//! interpreter, whose machine code the first run on a machine compiles.

mod flows;
mod others;
mod shop;
mod support;
mod tables;
mod tools;
