//! A template's text, taken apart into text and code.
//!
//! The engine has a lexer of its own; this one exists because a template is evaluated by its expressions (see
//! [`Template`](super::Template)) and because references are found in code and not in text. It follows the engine's
//! rules for where code ends: at the closing braces outside of texts and brackets. An opening `{#` that is never closed
//! is text, because shell scripts are full of it.

use super::error::Cause;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    /// The inside of `{{ }}`, and how many lines come before it.
    Expression(&'a str, usize),
    /// The inside of `{% %}`.
    Statement(&'a str),
}

pub(super) fn split(text: &str) -> Result<Vec<Part<'_>>, (usize, Cause)> {
    let mut splitter = Splitter { text, at: 0, literal_from: 0, trim_next: false, parts: Vec::new() };
    splitter.run()?;
    Ok(splitter.parts)
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    /// Where the text before `at` begins that is not yet a part.
    literal_from: usize,
    trim_next: bool,
    parts: Vec<Part<'a>>,
}

impl<'a> Splitter<'a> {
    fn run(&mut self) -> Result<(), (usize, Cause)> {
        let no_comment_after = self.text.rfind("#}").unwrap_or(0);
        while let Some(found) = self.text[self.at..].find('{') {
            let start = self.at + found;
            match self.text.as_bytes().get(start + 1) {
                Some(b'{') => self.expression(start)?,
                Some(b'%') => self.statement(start)?,
                Some(b'#') if start + 2 <= no_comment_after => self.comment(start),
                _ => self.at = start + 1,
            }
        }
        self.literal(self.text.len(), false);
        Ok(())
    }

    fn expression(&mut self, start: usize) -> Result<(), (usize, Cause)> {
        let lines = self.lines_before(start);
        let code = self.code(start, "}}")?;
        self.parts.push(Part::Expression(code, lines));
        Ok(())
    }

    fn statement(&mut self, start: usize) -> Result<(), (usize, Cause)> {
        let code = self.code(start, "%}")?;
        if code.trim() != "raw" {
            self.parts.push(Part::Statement(code));
            return Ok(());
        }
        let unclosed = || (self.lines_before(start) + 1, Cause::Syntax("`raw` is never closed by `endraw`".to_owned()));
        let mut search = self.at;
        loop {
            let open = search + self.text[search..].find("{%").ok_or_else(unclosed)?;
            let rest = self.text[open + 2..].trim_start_matches(['-', '+']).trim_start();
            if rest
                .strip_prefix("endraw")
                .is_some_and(|rest| rest.trim_start().trim_start_matches(['-', '+']).starts_with("%}"))
            {
                self.code(open, "%}")?;
                return Ok(());
            }
            search = open + 2;
        }
    }

    fn comment(&mut self, start: usize) {
        let trim = self.text.as_bytes().get(start + 2) == Some(&b'-');
        self.literal(start, trim);
        let end = self.text[start + 2..].find("#}").map_or(self.text.len(), |found| start + 2 + found + 2);
        self.trim_next = self.text[..end].ends_with("-#}");
        (self.at, self.literal_from) = (end, end);
    }

    /// The code from an opening mark to its closing one; the text before it becomes a part.
    fn code(&mut self, start: usize, close: &str) -> Result<&'a str, (usize, Cause)> {
        let mut from = start + 2;
        let mark = self.text.as_bytes().get(from).copied();
        self.literal(start, mark == Some(b'-'));
        if matches!(mark, Some(b'-' | b'+')) {
            from += 1;
        }
        let length = code_length(&self.text[from..], close).ok_or_else(|| {
            let cause = format!("`{}` is never closed by `{close}`", &self.text[start..start + 2]);
            (self.lines_before(start) + 1, Cause::Syntax(cause))
        })?;
        let code = &self.text[from..from + length];
        self.at = from + length + close.len();
        self.literal_from = self.at;
        self.trim_next = code.ends_with('-');
        Ok(code.strip_suffix(['-', '+']).unwrap_or(code))
    }

    fn literal(&mut self, end: usize, trim_end: bool) {
        let mut text = &self.text[self.literal_from..end];
        if std::mem::take(&mut self.trim_next) {
            text = text.trim_start();
        }
        if trim_end {
            text = text.trim_end();
        }
        if !text.is_empty() {
            self.parts.push(Part::Text(text));
        }
        self.literal_from = end;
    }

    fn lines_before(&self, at: usize) -> usize {
        self.text[..at].bytes().filter(|byte| *byte == b'\n').count()
    }
}

/// Bytes of code before the closing mark that is outside of texts and brackets.
fn code_length(code: &str, close: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    let mut open = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        if open == 0 && bytes[at..].starts_with(close.as_bytes()) {
            return Some(at);
        }
        match bytes[at] {
            quote @ (b'"' | b'\'') => at += quoted_length(&bytes[at + 1..], quote)? + 1,
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Bytes of a quoted text before its closing quote.
pub(super) fn quoted_length(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            byte if byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
}
