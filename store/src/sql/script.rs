//! Where the statements of a script end, by the rules of PostgreSQL's own scanner.
//!
//! A semicolon ends a statement unless it is inside quotes (`'..'`, `E'..'`, `".."`, `$tag$..$tag$`), a comment (`--`, or
//! `/* */`, which nests), parentheses, or the body of a function in standard SQL (`BEGIN ATOMIC ... END`). What is not
//! closed goes on to the end of the script: the server then says what is wrong with it.
//!
//! Invariant: the pieces and the semicolons between them are the script, byte for byte.

/// A piece of SQL that is read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Space,
    Comment,
    /// A string or a quoted name.
    Quoted,
    /// A key word, a name or a number.
    Word,
    /// `$1`
    Parameter,
    Semicolon,
    Open,
    Close,
    OpenBracket,
    CloseBracket,
    /// `::`
    Cast,
    /// `:` and `%` by themselves: named parameters begin with them.
    Colon,
    Percent,
    Other,
}

/// Tokens with their text; put together they are the text. They are read one at a time and never collected, since a list of
/// them is many times as large as the text; a clone looks ahead.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (Token, &str)> + Clone {
    let mut rest = text;
    let mut before = Token::Space;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (token, length) = next(rest, before);
        let (this, after) = rest.split_at(length);
        rest = after;
        before = token;
        Some((token, this))
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || !character.is_ascii()
}

fn next(text: &str, before: Token) -> (Token, usize) {
    let bytes = text.as_bytes();
    let second = bytes.get(1).copied();
    let while_is = |wanted: fn(char) -> bool| text.find(|character| !wanted(character)).unwrap_or(text.len());
    match bytes[0] {
        b'-' if second == Some(b'-') => (Token::Comment, text.find('\n').unwrap_or(text.len())),
        b'/' if second == Some(b'*') => (Token::Comment, block_comment(bytes)),
        b'\'' => (Token::Quoted, quoted(bytes, 0, b'\'', false)),
        b'"' => (Token::Quoted, quoted(bytes, 0, b'"', false)),
        b'e' | b'E' if second == Some(b'\'') => (Token::Quoted, quoted(bytes, 1, b'\'', true)),
        // After a word it is part of a name such as `a$b`, which the word has taken already.
        b'$' if before != Token::Word => dollar(text),
        b';' => (Token::Semicolon, 1),
        b'(' => (Token::Open, 1),
        b')' => (Token::Close, 1),
        b'[' => (Token::OpenBracket, 1),
        b']' => (Token::CloseBracket, 1),
        b':' if second == Some(b':') => (Token::Cast, 2),
        b':' if second == Some(b'=') => (Token::Other, 2),
        b':' => (Token::Colon, 1),
        b'%' => (Token::Percent, 1),
        first if first.is_ascii_whitespace() => (Token::Space, while_is(|character| character.is_ascii_whitespace())),
        first if is_word(first as char) || !first.is_ascii() => {
            (Token::Word, while_is(|character| is_word(character) || character == '$'))
        }
        _ => (Token::Other, 1),
    }
}

/// Comments nest, as the standard says.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of what is quoted from `start` on. A doubled quote is two pieces, which comes to the same.
fn quoted(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// `$1`, or `$tag$ ... $tag$`.
fn dollar(text: &str) -> (Token, usize) {
    let inner = &text[1..];
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return (Token::Parameter, 1 + digits);
    }
    let tag = inner.find(|character| !is_word(character)).unwrap_or(inner.len());
    if inner.as_bytes().get(tag) != Some(&b'$') {
        return (Token::Other, 1);
    }
    let quote = &text[..tag + 2];
    let body = &text[quote.len()..];
    (Token::Quoted, body.find(quote).map_or(text.len(), |end| quote.len() + end + quote.len()))
}

/// The pieces of a script between the semicolons that end statements; pieces that say nothing are among them.
fn pieces(script: &str) -> impl Iterator<Item = &str> {
    let mut tokens = tokens(script);
    let (mut start, mut at, mut is_over) = (0, 0, false);
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let (mut parentheses, mut body) = (0_usize, Body::default());
        for (token, text) in tokens.by_ref() {
            let before = at;
            at += text.len();
            match token {
                Token::Open => parentheses += 1,
                Token::Close => parentheses = parentheses.saturating_sub(1),
                Token::Word => body.word(text),
                Token::Semicolon if parentheses == 0 && !body.is_open() => {
                    let piece = &script[start..before];
                    start = at;
                    return Some(piece);
                }
                _ => {}
            }
        }
        is_over = true;
        Some(&script[start..])
    })
}

/// The statements of a script, without what is empty.
pub fn statements(script: &str) -> impl Iterator<Item = &str> {
    pieces(script).filter(|piece| !is_empty(piece)).map(str::trim)
}

/// Whether there is nothing but space and comments.
pub fn is_empty(statement: &str) -> bool {
    tokens(statement).all(|(token, _)| matches!(token, Token::Space | Token::Comment))
}

/// Follows the body of a function in standard SQL.
#[derive(Default)]
struct Body {
    words: u8,
    is_routine: bool,
    depth: u32,
    begun: bool,
}

impl Body {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn word(&mut self, word: &str) {
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted);
        // CREATE [OR REPLACE] FUNCTION
        if self.words == 0 && !is("create") {
            self.words = u8::MAX;
        }
        if self.words < 4 {
            self.is_routine |= is("function") || is("procedure");
            self.words += 1;
        }
        if !self.is_routine {
            return;
        }
        match self.depth {
            0 if self.begun && is("atomic") => self.depth = 1,
            0 => self.begun = is("begin"),
            // Inside, `CASE` has an `END` of its own.
            _ if is("begin") || is("case") => self.depth += 1,
            _ if is("end") => self.depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statements_end_where_the_server_says_they_do() {
        for (script, expected) in [
            ("", vec![]),
            (" ; ;-- nothing; here\n;/* nor; here */", vec![]),
            ("select 1", vec!["select 1"]),
            ("select 1;;select 2;", vec!["select 1", "select 2"]),
            ("select ';', 'it''s;'; select 2", vec!["select ';', 'it''s;'", "select 2"]),
            (r"select E'\';', e'\\'; select 2", vec![r"select E'\';', e'\\'", "select 2"]),
            (r"select '\'; select 2", vec![r"select '\'", "select 2"]),
            ("select \"a;\"\"b\"; select 2", vec!["select \"a;\"\"b\"", "select 2"]),
            ("select $$a;'b$$, $t$;$$;$t$; select 2", vec!["select $$a;'b$$, $t$;$$;$t$", "select 2"]),
            ("select a$b$c from t; select $b$;$b$", vec!["select a$b$c from t", "select $b$;$b$"]),
            ("select $1; select $2::int", vec!["select $1", "select $2::int"]),
            (
                "-- it's; a comment\nselect 1; -- don't\nselect 2",
                vec!["-- it's; a comment\nselect 1", "-- don't\nselect 2"],
            ),
            (
                "/* a /* nested; */ 'quote; */ select 1; select 2",
                vec!["/* a /* nested; */ 'quote; */ select 1", "select 2"],
            ),
            (
                "create rule r as on insert to t do (select 1; select 2); select 3",
                vec!["create rule r as on insert to t do (select 1; select 2)", "select 3"],
            ),
            (
                "create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3",
                vec![
                    "create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end",
                    "select 3",
                ],
            ),
            ("begin; update t set a = 1; end; select 1", vec!["begin", "update t set a = 1", "end", "select 1"]),
            ("select 'open; select 2", vec!["select 'open; select 2"]),
            ("select $$open; select 2", vec!["select $$open; select 2"]),
            (
                "do $do$ begin perform 1; end $do$; select 'é;ü'",
                vec!["do $do$ begin perform 1; end $do$", "select 'é;ü'"],
            ),
        ] {
            assert_eq!(statements(script).collect::<Vec<_>>(), expected, "{script}");
        }
    }

    fn fragment() -> impl Strategy<Value = String> {
        let fixed = [
            "select",
            " ",
            "\n",
            ";",
            "'",
            "''",
            "\"",
            "$$",
            "$a$",
            "$1",
            "--",
            "/*",
            "*/",
            "E'",
            "\\",
            "(",
            ")",
            "::",
            ":a",
            "%(a)s",
            "begin",
            "atomic",
            "end",
            "create function",
            "é",
            "[",
            "]",
            "x",
        ];
        prop_oneof![prop::sample::select(fixed.map(str::to_owned).to_vec()), "[ -~]{0,3}"]
    }

    proptest! {
        #[test]
        fn pieces_and_semicolons_are_the_script(parts in prop::collection::vec(fragment(), 0..30)) {
            let script = parts.concat();
            prop_assert_eq!(tokens(&script).map(|(_, text)| text).collect::<String>(), script.clone());
            prop_assert_eq!(pieces(&script).collect::<Vec<_>>().join(";"), script);
        }

        #[test]
        fn what_is_quoted_is_never_cut(inner in "[ -~]{0,20}", tag in "[a-z]{0,3}") {
            let quoted = [
                format!("'{}'", inner.replace('\'', "''")),
                format!("\"{}\"", inner.replace('"', "\"\"")),
                format!("${tag}${}${tag}$", inner.replace('$', "")),
                format!("E'{}'", inner.replace('\\', "\\\\").replace('\'', "\\'")),
                format!("/*{}*/", inner.replace(['/', '*'], "")),
                format!("--{inner}\n"),
            ];
            for quoted in quoted {
                let script = format!("select 1 {quoted}x; select 2");
                let [first, second] = statements(&script).collect::<Vec<_>>()[..] else { panic!("{script}") };
                prop_assert_eq!(first, format!("select 1 {quoted}x"));
                prop_assert_eq!(second, "select 2");
            }
        }
    }
}
