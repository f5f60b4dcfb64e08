//! What a call asked of the host and was answered, in order: written down for a case file, or played from one.
//!
//! A call that is played runs in a real sandbox but reaches nothing: each of its host calls gets the answer the case has
//! for it, so that it gives the same bytes wherever it runs. Only what comes from outside the call is on the tape.
//! Reading a payload is not, since its content is; the time and the randomness of WASI follow from where they began
//! ([`Start`]).
//!
//! Invariants:
//! 1. A call that is neither recorded nor played pays for one comparison.
//! 2. A call that is played never gets an answer that was meant for another function: it faults instead. Whether the
//!    arguments are the same is for whoever plays it to see, because only they know what was masked.
//! 3. What is written down counts as the guest's memory while the call runs.

mod files;
mod http;
mod objects;
mod secrets;
mod sql;
mod start;
mod values;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Fault, FaultClass};
use crate::state::CallState;

pub use objects::{LARGEST_CONTENT, left_out};
pub use start::Start;
pub(crate) use values::{Taped, named};
pub use values::{bytes_of, bytes_value};

/// One call into the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCall {
    /// `kv.get`
    pub call: String,
    pub with: Value,
    #[serde(default)]
    pub answer: Value,
}

/// Where the answers of the host come from.
#[derive(Debug, Clone, Default)]
pub enum Script {
    /// From the host, and nothing is written down.
    #[default]
    Live,
    /// From the host; time and randomness too, where nothing says where they begin.
    Record(Option<Start>),
    /// From a case; one that was written by hand may not say where it begins.
    Play { calls: Vec<HostCall>, start: Option<Start> },
}

impl Script {
    /// Where clock and randomness begin; none when they are the real ones.
    pub(crate) fn start(&self) -> Option<Start> {
        match self {
            Script::Live => None,
            Script::Record(start) | Script::Play { start, .. } => *start,
        }
    }
}

/// The tape of one call.
#[derive(Default)]
pub(crate) struct Tape {
    mode: Mode,
    made: Vec<HostCall>,
    /// Bytes of what was made.
    weight: u64,
}

#[derive(Default)]
enum Mode {
    #[default]
    Live,
    Record,
    Play(VecDeque<HostCall>),
}

impl Tape {
    pub(crate) fn new(script: Script) -> Self {
        let mode = match script {
            Script::Live => Mode::Live,
            Script::Record(_) => Mode::Record,
            Script::Play { calls, .. } => Mode::Play(calls.into()),
        };
        Self { mode, ..Self::default() }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live)
    }
}

impl CallState {
    /// What the call asked, with what it was answered; the tape is empty then.
    pub(crate) fn take_tape(&mut self) -> Vec<HostCall> {
        let tape = std::mem::take(&mut self.tape);
        self.meter.release(tape.weight);
        tape.made
    }

    /// The answer of a function: from the case, or from `make`.
    pub(crate) fn taped<T: Taped>(
        &mut self,
        call: &'static str,
        with: impl Fn() -> Value,
        make: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Fault> {
        self.try_taped(call, with, |state| Ok(make(state)))
    }

    /// The same for a function that can end the call.
    pub(crate) fn try_taped<T: Taped>(
        &mut self,
        call: &'static str,
        with: impl Fn() -> Value,
        make: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.tape.is_live() {
            return make(self);
        }
        if let Some(answer) = self.played(call, &with)? {
            return T::read(&answer).ok_or_else(|| self.no_answer(call));
        }
        let made = make(self)?;
        self.recorded(call, with(), made.write())?;
        Ok(made)
    }

    /// The case's answer to the call that is made now; none when no case is played.
    fn played(&mut self, call: &str, with: &dyn Fn() -> Value) -> Result<Option<Value>, Fault> {
        let Mode::Play(script) = &mut self.tape.mode else { return Ok(None) };
        let next = script.pop_front();
        let answer = match next {
            Some(next) if next.call == call => next.answer,
            other => {
                self.recorded(call, with(), Value::Null)?;
                let expected = other.map_or_else(|| "nothing more".to_owned(), |next| format!("`{}`", next.call));
                let text = format!("the plugin called `{call}` where the case has {expected}");
                return Err(self.meter.fail(FaultClass::Trap, text));
            }
        };
        if let Some(size) = left_out(&answer) {
            return Err(self.no_content(call, size));
        }
        self.recorded(call, with(), answer.clone())?;
        Ok(Some(answer))
    }

    fn recorded(&mut self, call: &str, with: Value, answer: Value) -> Result<(), Fault> {
        let weight = with.to_string().len().saturating_add(answer.to_string().len()) as u64;
        self.meter.hold(weight)?;
        self.tape.weight += weight;
        self.tape.made.push(HostCall { call: call.to_owned(), with, answer });
        Ok(())
    }

    /// For functions whose calls are not written down: what they answer is somebody else's, or has happened.
    pub(crate) fn not_taped(&mut self, call: &str) -> Result<(), Fault> {
        if self.tape.is_live() {
            return Ok(());
        }
        let text = format!("a call that uses `{call}` can be neither recorded nor played");
        Err(self.meter.fail(FaultClass::Trap, text))
    }

    /// To record it again gives the same case: only a call that asks for less gives another.
    fn no_content(&mut self, call: &str, size: u64) -> Fault {
        let text = format!(
            "the case has only the digest of what `{call}` answered ({size} bytes), because contents above {} MiB are not \
             written down: record a call that asks for less, or remove this case",
            LARGEST_CONTENT >> 20
        );
        self.meter.fail(FaultClass::Trap, text)
    }

    fn no_answer(&mut self, call: &str) -> Fault {
        let text = format!("the case's answer to `{call}` is not one that `{call}` gives: record it again");
        self.meter.fail(FaultClass::Trap, text)
    }
}
