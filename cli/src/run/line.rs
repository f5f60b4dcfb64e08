//! One line of the view: a mark, what it is about, how long it took, and what else there is to say.
//!
//! The mark carries the meaning, colour only underlines it.

use crate::output::{Paint, took};

/// What a line says of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Playbook,
    Running,
    Done,
    Failed,
    Skipped,
    Retry,
    Parked,
    Note,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Playbook => "▸",
            Mark::Running => "→",
            Mark::Done => "✓",
            Mark::Failed => "✗",
            Mark::Skipped => "·",
            Mark::Retry => "↻",
            Mark::Parked => "‖",
            Mark::Note => "!",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// 0 for the execution that was asked for, one more for each generation of children.
    pub depth: usize,
    pub mark: Mark,
    pub text: String,
    /// In milliseconds.
    pub took: Option<u64>,
    pub note: Option<String>,
}

impl Line {
    pub fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.note = (!note.is_empty()).then_some(note);
        self
    }

    pub fn indent(&self) -> String {
        "  ".repeat(self.depth)
    }

    /// The whole line.
    pub fn render(&self, paint: Paint) -> String {
        let sign = self.mark.sign();
        let sign = match self.mark {
            Mark::Done => paint.good(sign),
            Mark::Failed => paint.bad(sign),
            Mark::Retry | Mark::Parked | Mark::Note => paint.warn(sign),
            Mark::Playbook | Mark::Running | Mark::Skipped => paint.dim(sign),
        };
        format!("{}{sign} {}", self.indent(), self.body(paint))
    }

    /// The line without its mark, for one that moves and has a mark of its own.
    pub fn body(&self, paint: Paint) -> String {
        let mut line = match self.mark {
            Mark::Playbook => paint.bold(&self.text),
            Mark::Skipped => paint.dim(&self.text),
            _ => self.text.clone(),
        };
        if let Some(ms) = self.took {
            line.push_str(&format!(" {}", paint.dim(took(ms))));
        }
        if let Some(note) = &self.note {
            let gap = if self.took.is_some() || self.mark == Mark::Playbook { "  " } else { " " };
            let note = if self.mark == Mark::Failed { paint.bad(note) } else { paint.dim(note) };
            line.push_str(&format!("{gap}{note}"));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_mark_time_and_note() {
        let line = Line { depth: 0, mark: Mark::Done, text: "fetch".into(), took: Some(12), note: None };
        assert_eq!(line.render(Paint::plain()), "✓ fetch 12 ms");
        let line = Line { depth: 1, mark: Mark::Failed, took: Some(3), ..line }.note("no answer");
        assert_eq!(line.render(Paint::plain()), "  ✗ fetch 3 ms  no answer");
        let line = Line { depth: 0, mark: Mark::Skipped, took: None, ..line }.note("skipped");
        assert_eq!(line.render(Paint::plain()), "· fetch skipped");
        assert_eq!(line.note("").note, None);
    }
}
