//! Lengths of time in playbooks: a number of seconds, or text with a unit (`500ms`, `2s`, `5m`, `1.5h`, `1d`).

use serde_json::Value as Json;

/// The longest that is taken, ten years: beyond it somebody has mistaken the unit.
const LONGEST_MS: f64 = 10.0 * 366.0 * 86_400_000.0;

/// Nothing for what is no duration: other values, negative ones, unknown units.
pub(crate) fn milliseconds(value: &Json) -> Option<u64> {
    let milliseconds = match value {
        Json::Number(seconds) => seconds.as_f64()? * 1000.0,
        Json::String(text) => parse(text.trim())?,
        _ => return None,
    };
    // Rounding makes 0.1 s the 100 ms that were meant. The cast is exact below the bound.
    (milliseconds.is_finite() && (0.0..=LONGEST_MS).contains(&milliseconds)).then(|| milliseconds.round() as u64)
}

fn parse(text: &str) -> Option<f64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim_start() {
        "ms" => 1.0,
        "" | "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(number * unit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        for (value, expected) in [
            (json!(2), Some(2000)),
            (json!(0.1), Some(100)),
            (json!(0), Some(0)),
            (json!("2"), Some(2000)),
            (json!("2s"), Some(2000)),
            (json!("500ms"), Some(500)),
            (json!("1.5 h"), Some(5_400_000)),
            (json!("5m"), Some(300_000)),
            (json!("1d"), Some(86_400_000)),
            (json!(-1), None),
            (json!(1e300), None),
            (json!("-1s"), None),
            (json!("s"), None),
            (json!(""), None),
            (json!("."), None),
            (json!("2 parsecs"), None),
            (json!("{{ x }}"), None),
            (json!(true), None),
            (json!([1]), None),
        ] {
            assert_eq!(milliseconds(&value), expected, "{value}");
        }
    }
}
