//! Parts of long values.
//!
//! An error quotes the first letters of a token, a log cuts a line, a writer of base64 breaks it: what is left is a part of
//! the value. So of a long one parts are looked for as well. A part must not be text that others write too, or their data
//! would be masked with it: `-----BEGIN PRIVATE KEY-----`, the names and addresses in the file of a service account, and the
//! first two parts of a token of three, which many tokens of one issuer share. What is made by chance has letters and digits in
//! one run.

/// Longer values are looked for in parts of this size only, so that what looks for them stays small.
const LARGE: usize = 4 << 10;
const SMALL: usize = 24;
/// Shorter values are looked for as a whole.
const SHORTEST: usize = 2 * SMALL;
/// How much of a value has small parts.
const MOST: usize = 4 << 10;

/// A value, or its parts when it is very long.
pub fn large(value: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), value);
    while rest.len() > 2 * LARGE {
        let (part, after) = rest.split_at(rest.floor_char_boundary(LARGE));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// The small parts of a long value that nobody else writes by chance.
pub fn small(value: &str) -> Vec<&str> {
    if value.len() <= SHORTEST {
        return Vec::new();
    }
    let value = &value[..value.floor_char_boundary(MOST)];
    let runs = value.split(|letter: char| !is_of_a_key(letter));
    let runs = runs.filter(|run| run.len() >= SMALL && !run.starts_with("eyJ"));
    // Runs are ASCII. The last part ends with the run, whatever it shares with the one before.
    let starts = |run: &str| (0..run.len() - SMALL).step_by(SMALL).chain([run.len() - SMALL]).collect::<Vec<_>>();
    let parts = runs.flat_map(|run| starts(run).into_iter().map(move |start| &run[start..start + SMALL]));
    parts.filter(|part| is_made_by_chance(part)).collect()
}

fn is_of_a_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '_' | '-')
}

fn is_made_by_chance(part: &str) -> bool {
    let count = |is: fn(&u8) -> bool| part.bytes().filter(is).count();
    let (digits, small, capital) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { digits >= 4 && small + capital >= 2 } else { digits >= 1 && small >= 3 && capital >= 3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_too_is_no_part() {
        for text in [
            "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n and some words more",
            r#"{"type": "service_account", "auth_uri": "https://accounts.google.com/o/oauth2/auth", "universe": "x"}"#,
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLyIsImF1ZCI6ImFwaSJ9.short",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "short-A1b2C3d4E5f6A1b2C3d4E5f6",
        ] {
            assert_eq!(small(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn parts_reach_from_the_first_letter_to_the_last() {
        let key = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0U1v2W3x4Y5z6";
        assert_eq!(small(key), [&key[..24], &key[24..48], &key[28..]]);
        let signed = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{key}");
        assert_eq!(small(&signed).len(), 3, "of the signature");
        assert!(small(&"a1".repeat(LARGE)).len() <= MOST / SMALL + 1);
        assert_eq!(large(&"ü".repeat(LARGE)).len(), 1);
        assert_eq!(large(&"ü".repeat(2 * LARGE)).concat(), "ü".repeat(2 * LARGE));
    }
}
