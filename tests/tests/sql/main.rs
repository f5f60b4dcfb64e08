//! Databases: the driver against a private PostgreSQL ([`fidelity`], [`scripts`]), and the tools over it, encrypted or not
//! ([`encryption`]), and over SQLite in playbooks on the real binary ([`tools`]).

mod base;
mod encryption;
mod fidelity;
mod scripts;
mod tools;
