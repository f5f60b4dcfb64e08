//! The live view of executions, on stderr.
//!
//! On a terminal every step that runs has a line with a spinner, the time so far and how far its loop is; what is over
//! scrolls up as a line that stays. Anywhere else there are plain lines only, one for each thing that happened to a step,
//! without control codes, so that a log of a run reads like a run. Iterations of a loop have no line of their own: there
//! can be a hundred thousand of them.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::Value;

use super::board::{Board, Change, Key};
use super::line::Line;
use crate::output::{Output, Paint, took};

/// Lines that move at the same time; more would not fit a screen.
const MOST_MOVING: usize = 24;
const TICK: Duration = Duration::from_millis(80);

pub struct View {
    board: Board,
    paint: Paint,
    output: Output,
    screen: Screen,
}

enum Screen {
    Terminal {
        all: MultiProgress,
        moving: HashMap<Key, ProgressBar>,
    },
    Plain,
    /// Nothing is shown.
    Off,
}

impl View {
    pub fn new(output: Output, quiet: bool) -> Self {
        let screen = match (quiet || output.json, output.shows_progress()) {
            (true, _) => Screen::Off,
            (false, true) => {
                let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
                Screen::Terminal { all, moving: HashMap::new() }
            }
            (false, false) => Screen::Plain,
        };
        Self { board: Board::default(), paint: output.stderr_paint(), output, screen }
    }

    pub fn event(&mut self, event: &Value) {
        if matches!(self.screen, Screen::Off) {
            return;
        }
        for change in self.board.event(event) {
            self.change(change);
        }
    }

    fn change(&mut self, change: Change) {
        let paint = self.paint;
        match (&mut self.screen, change) {
            (Screen::Off, _) => {}
            (Screen::Plain, Change::Line(line) | Change::Began(_, line)) => self.output.say(line.render(paint)),
            (Screen::Plain, Change::Moves(..) | Change::Ended(_)) => {}
            (Screen::Terminal { all, .. }, Change::Line(line)) => {
                // A terminal that is gone must not stop the work it only shows.
                let _ = all.println(line.render(paint));
            }
            (Screen::Terminal { all, moving }, Change::Began(key, line)) => {
                if moving.len() < MOST_MOVING {
                    let elapsed = elapsed_since(self.board.began_ms(&key));
                    let bar = all.add(ProgressBar::new_spinner().with_elapsed(elapsed));
                    bar.set_style(style());
                    write(&bar, &line, paint);
                    bar.enable_steady_tick(TICK);
                    moving.insert(key, bar);
                }
            }
            (Screen::Terminal { moving, .. }, Change::Moves(key, line)) => {
                if let Some(bar) = moving.get(&key) {
                    write(bar, &line, paint);
                }
            }
            (Screen::Terminal { all, moving }, Change::Ended(key)) => {
                if let Some(bar) = moving.remove(&key) {
                    bar.finish_and_clear();
                    all.remove(&bar);
                }
            }
        }
    }

    /// Takes the moving lines away, whatever they are about: nothing will move them any more.
    pub fn close(&mut self) {
        if let Screen::Terminal { all, moving } = &mut self.screen {
            for (_, bar) in moving.drain() {
                bar.finish_and_clear();
                all.remove(&bar);
            }
        }
    }
}

fn write(bar: &ProgressBar, line: &Line, paint: Paint) {
    bar.set_prefix(line.indent());
    bar.set_message(line.body(paint));
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix}{spinner} {msg} {took}").expect("the template is valid").with_key(
        "took",
        |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let ms = u64::try_from(state.elapsed().as_millis()).unwrap_or(u64::MAX);
            // The first tenths of a second are not worth a number that flickers.
            if ms >= 1000 {
                let _ = text.write_str(&took(ms));
            }
        },
    )
}

/// Steps of an execution that one joins late have run for a while; a clock that differs makes that zero at least.
fn elapsed_since(began_ms: Option<i64>) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = began_ms.and_then(|ms| u64::try_from(ms).ok()).map_or(now, Duration::from_millis);
    now.saturating_sub(began)
}
