//! What is wrong with a `plugin.toml`, where, and what to write instead.

use std::fmt;

/// One thing to correct.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Dotted path of the option; none for a file that is not TOML.
    pub key: Option<String>,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Problem {
    /// How it is told of a manifest that stands in another file than `plugin.toml`, with line and column there. What is
    /// wrong may stand nowhere in that file, where part of the manifest was made up for it.
    pub fn in_file(&self, file: &str, place: Option<(usize, usize)>) -> String {
        let place = place.map_or_else(|| file.to_owned(), |(line, column)| format!("{file}:{line}:{column}"));
        match &self.suggestion {
            Some(suggestion) => format!("{place}: {}: {suggestion}", self.message),
            None => format!("{place}: {}", self.message),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_file("plugin.toml", Some((self.line, self.column))))
    }
}

/// Everything that is wrong with one file, in file order. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestErrors(pub Vec<Problem>);

impl fmt::Display for ManifestErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestErrors {}

/// Line and column, both from 1, of a byte offset. An offset outside the text is its end.
pub(super) fn place(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The known word nearest to what was written, when it is near enough to be a slip of the fingers.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|word| (distance(written, word), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Edits (insert, delete, replace) between two words; long input is not compared, as it is no slip.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    if left.len() > 64 || right.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (to_at, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[to_at + 1];
            row[to_at + 1] = replaced.min(diagonal + 1).min(row[to_at] + 1);
        }
    }
    row[right.len()]
}
