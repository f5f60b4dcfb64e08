//! `{{path}}`: a transform that greets whoever its input names.

use noetl_sdk::{Failure, log};
use serde::{Deserialize, Serialize};

noetl_sdk::transform_json!(greet);

#[derive(Deserialize)]
struct Input {
    name: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Output {
    greeting: String,
}

fn greet(input: Input) -> Result<Output, Failure> {
    let name = input.name.trim();
    if name.is_empty() {
        return Err(Failure::invalid_input("`name` is empty"));
    }
    log::info!("greeting"; name = name);
    Ok(Output { greeting: format!("Hello, {name}!") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_greeted_without_the_space_around_it() {
        let output = greet(Input { name: " Ada ".to_owned() });
        assert_eq!(output, Ok(Output { greeting: "Hello, Ada!".to_owned() }));
    }
}
