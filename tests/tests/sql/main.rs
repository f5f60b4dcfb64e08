//! Databases: the driver against a private PostgreSQL ([`fidelity`], [`scripts`]), and the tools over it and over SQLite in
//! playbooks on the real binary ([`tools`]).

mod base;
mod fidelity;
mod scripts;
mod tools;
