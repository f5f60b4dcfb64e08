//! Parameters by their place: `%s`, as scripts for Python's drivers are written, becomes `$1`, `$2`, ...
//!
//! Only where a list of values is given and the script has no `$1` of its own. The places are counted through the whole
//! script, since that is how its author has put the list together. A script in this style writes `%%` for `%`, in quotes
//! too.
//!
//! A list that a script does not use up was put together for another script, and running this one would put values where
//! they do not belong: it is refused, before anything is done, by every database ([`check`]).

use super::script::{Token, tokens};

/// The script with numbers for places; unchanged if it has none.
pub fn numbered(script: &str) -> String {
    if !is_in_this_style(script) {
        return script.to_owned();
    }
    let mut out = String::with_capacity(script.len());
    let (mut pieces, mut before, mut number) = (tokens(script), Token::Space, 0_usize);
    while let Some((token, text)) = pieces.next() {
        let next = if token == Token::Percent { pieces.clone().next() } else { None };
        match (token, next) {
            (_, Some((Token::Word, "s"))) if before != Token::Percent => {
                number += 1;
                out.push_str(&format!("${number}"));
                before = Token::Word;
                pieces.next();
            }
            (_, Some((Token::Percent, _))) => {
                out.push('%');
                before = Token::Percent;
                pieces.next();
            }
            (Token::Quoted, _) => {
                out.push_str(&text.replace("%%", "%"));
                before = token;
            }
            _ => {
                out.push_str(text);
                before = token;
            }
        }
    }
    out
}

/// Refuses a list that goes beyond the last place of its script.
pub(super) fn check(places: usize, given: usize) -> Result<(), String> {
    match places {
        _ if given <= places => Ok(()),
        0 => Err(format!("the script has no place for values, and {given} parameters are given")),
        places => Err(format!("the script has {places} places for values, and {given} parameters are given")),
    }
}

/// Whether there is a place and no number.
fn is_in_this_style(script: &str) -> bool {
    // The two tokens before this one: the second half of `%%` begins no place.
    let (mut earlier, mut before, mut has_place) = (Token::Space, Token::Space, false);
    for (token, text) in tokens(script) {
        if token == Token::Parameter {
            return false;
        }
        has_place |= (token, text) == (Token::Word, "s") && before == Token::Percent && earlier != Token::Percent;
        (earlier, before) = (before, token);
    }
    has_place
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
            ("select %s, 7 %%%s", "select $1, 7 %%s"),
            ("", ""),
        ] {
            assert_eq!(numbered(script), expected, "{script}");
        }
    }
}
