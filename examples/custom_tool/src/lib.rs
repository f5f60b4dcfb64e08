//! `tools/slug`: a step can write `kind: slug`.
//!
//! The function below is the tool; the line after it exports the tool and what it says about itself.

use noetl_sdk::Failure;
use noetl_sdk::tool::{Request, Response};
use serde::{Deserialize, Serialize};

noetl_sdk::tool!(call, include_str!("../describe.json"));

#[derive(Deserialize)]
struct Arguments {
    text: String,
    #[serde(default = "dash")]
    separator: String,
    longest: Option<usize>,
}

fn dash() -> String {
    "-".to_owned()
}

#[derive(Serialize)]
struct Output {
    slug: String,
}

fn call(request: Request) -> Result<Response, Failure> {
    let Arguments { text, separator, longest } = request.parse()?;
    let slug = slug_of(&text, &separator, longest.unwrap_or(usize::MAX));
    if slug.is_empty() {
        // A failure has a code that rules of a playbook can match.
        return Err(Failure::new("nothing_left", format!("`{text}` has no letter and no digit")));
    }
    Response::json(&Output { slug })
}

fn slug_of(text: &str, separator: &str, longest: usize) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.map(str::to_lowercase).collect::<Vec<_>>().join(separator);
    slug.chars().take(longest).collect::<String>().trim_end_matches(separator).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_and_everything_else_goes() {
        assert_eq!(slug_of("Hello,  World! 2", "-", 100), "hello-world-2");
        assert_eq!(slug_of("Hello, World!", "_", 6), "hello");
        assert_eq!(slug_of("?!", "-", 100), "");
    }
}
