//! Credentials on the real binary: kept, listed, replaced and deleted by the API and by the command, for one tenant alone; shown
//! to who may see them and to nobody else; and closed to everybody when their key is gone.

mod api;
mod bound;
mod command;
mod key;
mod support;
