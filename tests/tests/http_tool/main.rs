//! The tool `http` in playbooks, against a server of the test's own: what is sent, what comes back, what a failure is, and
//! which lost call is made again. And with it how a playbook hands a payload on: `artifact` and `body_ref`.

mod artifacts;
mod connections;
mod failing;
mod sending;
mod support;
mod upstream;
