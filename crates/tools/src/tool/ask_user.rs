//! `ask_user`: a question of the model to the user.

use domain::ask::Choice;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{Answer, AskKind, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::unless_cancelled;
use crate::offered::BuiltInTool;

pub struct AskUser;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

impl BuiltInTool for AskUser {
    type Input = Input;

    const NAME: &'static str = "ask_user";
    const DESCRIPTION: &'static str = "Ask the user when a decision is theirs.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        if input.question.trim().is_empty() {
            return Err("The question is empty.".to_owned());
        }
        Ok(Review { summary: format!("Asking: {}", input.question), harmless: true, ..Review::default() })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        if !call.context.abilities().questions {
            return Err("Nobody can be asked here. Decide yourself and say what you assumed.".to_owned());
        }
        let options = input.options.into_iter().map(|label| Choice { label, description: None }).collect();
        let question = AskKind::Question { text: input.question, options, freeform: true, url: None };
        match unless_cancelled(&call.cancel, call.context.ask(question)).await? {
            Answer::Text { text } => Ok(ToolResult::text(text)),
            Answer::Form { data } => Ok(ToolResult::text(data.to_string())),
            Answer::Allow { .. } => Ok(ToolResult::text("Yes.")),
            Answer::Deny { reason, .. } => Ok(ToolResult::text(reason.unwrap_or_else(|| "No.".to_owned()))),
            Answer::Cancelled => Err("The user gave no answer. Go on without it or stop.".to_owned()),
        }
    }
}
