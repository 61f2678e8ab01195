//! `preview_file_change`: shows the user what an edit would do, for the plan behavior. Changes nothing.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Details;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::diff::file_change;
use crate::edit::files::Files;
use crate::edit::plan::{Change, plan};
use crate::lenient;
use crate::offered::BuiltInTool;

pub struct PreviewFileChange {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    path: String,
    /// Empty for a new file
    #[serde(default, alias = "old_str", alias = "old_string", alias = "old_text")]
    original_content: String,
    #[serde(alias = "new_str", alias = "new_string", alias = "new_text")]
    new_content: String,
    #[serde(default, alias = "replace_all", deserialize_with = "lenient::flag")]
    all_occurrences: bool,
}

impl Input {
    fn into_change(self) -> (String, Change) {
        let Self { path, original_content: old, new_content: new, all_occurrences: all } = self;
        let change = if old.is_empty() {
            Change::WriteAll { content: new }
        } else {
            Change::Replace { old, new, all }
        };
        (path, change)
    }
}

impl BuiltInTool for PreviewFileChange {
    type Input = Input;

    const NAME: &'static str = "preview_file_change";
    const DESCRIPTION: &'static str = "Show the user what edit_file would do, without doing it.";
    const EFFECT: ToolEffect = ToolEffect::Previews;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let (path, change) = input.into_change();
        let review = self.files.review(&path, &change, scope)?;
        let harmless = review.outside.is_empty();
        let summary = review.summary.replacen("Editing", "Previewing a change of", 1);
        let summary = summary.replacen("Creating", "Previewing", 1);
        Ok(Review { summary, changes: false, must_ask: None, harmless, ..review })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (path, change) = input.into_change();
        let path = self.files.paths.resolve_approved(&path, &call)?;
        let current = self.files.current(&path, &call).await?;
        let old = current.document.as_ref().map(|document| document.text().to_owned());
        let planned =
            plan(current.document.as_ref(), &change).map_err(|refused| refused.into_message(true))?;
        let change = file_change(path.path(), path.shown(), old.as_deref(), &planned.text);
        let text = format!(
            "The user sees the change of {} (+{} -{} lines). Nothing was written.",
            path.shown(),
            change.lines_added,
            change.lines_removed
        );
        Ok(ToolResult { details: Some(Details::FileChange(change)), ..ToolResult::text(text) })
    }
}
