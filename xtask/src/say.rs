//! What the user sees: headings, finished lines, and a spinner while something takes time.
//!
//! On a terminal a step is a spinner that becomes one line; elsewhere it is plain lines, so that a CI log reads well.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

pub fn heading(text: &str) {
    eprintln!("\n== {text}");
}

pub fn done(text: &str) {
    eprintln!("ok: {text}");
}

/// `1.2 s`, `3 min 4 s`.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds >= 60 {
        format!("{} min {} s", seconds / 60, seconds % 60)
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// A step that is under way.
pub struct Step {
    bar: Option<ProgressBar>,
    started: Instant,
}

impl Step {
    pub fn start(text: &str) -> Step {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar.set_message(text.to_owned());
            bar
        });
        let step = Step { bar, started: Instant::now() };
        if step.bar.is_none() {
            eprintln!("{text} ...");
        }
        step
    }

    /// What the step does now.
    pub fn now(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("  {text}"),
        }
    }

    /// Ends the step with one line.
    pub fn end(self, text: &str) {
        let taken = self.started.elapsed();
        drop(self);
        done(&format!("{text} ({})", time(taken)));
    }
}

/// A step that is left early, by an error, must not leave its spinner on the screen.
impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(time(Duration::from_millis(1240)), "1.2 s");
        assert_eq!(time(Duration::from_secs(184)), "3 min 4 s");
    }
}
