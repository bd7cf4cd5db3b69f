//! The JSON Schema of a model's input: whether it can be used, and what of an input does not fit.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError, Validator};
use serde_json::Value;
use tidegate_core::bounds::PROBLEMS_MAX;

/// The longest message in which a value is repeated, and the longest one at all.
const MESSAGE_LEN_MAX: usize = 500;

/// A part of an input that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputProblem {
    /// The field, such as `input.seed`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// A schema that can be used.
#[derive(Debug)]
pub(crate) struct InputSchema(Validator);

impl InputSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The first reason why it is none.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| describe(&error))
    }

    /// Returns what of an input does not fit, in the order of the schema.
    pub(crate) fn problems(&self, input: &Value) -> Vec<InputProblem> {
        let problem = |error: ValidationError<'_>| {
            let field = format!("input{}", error.instance_path().to_string().replace('/', "."));
            let mut message = error.to_string();
            if message.len() > MESSAGE_LEN_MAX {
                message = error.masked_with("the value").to_string();
                message.truncate(message.floor_char_boundary(MESSAGE_LEN_MAX));
            }
            InputProblem { message: format!("{field}: {message}."), field }
        };
        self.0.iter_errors(input).take(PROBLEMS_MAX).map(problem).collect()
    }
}

/// Returns why a text that should be a JSON Schema is none, each reason with its place in it; none
/// if it is one.
#[must_use]
pub fn schema_problems(schema: &Value) -> Vec<String> {
    let Ok(meta) = jsonschema::meta::validator_for(schema) else {
        return vec!["Its $schema is not known.".to_owned()];
    };
    let faults: Vec<_> = meta.iter_errors(schema).take(PROBLEMS_MAX).map(|error| describe(&error)).collect();
    if !faults.is_empty() {
        return faults;
    }
    // What only compiling shows: references and patterns.
    InputSchema::compile(schema).err().into_iter().collect()
}

/// Says what is wrong with a schema, and where.
fn describe(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) = error.kind() {
        return format!("It refers to {uri}: only references within the schema are followed.");
    }
    match error.instance_path().as_str() {
        "" => format!("It is no JSON Schema: {error}."),
        place => format!("It is no JSON Schema: {place}: {error}."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// DSP-14: each fault of a schema is named with its place.
    #[test]
    fn dsp_14_every_fault_of_a_schema_has_its_place() {
        assert_eq!(schema_problems(&json!({ "type": "object" })), Vec::<String>::new());
        let twice = json!({ "properties": { "seed": { "type": 7 }, "prompt": { "minLength": -1 } } });
        let problems = schema_problems(&twice);
        assert_eq!(problems.len(), 2, "{problems:?}");
        for place in ["/properties/seed/type: 7 ", "/properties/prompt/minLength: -1 "] {
            assert!(problems.iter().any(|problem| problem.contains(place)), "{place}: {problems:?}");
        }
        let abroad = schema_problems(&json!({ "$ref": "http://127.0.0.1:9/schema.json" }));
        assert!(abroad[0].contains("only references within the schema"), "{abroad:?}");
        assert_eq!(schema_problems(&json!({ "$schema": "http://a.example/own" })).len(), 1);
        assert_eq!(schema_problems(&json!({ "pattern": "(" })).len(), 1);
    }

    /// DSP-1: two fields that do not fit are two problems.
    #[test]
    fn dsp_1_every_wrong_field_of_an_input_is_named() {
        let schema = json!({ "properties": { "seed": { "type": "integer" }, "size": { "maximum": 9 } } });
        let schema = InputSchema::compile(&schema).unwrap();
        assert_eq!(schema.problems(&json!({ "seed": 1 })), []);
        let problems = schema.problems(&json!({ "seed": "x", "size": 10 }));
        let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["input.seed", "input.size"]);
        assert_eq!(problems[0].message, "input.seed: \"x\" is not of type \"integer\".");
    }

    /// DSP-1: a problem does not repeat a value that is long.
    #[test]
    fn dsp_1_a_long_value_is_not_repeated() {
        let schema = json!({ "properties": { "prompt": { "maxLength": 9 } } });
        let schema = InputSchema::compile(&schema).unwrap();
        let message = |prompt: &str| schema.problems(&json!({ "prompt": prompt }))[0].message.clone();
        assert_eq!(message("a lighthouse"), "input.prompt: \"a lighthouse\" is longer than 9 characters.");
        assert_eq!(message(&"é".repeat(900_000)), "input.prompt: the value is longer than 9 characters.");
    }
}
