//! Parameters by their place: `%s`, as scripts for Python's drivers are written, becomes `$1`, `$2`, ...
//!
//! Only where a list of values is given and the script has no `$1` of its own. The places are counted through the whole
//! script, since that is how its author has put the list together. A script in this style writes `%%` for `%`, in quotes
//! too.

use super::script::{Token, tokens};

/// The script with numbers for places; unchanged if it has none.
pub fn numbered(script: &str) -> String {
    let pieces: Vec<(Token, &str)> = tokens(script).collect();
    let is_place = |at: usize| {
        matches!(pieces.get(at..at + 2), Some([(Token::Percent, _), (Token::Word, "s")]))
            // The second half of `%%`.
            && !(at > 0 && pieces[at - 1].0 == Token::Percent)
    };
    let counts = pieces.iter().any(|(token, _)| *token == Token::Parameter);
    if counts || !(0..pieces.len()).any(is_place) {
        return script.to_owned();
    }
    let mut out = String::with_capacity(script.len());
    let (mut at, mut number) = (0, 0_usize);
    while let Some((token, text)) = pieces.get(at).copied() {
        let doubled = token == Token::Percent && pieces.get(at + 1).is_some_and(|(next, _)| *next == Token::Percent);
        if is_place(at) {
            number += 1;
            out.push_str(&format!("${number}"));
            at += 2;
        } else if doubled {
            out.push('%');
            at += 2;
        } else {
            match token {
                Token::Quoted => out.push_str(&text.replace("%%", "%")),
                _ => out.push_str(text),
            }
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_through_the_script() {
        for (script, expected) in [
            ("select %s, %s", "select $1, $2"),
            ("insert into t values (%s,%s::jsonb); select %s", "insert into t values ($1,$2::jsonb); select $3"),
            ("select %s where a like 'x%%' and b %% 2 = 0", "select $1 where a like 'x%' and b % 2 = 0"),
            ("select '%s', %s -- %s\n", "select '%s', $1 -- %s\n"),
            ("select 5 % s, 5 %%s, 'a%%'", "select 5 % s, 5 %%s, 'a%%'"),
            ("select $1, 5 %s", "select $1, 5 %s"),
            ("select %sum", "select %sum"),
            ("", ""),
        ] {
            assert_eq!(numbered(script), expected, "{script}");
        }
    }
}
