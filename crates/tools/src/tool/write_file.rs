//! `write_file`: creates a file or replaces all of it.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit_file::apply_change;
use crate::edit::files::Files;
use crate::edit::plan::Change;
use crate::offered::BuiltInTool;

pub struct WriteFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "file_path")]
    path: String,
    #[serde(alias = "file_text", alias = "contents")]
    content: String,
}

impl BuiltInTool for WriteFile {
    type Input = Input;

    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Create a file with its folders, or replace all of it.";
    const EFFECT: ToolEffect = ToolEffect::WritesFiles;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let arguments = vec![("content", input.content.clone())];
        let change = Change::WriteAll { content: input.content };
        Ok(Review { arguments, ..self.files.review(&input.path, &change, scope)? })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        apply_change(&self.files, &input.path, &Change::WriteAll { content: input.content }, &call).await
    }
}
