//! What JSON has. Differences are those that `docs/playbooks.md` names under *Numbers*.

use crate::compare::Case;

const BEYOND: &str = "a whole number beyond 64 bits is the text of its digits";
const DIGITS: &str = "a number with a point is a floating point number of 64 bits";
const ZERO: &str = "a negative zero is a floating point number";

/// Levels of the value that is nested; events and calls put a few around it, and readers stop at 128.
const DEEP: usize = 64;

pub fn corpus() -> Vec<Case> {
    let mut cases = numbers();
    cases.extend(texts());
    cases.extend(structures());
    cases
}

fn numbers() -> Vec<Case> {
    let whole = |name, sent: &str| Case::same(name, sent, "int");
    let float = |name, sent: &str| Case::same(name, sent, "float");
    vec![
        whole("v_zero", "0"),
        whole("v_minus_one", "-1"),
        whole("v_beyond_2_53", "9007199254740993"),
        whole("v_below_minus_2_53", "-9007199254740993"),
        whole("v_i64_most", "9223372036854775807"),
        whole("v_i64_least", "-9223372036854775808"),
        whole("v_2_63", "9223372036854775808"),
        whole("v_u64_most", "18446744073709551615"),
        Case::other("v_2_64", "18446744073709551616", "\"18446744073709551616\"", "str", BEYOND),
        Case::other("v_2_100", "1267650600228229401496703205376", "\"1267650600228229401496703205376\"", "str", BEYOND),
        Case::other("v_below_i64", "-9223372036854775809", "\"-9223372036854775809\"", "str", BEYOND),
        Case::other("v_minus_zero", "-0", "-0.0", "float", ZERO),
        float("v_minus_zero_float", "-0.0"),
        float("v_whole_float", "1.0"),
        float("v_tenth", "0.1"),
        float("v_sum", "0.30000000000000004"),
        // A reader that takes a short way with the last digit changes these.
        float("v_last_digit", "248.77816480489122"),
        float("v_last_digit_too", "986.2943312104259"),
        float("v_largest", "1.7976931348623157e308"),
        float("v_least", "5e-324"),
        Case::other("v_price", "12.50", "12.5", "float", DIGITS),
        Case::other("v_many_digits", "0.1234567890123456789012345", "0.12345678901234568", "float", DIGITS),
    ]
}

fn texts() -> Vec<Case> {
    [
        ("v_empty", r#""""#),
        ("v_blank", r#"" ""#),
        ("v_lines", r#""a\r\n\tb\u2028c\n""#),
        ("v_quotes", r#""\"'`\\ \\n {} [] <a> & %s $1 :x""#),
        ("v_controls", r#""\u0000\u0001\u001f\u007f""#),
        ("v_astral", "\"\u{1F600}\u{1D4B3}\u{20000}\""),
        ("v_astral_escaped", r#""\ud83d\ude00""#),
        ("v_combining", r#""e\u0301 n\u0303""#),
        ("v_composed", "\"\u{e9} \u{f1}\""),
        ("v_invisible", r#""\u200b\u202e\ufeff\u00a0""#),
        ("v_family", "\"\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}\""),
        ("v_word_true", r#""true""#),
        ("v_word_null", r#""null""#),
        ("v_word_none", r#""None""#),
        ("v_word_yes", r#""yes""#),
        ("v_agent", r#""007""#),
        ("v_digits", r#""12""#),
        ("v_big_digits", r#""18446744073709551616""#),
        ("v_decimal_digits", r#""0.1234567890123456789012345""#),
        ("v_trailing_zeros", r#""12.50""#),
        ("v_too_large", r#""1e400""#),
        ("v_nan", r#""NaN""#),
        ("v_infinity", r#""Infinity""#),
        ("v_minus_infinity", r#""-Infinity""#),
        ("v_list_text", r#""[1, 2]""#),
        ("v_object_text", r#""{\"a\": null}""#),
        ("v_template", r#""{{ 1 + 1 }}""#),
        ("v_statement", r#""{% if x %}""#),
        ("v_day", r#""2024-02-29""#),
        ("v_moment", r#""2024-01-02T03:04:05.678901+05:30""#),
        ("v_moment_utc", r#""2024-01-02T03:04:05Z""#),
        ("v_span", r#""P1Y2M3DT4H5M6.7S""#),
    ]
    .into_iter()
    .map(|(name, sent)| Case::same(name, sent, "str"))
    .collect()
}

fn structures() -> Vec<Case> {
    let deep = format!("{}null{}", "{\"a\": [".repeat(DEEP / 2), "]}".repeat(DEEP / 2));
    let mut cases = vec![
        Case::same("v_null", "null", "NoneType"),
        Case::same("v_true", "true", "bool"),
        Case::same("v_false", "false", "bool"),
        Case::same("v_deep", deep, "dict"),
    ];
    let plain = [
        ("v_empty_list", "[]", "list"),
        ("v_empty_object", "{}", "dict"),
        ("v_nested_nulls", r#"{"a": null, "b": [null, {"c": null}], "d": {}, "e": [[]]}"#, "dict"),
        ("v_mixed", r#"[1, "1", 1.0, true, "true", null, "", [], {}, -0.0]"#, "list"),
        (
            "v_odd_names",
            r#"{"": 1, " ": 2, "a.b": 3, "$": 4, "é": 5, "items": 6, "keys": 7, "data": 8, "0": 9}"#,
            "dict",
        ),
        // Results are data: a name alone masks nothing.
        ("v_named_secret", r#"{"password": "hunter2-hunter2", "token": "abc", "authorization": "Bearer x"}"#, "dict"),
        ("v_rows", r#"[{"id": 1, "at": "2024-01-01"}, {"id": 2, "at": null}]"#, "list"),
    ];
    cases.extend(plain.into_iter().map(|(name, sent, kind)| Case::same(name, sent, kind)));
    cases
}
