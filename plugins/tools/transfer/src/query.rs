//! A statement of the step's own, to be run for every row.
//!
//! It has its values by name (`:id`, `%(id)s`) or by place (`$1`, `%s`, in SQLite `?`). Here each becomes a column of the
//! row, so that the statements of many rows, which have the same names in them, can be one script. Quotes and comments are
//! passed over by the rules the host splits scripts by.

use noetl_sdk::Failure;

use crate::names::Dialect;

#[derive(Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// A value of the row: which of its columns.
    Value(usize),
}

#[derive(Debug, PartialEq)]
pub struct Query {
    pub pieces: Vec<Piece>,
    /// No fewer than there are.
    pub statements: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Text(&'a str),
    /// A string, a quoted name or a comment.
    Quoted(&'a str),
    /// As it is written, and the name in it.
    Name(&'a str, &'a str),
    /// `$3` or `?3`
    Number(usize),
    /// `%s` or `?`: the next one.
    Place(&'a str),
    /// `%%`
    Doubled,
    Semicolon,
    Open,
    Close,
}

impl Query {
    /// `columns` are the names of a row's values; the first `places` of them are those that are counted.
    pub fn read(text: &str, dialect: Dialect, columns: &[&str], places: usize) -> Result<Self, Failure> {
        let tokens = tokens(text, dialect);
        let counts = tokens.iter().any(|token| matches!(token, Token::Number(_)));
        let percent = !counts && tokens.contains(&Token::Place("%s"));
        let (mut pieces, mut plain) = (Vec::new(), String::new());
        let (mut next, mut brackets, mut statements) = (0, 0_usize, 1);
        for token in tokens {
            let piece = match token {
                Token::Text(text) => Piece::Text(text.to_owned()),
                Token::Quoted(text) if percent => Piece::Text(text.replace("%%", "%")),
                Token::Quoted(text) => Piece::Text(text.to_owned()),
                Token::Doubled => Piece::Text(if percent { "%" } else { "%%" }.to_owned()),
                Token::Semicolon => {
                    statements += 1;
                    Piece::Text(";".to_owned())
                }
                Token::Open => {
                    brackets += 1;
                    Piece::Text("[".to_owned())
                }
                Token::Close => {
                    brackets = brackets.saturating_sub(1);
                    Piece::Text("]".to_owned())
                }
                Token::Place("%s") if !percent => Piece::Text("%s".to_owned()),
                Token::Place(_) => {
                    next += 1;
                    Piece::Value(place(next, places)?)
                }
                Token::Number(number) => Piece::Value(place(number, places)?),
                Token::Name(written, name) => {
                    match columns.iter().position(|column| column.trim_matches('"') == name) {
                        Some(column) => Piece::Value(column),
                        // A slice: `a[1:n]`.
                        None if brackets > 0 => Piece::Text(written.to_owned()),
                        None => {
                            let known: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
                            return Err(Failure::invalid_input(format_args!(
                                "`target.query` uses `{written}`, and no row has that; rows have {}",
                                known.join(", ")
                            )));
                        }
                    }
                }
            };
            match piece {
                Piece::Text(text) => plain.push_str(&text),
                value => pieces.extend([Piece::Text(std::mem::take(&mut plain)), value]),
            }
        }
        pieces.push(Piece::Text(plain));
        Ok(Self { pieces, statements })
    }

    /// Bytes of its text, and how many values it has.
    pub fn size(&self) -> (usize, usize) {
        self.pieces.iter().fold((0, 0), |(bytes, values), piece| match piece {
            Piece::Text(text) => (bytes + text.len(), values),
            Piece::Value(_) => (bytes, values + 1),
        })
    }
}

/// Counted from 1.
fn place(number: usize, places: usize) -> Result<usize, Failure> {
    number.checked_sub(1).filter(|place| *place < places).ok_or_else(|| {
        Failure::invalid_input(format_args!(
            "`target.query` uses value {number}, and a row has {places}; name them with `mapping`, in that order"
        ))
    })
}

fn tokens(text: &str, dialect: Dialect) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (token, length) = next(rest, dialect);
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn next(rest: &str, dialect: Dialect) -> (Token<'_>, usize) {
    let bytes = rest.as_bytes();
    let postgres = dialect == Dialect::Postgres;
    let text = |length: usize| (Token::Text(&rest[..length]), length);
    let quoted = |length: usize| (Token::Quoted(&rest[..length]), length);
    let word = |from: usize| rest[from..].find(|letter| !is_word(letter)).map_or(rest.len(), |length| from + length);
    match bytes {
        [b'-', b'-', ..] => quoted(rest.find('\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => quoted(comment(bytes, postgres)),
        [quote @ (b'\'' | b'"'), ..] => quoted(closed(bytes, 1, *quote, false)),
        [b'e' | b'E', b'\'', ..] if postgres => quoted(closed(bytes, 2, b'\'', true)),
        [b'$', digit, ..] if digit.is_ascii_digit() => number(rest),
        [b'$', ..] if postgres => dollar(rest).map_or_else(|| text(1), quoted),
        [b':', b':' | b'=', ..] => text(2),
        [b':', ..] if rest[1..].starts_with(|letter: char| is_word(letter) && !letter.is_ascii_digit()) => {
            let end = word(1);
            (Token::Name(&rest[..end], &rest[1..end]), end)
        }
        [b'%', b'(', ..] => {
            let end = word(2);
            match rest[end..].starts_with(")s") {
                true => (Token::Name(&rest[..end + 2], &rest[2..end]), end + 2),
                false => text(1),
            }
        }
        [b'%', b'%', ..] => (Token::Doubled, 2),
        [b'%', b's', ..] if word(1) == 2 => (Token::Place("%s"), 2),
        [b'?', digit, ..] if !postgres && digit.is_ascii_digit() => number(rest),
        [b'?', ..] if !postgres => (Token::Place("?"), 1),
        [b';', ..] => (Token::Semicolon, 1),
        [b'[', ..] => (Token::Open, 1),
        [b']', ..] => (Token::Close, 1),
        _ => match rest.chars().next() {
            // A `$` inside of a word is part of it.
            Some(first) if is_word(first) => {
                text(rest.find(|letter| !is_word(letter) && letter != '$').unwrap_or(rest.len()))
            }
            first => text(first.map_or(rest.len(), char::len_utf8)),
        },
    }
}

fn number(rest: &str) -> (Token<'_>, usize) {
    let end = 1 + rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    (Token::Number(rest[1..end].parse().unwrap_or(usize::MAX)), end)
}

/// Comments nest in PostgreSQL, and do not in SQLite.
fn comment(bytes: &[u8], nests: bool) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" if depth == 0 || nests => (depth, at) = (depth + 1, at + 2),
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

/// The end of what is quoted; a doubled quote does not end it.
fn closed(bytes: &[u8], from: usize, quote: u8, escapes: bool) -> usize {
    let mut at = from;
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

/// The length of `$tag$ ... $tag$`.
fn dollar(rest: &str) -> Option<usize> {
    let end = 1 + rest[1..].find(|letter| !is_word(letter))?;
    let tag = rest[end..].starts_with('$').then(|| &rest[..=end])?;
    Some(rest[tag.len()..].find(tag).map_or(rest.len(), |inner| tag.len() + inner + tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statement with the numbers of columns in braces.
    fn shown(text: &str, dialect: Dialect) -> String {
        let query = Query::read(text, dialect, &["id", "\"userId\"", "title"], 2).unwrap_or_else(|why| panic!("{why}"));
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(column) => format!("{{{column}}}"),
        };
        query.pieces.iter().map(piece).collect()
    }

    #[test]
    fn values_are_found_by_name_and_by_place() {
        for (text, expected) in [
            ("insert into t values (:id, :userId::int, %(title)s)", "insert into t values ({0}, {1}::int, {2})"),
            ("values ($2,$1,$2)", "values ({1},{0},{1})"),
            ("values (%s, %s) -- 5%%", "values ({0}, {1}) -- 5%"),
            ("select a %% 2, '10%%', %s", "select a % 2, '10%', {0}"),
            (
                "select ':id', \":id\", E'\\':id', $$:id$$, $a$ :id $a$ -- :id",
                "select ':id', \":id\", E'\\':id', $$:id$$, $a$ :id $a$ -- :id",
            ),
            (
                "select /* :id /* :id */ :id */ :id, v[1:n], 'it''s :id'",
                "select /* :id /* :id */ :id */ {0}, v[1:n], 'it''s :id'",
            ),
            ("select j ? 'a', x := :id, 5 % 3, a$1", "select j ? 'a', x := {0}, 5 % 3, a$1"),
            ("select 'ä:id', :id", "select 'ä:id', {0}"),
        ] {
            assert_eq!(shown(text, Dialect::Postgres), expected, "{text}");
        }
        assert_eq!(shown("values (?, '?', ?)", Dialect::Sqlite), "values ({0}, '?', {1})");
        assert_eq!(shown("values (?2, $1)", Dialect::Sqlite), "values ({1}, {0})");
    }

    #[test]
    fn what_no_row_has_is_told() {
        for (text, says) in [("values (:idd)", "`:idd`"), ("values ($3)", "value 3"), ("values ($0)", "value 0")] {
            let wrong = Query::read(text, Dialect::Postgres, &["id", "n"], 2).expect_err(text);
            assert!(wrong.code == "invalid_input" && wrong.message.contains(says), "{wrong}");
        }
    }

    #[test]
    fn statements_are_counted() {
        let query = Query::read("a :id; b ':;'", Dialect::Postgres, &["id"], 1).expect("a query");
        assert_eq!((query.statements, query.size()), (2, (10, 1)));
    }
}
