//! Named parameters: `:name` and `%(name)s` become `$1`, `$2`, ...
//!
//! Only outside of quotes and comments, and never where a colon means something else: a cast (`::`), an assignment (`:=`),
//! or a slice (`a[1:n]`) whose name is no parameter. A name that is used and not given is an error of the script's author,
//! told before anything is sent. A script with a `%(name)s` anywhere is written for Python's drivers, and writes `%%` for
//! `%`, in quotes too, as one with `%s` does.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::script::{Token, tokens};

/// The statement with numbers for names, and the values in the order of the numbers. `doubled`: whether its script
/// [`doubles_percent`].
pub(super) fn numbered<'v>(
    statement: &str,
    values: &'v Map<String, Value>,
    doubled: bool,
) -> Result<(String, Vec<&'v Value>), String> {
    let mut out = String::with_capacity(statement.len());
    let mut used: Vec<&'v Value> = Vec::new();
    // A statement that inserts many rows has tens of thousands of names.
    let mut numbers: HashMap<&'v str, usize> = HashMap::new();
    let (mut pieces, mut brackets) = (tokens(statement), 0_usize);
    while let Some((token, text)) = pieces.next() {
        let mut ahead = pieces.clone();
        if doubled && token == Token::Quoted {
            out.push_str(&text.replace("%%", "%"));
            continue;
        }
        if doubled && token == Token::Percent && is_percent(ahead.clone().next()) {
            out.push_str(text);
            pieces.next();
            continue;
        }
        // The name, and how many tokens it takes besides this one.
        let found = match token {
            Token::OpenBracket => {
                brackets += 1;
                None
            }
            Token::CloseBracket => {
                brackets = brackets.saturating_sub(1);
                None
            }
            Token::Colon => match ahead.next() {
                Some((Token::Word, name)) if !name.starts_with(|first: char| first.is_ascii_digit()) => Some((name, 1)),
                _ => None,
            },
            Token::Percent => in_python_style(ahead).map(|name| (name, 4)),
            Token::Parameter => {
                return Err(format!("`{text}` stands for a value of a list, and the parameters are an object"));
            }
            _ => None,
        };
        match found {
            Some((name, taken)) => match values.get_key_value(name) {
                Some((name, value)) => {
                    let number = *numbers.entry(name.as_str()).or_insert_with(|| {
                        used.push(value);
                        used.len()
                    });
                    out.push_str(&format!("${number}"));
                    pieces.by_ref().take(taken).for_each(drop);
                }
                None if brackets > 0 => out.push_str(text),
                None => return Err(format!("the parameter `{name}` is used and not given")),
            },
            None => out.push_str(text),
        }
    }
    Ok((out, used))
}

/// Whether `%%` means `%` in a script: it has a `%(name)s`, whichever of its statements that is in.
pub(super) fn doubles_percent(script: &str) -> bool {
    let mut pieces = tokens(script);
    while let Some((token, _)) = pieces.next() {
        if token != Token::Percent {
            continue;
        }
        if is_percent(pieces.clone().next()) {
            pieces.next();
        } else if in_python_style(pieces.clone()).is_some() {
            return true;
        }
    }
    false
}

fn is_percent(piece: Option<(Token, &str)>) -> bool {
    piece.is_some_and(|(token, _)| token == Token::Percent)
}

/// The name in what follows a percent sign: `(name)s`.
fn in_python_style<'s>(mut ahead: impl Iterator<Item = (Token, &'s str)>) -> Option<&'s str> {
    ahead.next().filter(|(token, _)| *token == Token::Open)?;
    let (_, name) = ahead.next().filter(|(token, _)| *token == Token::Word)?;
    ahead.next().filter(|(token, _)| *token == Token::Close)?;
    ahead.next().filter(|next| *next == (Token::Word, "s"))?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn given(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn names_become_numbers_in_the_order_of_their_first_use() {
        let values = given(json!({"a": 1, "b": "x"}));
        for (statement, expected, order) in [
            ("select :a", "select $1", vec![1]),
            ("select :b, :a, :b", "select $1, $2, $1", vec![0, 1]),
            ("select %(a)s, %(b)s", "select $1, $2", vec![1, 0]),
            ("select :a::int", "select $1::int", vec![1]),
            ("select x::a, ':a', $$:a$$ -- :a\n/* :a */", "select x::a, ':a', $$:a$$ -- :a\n/* :a */", vec![]),
            ("select v[1:m]", "select v[1:m]", vec![]),
            ("select f(x := :a)", "select f(x := $1)", vec![1]),
            ("select 5 % 3, '%(a)s', 7 % (2)", "select 5 % 3, '%(a)s', 7 % (2)", vec![]),
            ("select '12:30'::time, \"a:b\"", "select '12:30'::time, \"a:b\"", vec![]),
            ("select :a, 'x%%', 5 %% 2", "select $1, 'x%%', 5 %% 2", vec![1]),
            ("select %(a)s, 'x%%', 5 %% 2 -- %%\n", "select $1, 'x%', 5 % 2 -- %%\n", vec![1]),
            ("select %(a)s, 7 %%%(b)s, 'y%'", "select $1, 7 %$2, 'y%'", vec![1, 0]),
        ] {
            let (text, used) = numbered(statement, &values, doubles_percent(statement)).expect("all given");
            let expected_values: Vec<&Value> =
                order.iter().map(|which| if *which == 1 { &values["a"] } else { &values["b"] }).collect();
            assert_eq!((text.as_str(), used), (expected, expected_values), "{statement}");
        }
    }

    #[test]
    fn a_name_that_is_not_given_is_told() {
        let refused = numbered("select :missing", &given(json!({"a": 1})), false).expect_err("missing");
        assert!(refused.contains("`missing`"), "{refused}");
        assert!(numbered("select $1, :a", &given(json!({"a": 1})), false).is_err(), "two ways at once");
    }

    #[test]
    fn one_name_in_pythons_style_makes_it_the_style_of_the_script() {
        for (script, expected) in [
            ("select %(a)s", true),
            ("select 'x%%'; select 1, %(a)s", true),
            ("select 5 %%%(a)s", true),
            ("select 5 %%(a)s", false),
            ("select '%(a)s', 5 % (a), :a -- %(a)s", false),
            ("select :a, 'x%%'", false),
        ] {
            assert_eq!(doubles_percent(script), expected, "{script}");
        }
    }

    proptest! {
        #[test]
        fn nothing_changes_where_no_name_is(text in "[ -~]{0,60}") {
            let statement = format!("'{}' {}", text.replace('\'', "''"), text.replace([':', '%', '$'], ""));
            let none = Map::new();
            let (rewritten, used) = numbered(&statement, &none, false).expect("no names");
            prop_assert_eq!((rewritten, used.len()), (statement, 0));
        }
    }
}
