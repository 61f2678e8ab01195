//! `move_file`: another name for a file or folder. Never over one that is there.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Location;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::disk;
use crate::edit::files::{Files, blocking};
use crate::edit::run_later;
use crate::offered::BuiltInTool;

pub struct MoveFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    source: String,
    destination: String,
}

impl BuiltInTool for MoveFile {
    type Input = Input;

    const NAME: &'static str = "move_file";
    const DESCRIPTION: &'static str = "Move or rename a file or folder. The destination must not exist.";
    const EFFECT: ToolEffect = ToolEffect::WritesFiles;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { changes: true, ..Review::default() };
        let from = self.files.paths.review_entry("source", &input.source, scope, &mut review)?;
        let to = self.files.paths.review_entry("destination", &input.destination, scope, &mut review)?;
        review.summary = format!("Moving {} to {}", from.shown(), to.shown());
        review.locations =
            [&from, &to].map(|path| Location { path: path.path().to_owned(), line: None }).into();
        run_later::require_approval(&from, Some(("", "")), &mut review);
        run_later::require_approval(&to, None, &mut review);
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let from = self.files.paths.resolve_approved_entry(&input.source, &call)?;
        let to = self.files.paths.resolve_approved_entry(&input.destination, &call)?;
        let text = format!("Moved {} to {}.", from.shown(), to.shown());
        let (old, new) = (from.path().to_owned(), to.path().to_owned());
        blocking(move || disk::rename(&from, &to)).await?;
        self.files.seen.rename(&call.scope.session, &old, &new);
        Ok(ToolResult::text(text))
    }
}
