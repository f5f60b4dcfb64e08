//! What a step that does nothing comes to: the `result` it was given, or a word that all is well.

use serde_json::{Map, Value, json};

pub fn answer(mut arguments: Map<String, Value>) -> Value {
    if let Some(result) = arguments.remove("result") {
        return result;
    }
    let message = arguments.remove("message").unwrap_or_else(|| json!("noop"));
    let mut answer = json!({"status": "ok", "message": message});
    // What was handed to the step can be read from it, which is what a step that only carries values is for.
    if let Some(Value::Object(input)) = arguments.remove("input")
        && !input.is_empty()
    {
        answer["input"] = Value::Object(input);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(arguments: Value) -> Value {
        answer(arguments.as_object().cloned().expect("an object"))
    }

    #[test]
    fn a_result_is_the_answer_as_it_is() {
        assert_eq!(answered(json!({"result": [1, null], "message": "x"})), json!([1, null]));
        assert_eq!(answered(json!({"result": null})), Value::Null);
    }

    #[test]
    fn without_one_it_says_that_all_is_well() {
        assert_eq!(answered(json!({})), json!({"status": "ok", "message": "noop"}));
        let carried = answered(json!({"message": "go", "input": {"a": 1}}));
        assert_eq!(carried, json!({"status": "ok", "message": "go", "input": {"a": 1}}));
    }
}
