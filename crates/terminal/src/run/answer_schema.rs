//! `--output-schema`: checks the schema before a model is paid, and the answer against it; a wrong answer is asked for again.

use domain::command::UserPrompt;
use domain::{Command, Failure, Outcome};
use serde_json::Value;

use super::Run;
use super::printer::Printer;

/// How often a model may answer until the answer matches.
const MOST_ANSWERS: usize = 3;

impl Run {
    /// Follows the turn, and further ones while the answer does not match the schema.
    pub(super) async fn follow_answers(&mut self, printer: &mut Printer<'_>) -> Option<Outcome> {
        let mut outcome = self.follow_turn(printer).await;
        for answers in 1..MOST_ANSWERS {
            let Some(problem) = self.schema_problem(outcome.as_ref()) else { break };
            printer
                .notice(&format!("{problem} The model is asked again ({answers} of {}).", MOST_ANSWERS - 1));
            if !self.ask_again(&problem).await {
                break;
            }
            outcome = self.follow_turn(printer).await;
        }
        outcome
    }

    /// Why a whole answer does not match the schema.
    fn schema_problem(&self, outcome: Option<&Outcome>) -> Option<String> {
        let schema = self.schema.as_ref().filter(|_| outcome == Some(&Outcome::Done))?;
        parse_answer(schema, &self.output.answer).err()
    }

    /// Asks for an answer that matches, within what is left of the budget. False: it cannot be asked.
    async fn ask_again(&mut self, problem: &str) -> bool {
        let spent = self.output.usage.cost().map_or(0.0, |cost| (cost - self.cost_before).max(0.0));
        let mut limits = self.limits.clone();
        limits.max_cost = limits.max_cost.map(|most| most - spent);
        if limits.max_cost.is_some_and(|left| left <= 0.0) {
            return false;
        }
        let text = format!("{problem} Answer again, with JSON that matches the schema and nothing else.");
        let prompt = UserPrompt { text, limits, ..UserPrompt::default() };
        let session = self.session.clone();
        let asked = self.link.call(|reply| Command::Prompt { session, prompt, reply });
        let is_asked = tokio::select! {
            asked = tokio::time::timeout_at(self.deadline, asked) => matches!(asked, Ok(Ok(_))),
            () = self.stop.cancelled() => false,
        };
        if is_asked {
            self.output.answer.clear();
        }
        is_asked
    }
}

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
