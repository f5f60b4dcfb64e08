//! What a command prints: tables for people, JSON for programs, talk on stderr.
//!
//! Invariants:
//! 1. stdout carries the command's data and nothing else, so that it can always be piped.
//! 2. With `--json` the data is one JSON value (or one a line, for commands that follow something).
//! 3. Colour never carries meaning alone: `+` and `-` stand beside green and red.
//! 4. Text that came from a server is stripped of control characters before a terminal sees it.
//!
//! A reader that goes away (`noetl plugin logs -f | head`) ends the command quietly instead of with a panic.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// When the stream is a terminal and NO_COLOR is not set.
    #[default]
    Auto,
    Always,
    Never,
}

/// Colours text, or does not.
#[derive(Debug, Clone, Copy)]
pub struct Paint(bool);

impl Paint {
    #[cfg(test)]
    pub fn plain() -> Self {
        Self(false)
    }

    fn wrap(self, code: &str, text: impl Display) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    pub fn good(self, text: impl Display) -> String {
        self.wrap("32", text)
    }

    pub fn bad(self, text: impl Display) -> String {
        self.wrap("31", text)
    }

    pub fn warn(self, text: impl Display) -> String {
        self.wrap("33", text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.wrap("2", text)
    }

    pub fn bold(self, text: impl Display) -> String {
        self.wrap("1", text)
    }
}

/// Where and how this run prints.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
    pub verbose: bool,
    color: Color,
}

impl Output {
    pub fn new(json: bool, color: Color, verbose: bool) -> Self {
        Self { json, verbose, color }
    }

    fn paint(self, is_terminal: bool) -> Paint {
        Paint(match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none(),
        })
    }

    pub fn stdout_paint(self) -> Paint {
        self.paint(io::stdout().is_terminal())
    }

    pub fn stderr_paint(self) -> Paint {
        self.paint(io::stderr().is_terminal())
    }

    /// Whether a person can be asked something.
    pub fn is_interactive(self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether a moving progress bar makes sense.
    pub fn shows_progress(self) -> bool {
        !self.json && io::stderr().is_terminal()
    }

    /// One line for people, on stderr.
    pub fn say(self, text: impl Display) {
        // A closed stderr must not stop the work it only tells about.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// A line only `-v` shows.
    pub fn detail(self, text: impl Display) {
        if self.verbose {
            self.say(self.stderr_paint().dim(text));
        }
    }

    pub fn warn(self, text: impl Display) {
        self.say(format!("{} {text}", self.stderr_paint().warn("warning:")));
    }

    /// Text to stdout, with its line end.
    pub fn print(self, text: impl Display) {
        write_stdout(format!("{text}\n").as_bytes());
    }

    /// Bytes to stdout as they are.
    pub fn raw(self, bytes: &[u8]) {
        write_stdout(bytes);
    }

    pub fn value(self, value: &Value) {
        self.print(format_args!("{value:#}"));
    }

    /// One compact value a line, for commands that go on.
    pub fn line(self, value: &Value) {
        self.print(value);
    }

    /// The data of a command: `value` for programs, what `people` makes of it for people.
    pub fn result(self, value: &Value, people: impl FnOnce(Paint) -> String) {
        if self.json {
            self.value(value);
        } else {
            let text = people(self.stdout_paint());
            if !text.is_empty() {
                self.print(text);
            }
        }
    }
}

/// A reader that is gone has seen all it wanted: the command ends as `head` expects of it.
fn write_stdout(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}

/// A table without vertical lines; wraps to the terminal.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.map(str::to_uppercase));
    for row in rows {
        table.add_row(row.map(|cell| printable(&cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// `text` without what a terminal would obey; line ends and tabs stay.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// A field for a table cell: strings bare, absent as `-`, lists joined.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// `1.4 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// The first twelve digits of a digest, which is what people compare.
pub fn short_digest(text: &str) -> String {
    text.strip_prefix("sha256:").unwrap_or(text).chars().take(12).collect()
}

/// `2026-03-01 12:30:05Z` from milliseconds since 1970.
pub fn time(ms: i64) -> String {
    let (days, second) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1000);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// A time cell from a field that holds milliseconds; anything else is shown as it is.
pub fn time_cell(value: &Value) -> String {
    value.as_i64().map_or_else(|| cell(value), time)
}

/// Milliseconds since 1970 from a time as the API writes it: `2026-03-01T12:30:05.123Z`.
pub fn time_ms(value: &Value) -> Option<i64> {
    Some(value.as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

/// How long something took, as people say it: `12 ms`, `1.2 s`, `2 m 05 s`, `3 h 20 m`.
pub fn took(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        // Counted in tenths, so that nothing is rounded up into the next unit.
        1..60 => format!("{seconds}.{} s", ms % 1000 / 100),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `text` as one line of at most so many letters, for places where it must not take more.
pub fn one_line(text: &str, most: usize) -> String {
    let line = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Day of the Gregorian calendar from days since 1970-01-01, counted in eras of 400 years that start in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_header_and_no_trailing_blanks() {
        let text = table(["path", "size"], [["acme/a".to_owned(), "1".to_owned()]]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("PATH") && lines[0].ends_with("SIZE"));
        assert!(lines[1].starts_with("acme/a") && lines[1].ends_with('1'));
    }

    #[test]
    fn a_terminal_never_sees_an_escape_sequence_of_a_plugin() {
        assert_eq!(printable("a\x1b[2Jb\r\nc\u{9b}d"), "a[2Jb\ncd");
        assert!(!table(["x"], [["\x1b]0;title\x07".to_owned()]]).contains('\x1b'));
    }

    #[test]
    fn times_sizes_and_digests_read_well() {
        assert_eq!(time(0), "1970-01-01 00:00:00Z");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(time(1_772_368_205_123), "2026-03-01 12:30:05Z");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1_468_006), "1.4 MiB");
        assert_eq!(short_digest("sha256:0123456789abcdef"), "0123456789ab");
    }

    #[test]
    fn durations_read_well_and_are_never_rounded_up() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (125_000, "2 m 05 s"),
            (12_000_000, "3 h 20 m"),
        ] {
            assert_eq!(took(ms), text);
        }
        assert_eq!(time_ms(&Value::from("1970-01-01T00:00:01.500Z")), Some(1_500));
        assert_eq!((time_ms(&Value::Null), time_ms(&Value::from("yesterday"))), (None, None));
    }

    #[test]
    fn a_long_text_becomes_one_short_line() {
        assert_eq!(one_line("a\n  b\tc\x1b", 20), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("äöüß", 4), "äöüß");
    }

    #[test]
    fn colour_is_off_unless_asked_for() {
        assert_eq!(Output::new(false, Color::Never, false).stdout_paint().good("x"), "x");
        assert_eq!(Output::new(false, Color::Always, false).stdout_paint().good("x"), "\x1b[32mx\x1b[0m");
    }
}
