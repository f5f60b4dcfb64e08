//! Typed JSON in and out of a transform.
//!
//! Not being able to read the input is the caller's fault (`invalid_input`); not being able to write the output is the
//! plugin's (`invalid_output`).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// Read the input as JSON, run `run`, write its answer as JSON. [`transform_json!`](crate::transform_json) exports it.
pub fn transform<In: DeserializeOwned, Out: Serialize>(
    input: Vec<u8>,
    run: impl FnOnce(In) -> Result<Out, Failure>,
) -> Result<Vec<u8>, Failure> {
    let value = serde_json::from_slice(&input)
        .map_err(|error| Failure::invalid_input(format_args!("the input is not right: {error}")))?;
    drop(input);
    to_text(&run(value)?).map(String::into_bytes)
}

pub(crate) fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::new("invalid_output", format_args!("the output cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(number: u32) -> Result<u32, Failure> {
        Ok(number * 2)
    }

    #[test]
    fn values_cross_typed() {
        assert_eq!(transform(b"21".to_vec(), double), Ok(b"42".to_vec()));
    }

    #[test]
    fn bad_input_never_reaches_the_function() {
        let failure = transform(b"\"x\"".to_vec(), |_: u32| -> Result<u32, Failure> { panic!("called") });
        assert_eq!(failure.expect_err("not a number").code, "invalid_input");
    }

    #[test]
    fn output_that_is_no_json_is_a_failure() {
        let keys = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(to_text(&keys).expect_err("a list is no key").code, "invalid_output");
    }
}
