//! What an execution does next.
//!
//! [`Orchestrator`] takes inputs and answers with events and the effects that go with them. A [turn](turn) is one input
//! decided to its end: [`happen`] records what the input stands for; [`route`] follows the arcs of a step that ended;
//! [`enter`] lets a step begin; [`loops`] and [`items`] repeat one; [`command`] makes what goes out; [`settle`] ends the
//! execution when nothing is left. [`program`] is a playbook made ready, [`graph`] its arcs, [`scope`] what its templates
//! see.
//!
//! Invariants:
//! 1. A decision is a function of the state, the playbook and the input, and changes the state by events alone.
//! 2. An execution has something in flight, parked or due, or it has ended. It ends once.
//! 3. A command is accepted once. What is recorded as done is not done again.
//! 4. A step runs once, and again only by an arc of a loop it is part of. It begins when none of the steps that lead to it
//!    can come any more.
//! 5. A failure that no arc asks about ends the execution as failed, unless the playbook is lenient. The result of an
//!    execution is the result of the step that ended last, whatever that is.
//!
//! Whatever a playbook or an input gets wrong becomes the end of its execution, with the reason, or an answer that says
//! so; never a panic.

mod api;
mod command;
mod enter;
mod graph;
mod happen;
mod items;
mod loops;
mod orchestrator;
mod program;
mod route;
mod scope;
mod settle;
mod start;
mod turn;
mod variables;
mod workload;

pub use api::{
    Again, Answer, Cancel, Child, ChildEnded, ChildStarted, Command, Decided, Decision, Ended, Happening, Input,
    LoadError, Need, Outcome, Owed, Parent, ReportInput, Resume, Start, Usage,
};
pub use orchestrator::Orchestrator;

#[cfg(test)]
mod tests;
