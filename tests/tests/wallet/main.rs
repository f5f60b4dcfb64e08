//! Credentials on the real binary: kept, listed, replaced and deleted by the API and by the command, for one tenant alone; shown
//! to who may see them and to nobody else; and closed to everybody when their key is gone. And used: requests that are signed,
//! tokens that are fetched, secrets in the hands of code, and what stays behind when a request is sent on elsewhere.

mod api;
mod bound;
mod cases;
mod code;
mod command;
mod key;
mod redirects;
mod signing;
mod support;
mod tokens;
