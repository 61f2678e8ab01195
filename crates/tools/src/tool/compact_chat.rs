//! `compact_chat`: the model's summary takes the place of the history. The engine does the rest.

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::offered::BuiltInTool;

pub struct CompactChat;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    summary: String,
}

impl BuiltInTool for CompactChat {
    type Input = Input;

    const NAME: &'static str = "compact_chat";
    const DESCRIPTION: &'static str = "Replace the chat so far by a summary. Only when asked to compact.";
    const EFFECT: ToolEffect = ToolEffect::Other;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        if input.summary.trim().is_empty() {
            return Err("The summary is empty.".to_owned());
        }
        Ok(Review { summary: "Compacting the chat".to_owned(), harmless: true, ..Review::default() })
    }

    async fn run(&self, input: Input, _: Invocation) -> Result<ToolResult, String> {
        Ok(ToolResult { compact: Some(input.summary), ..ToolResult::text("The chat was compacted.") })
    }
}
