//! Names of the things an execution is made of.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identity of one piece of work: which step, the how-manieth time it was entered, which iteration of its loop, which
/// attempt. It is the same whoever computes it, so a command that is issued or delivered twice is still one command.
///
/// As text `step#run`, then `[iteration]` for a loop and `~attempt` from the second attempt on: `fetch#1[17]~2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    pub step: String,
    /// From 1.
    pub run: u32,
    pub iteration: Option<u32>,
    /// From 1.
    pub attempt: u32,
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.step, self.run)?;
        if let Some(iteration) = self.iteration {
            write!(f, "[{iteration}]")?;
        }
        if self.attempt > 1 {
            write!(f, "~{}", self.attempt)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotACommand(pub String);

impl fmt::Display for NotACommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not the id of a command", self.0)
    }
}

impl std::error::Error for NotACommand {}

impl FromStr for CommandId {
    type Err = NotACommand;

    fn from_str(text: &str) -> Result<Self, NotACommand> {
        let bad = || NotACommand(text.to_owned());
        // A step's name can hold any of the marks, so the text is read from its end.
        let (head, tail) = text.rsplit_once('#').ok_or_else(bad)?;
        let (tail, attempt) = match tail.split_once('~') {
            Some((tail, attempt)) => (tail, attempt.parse().map_err(|_| bad())?),
            None => (tail, 1),
        };
        let (run, iteration) = match tail.split_once('[') {
            Some((run, rest)) => {
                let iteration = rest.strip_suffix(']').ok_or_else(bad)?;
                (run, Some(iteration.parse().map_err(|_| bad())?))
            }
            None => (tail, None),
        };
        Ok(Self { step: head.to_owned(), run: run.parse().map_err(|_| bad())?, iteration, attempt })
    }
}

impl Serialize for CommandId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CommandId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_back_from_its_text() {
        for (text, iteration, attempt) in [("a#1", None, 1), ("a b#2[17]", Some(17), 1), ("x#y~z#3[0]~4", Some(0), 4)] {
            let id: CommandId = text.parse().expect(text);
            assert_eq!((id.iteration, id.attempt), (iteration, attempt));
            assert_eq!(id.to_string(), text);
        }
        for text in ["", "a", "a#", "a#x", "a#1[", "a#1[x]", "a#1~"] {
            assert!(text.parse::<CommandId>().is_err(), "{text}");
        }
    }
}
