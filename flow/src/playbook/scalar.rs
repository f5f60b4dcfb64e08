//! Which value an unquoted word is: the core schema of YAML 1.2, so `yes` and `on` are text, and `0o17` is 15.

use serde_json::{Number, Value as Json};

/// The value of a plain scalar, and why it is only text although it was meant as a number.
pub(super) fn resolve(text: &str) -> (Json, Option<&'static str>) {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return (Json::Null, None),
        "true" | "True" | "TRUE" => return (Json::Bool(true), None),
        "false" | "False" | "FALSE" => return (Json::Bool(false), None),
        ".nan" | ".NaN" | ".NAN" => return (text.into(), Some("is not a number JSON can hold and stays text")),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return (text.into(), Some("is not a number JSON can hold and stays text"));
    }
    if is_digits(unsigned) {
        return integer(text);
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return match u64::from_str_radix(digits, radix) {
                Ok(number) => (number.into(), None),
                Err(_) => (text.into(), Some(TOO_LARGE)),
            };
        }
    }
    if is_float(unsigned) {
        return match text.parse().ok().and_then(Number::from_f64) {
            Some(number) => (Json::Number(number), None),
            None => (text.into(), Some(TOO_LARGE)),
        };
    }
    (text.into(), None)
}

const TOO_LARGE: &str = "is too large for a number and stays text";

fn integer(text: &str) -> (Json, Option<&'static str>) {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = digits.parse::<i64>() {
        return (number.into(), None);
    }
    match digits.parse::<u64>() {
        Ok(number) => (number.into(), None),
        Err(_) => (text.into(), Some(TOO_LARGE)),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `1.5`, `.5`, `1.`, each with or without an exponent; the sign is gone.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent_is_fine =
        exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let mantissa_is_fine = match mantissa.split_once('.') {
        None => is_digits(mantissa),
        Some((whole, "")) => is_digits(whole),
        Some((whole, fraction)) => (whole.is_empty() || is_digits(whole)) && is_digits(fraction),
    };
    mantissa_is_fine && exponent_is_fine
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_what_the_core_schema_says() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("True", json!(true)),
            ("FALSE", json!(false)),
            ("yes", json!("yes")),
            ("on", json!("on")),
            ("7", json!(7)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("007", json!(7)),
            ("0o17", json!(15)),
            ("0xff", json!(255)),
            ("0x", json!("0x")),
            ("18446744073709551615", json!(18446744073709551615_u64)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1.", json!(1.0)),
            ("-1e3", json!(-1000.0)),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("1.2.3", json!("1.2.3")),
            ("2024-01-01", json!("2024-01-01")),
            ("1_000", json!("1_000")),
        ] {
            assert_eq!(resolve(text), (value, None), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_stays_text_and_says_so() {
        for text in
            ["18446744073709551616", "-9223372036854775809", "1e999", ".inf", "-.INF", ".nan", "0xfffffffffffffffff"]
        {
            let (value, why) = resolve(text);
            assert_eq!(value, json!(text));
            assert!(why.is_some(), "{text}");
        }
    }
}
