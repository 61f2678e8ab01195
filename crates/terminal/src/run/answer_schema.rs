//! `--output-schema`: checks the schema before a model is paid, and the answer against it.

use domain::Failure;
use serde_json::Value;

pub(super) fn check_schema(schema: &Value) -> Result<(), Failure> {
    jsonschema::validator_for(schema).map(drop).map_err(|error| {
        let error = error.to_string();
        let message =
            format!("The file of --output-schema is not a JSON schema: {}.", error.trim_end_matches('.'));
        Failure::user(message).hint("Correct the schema and run again.")
    })
}

/// Parses the answer, with or without a Markdown fence, as JSON that matches the schema.
pub(super) fn parse_answer(schema: &Value, answer: &str) -> Result<Value, String> {
    let bare = answer.trim();
    let bare = bare.strip_prefix("```json").or_else(|| bare.strip_prefix("```")).unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let value: Value =
        serde_json::from_str(bare).map_err(|error| format!("The answer is not JSON: {error}."))?;
    let validator =
        jsonschema::validator_for(schema).map_err(|error| format!("The schema cannot be used: {error}."))?;
    let problem = validator.iter_errors(&value).next().map(|error| error.to_string());
    match problem {
        None => Ok(value),
        Some(problem) => Err(format!("The answer does not match the schema: {problem}.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_matches_its_schema_or_says_why_not() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
        for (answer, matches) in [
            ("{\"a\": 1}", true),
            ("```json\n{\"a\": 1}\n```", true),
            ("{\"a\": \"x\"}", false),
            ("{}", false),
            ("not json", false),
        ] {
            assert_eq!(parse_answer(&schema, answer).is_ok(), matches, "{answer}");
        }
    }
}
