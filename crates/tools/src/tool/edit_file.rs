//! `edit_file`: replaces text in a file.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::{Details, Location};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::diff::file_change;
use crate::edit::document::Document;
use crate::edit::files::Files;
use crate::edit::plan::{Change, plan};
use crate::lenient;
use crate::offered::BuiltInTool;

pub struct EditFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    pub path: String,
    /// Text to replace, copied from the file
    #[serde(alias = "old_string", alias = "old_text", alias = "old_content")]
    pub original_content: String,
    #[serde(alias = "new_string", alias = "new_text")]
    pub new_content: String,
    #[serde(default, alias = "replace_all", deserialize_with = "lenient::flag")]
    pub all_occurrences: bool,
}

impl Input {
    pub fn into_change(self) -> (String, Change) {
        let Self { path, original_content: old, new_content: new, all_occurrences: all } = self;
        (path, Change::Replace { old, new, all })
    }
}

impl BuiltInTool for EditFile {
    type Input = Input;

    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str = "Replace text in a file. original_content must be there exactly once unless \
                                       all_occurrences is set.";
    const EFFECT: ToolEffect = ToolEffect::WritesFiles;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let (path, change) = input.into_change();
        self.files.review(&path, &change, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (path, change) = input.into_change();
        apply_change(&self.files, &path, &change, &call).await
    }
}

/// Makes a change and tells what it did.
pub async fn apply_change(
    files: &Arc<Files>,
    path: &str,
    change: &Change,
    call: &Invocation,
) -> Result<ToolResult, String> {
    let path = files.paths.resolve_approved(path, call)?;
    let current = files.current(&path, call).await?;
    files.check_seen(&path, &current, &call.scope)?;
    let old = current.document.as_ref().map(|document| document.text().to_owned());
    let planned = plan(current.document.as_ref(), change).map_err(|refused| refused.into_message(true))?;
    if current.document.as_ref().map(Document::bytes) == Some(planned.bytes.as_slice()) {
        return Ok(ToolResult::text(format!("{} already says that; nothing was changed.", path.shown())));
    }
    if call.cancel.is_cancelled() {
        return Err("The call was stopped before anything was written.".to_owned());
    }
    let file_diff = file_change(path.path(), path.shown(), old.as_deref(), &planned.text);
    let (places, forgiven) = (planned.replacements, planned.forgiven);
    let notice = files.write(&path, current, planned, call).await?;
    let mut text = match (&old, places) {
        (None, _) => format!("Created {}.", path.shown()),
        (Some(_), 1) => {
            format!(
                "Changed {}: +{} -{} lines.",
                path.shown(),
                file_diff.lines_added,
                file_diff.lines_removed
            )
        }
        (Some(_), places) => format!("Changed {} in {places} places.", path.shown()),
    };
    if forgiven {
        text.push_str(
            " The whitespace of original_content was not that of the file; it was matched by lines.",
        );
    }
    if let Some(notice) = notice {
        text.push(' ');
        text.push_str(&notice);
    }
    let line = first_line(&file_diff.diff);
    let locations = vec![Location { path: path.path().to_owned(), line }];
    Ok(ToolResult { details: Some(Details::FileChange(file_diff)), locations, ..ToolResult::text(text) })
}

/// The line of the new file where the first hunk begins: `@@ -1,3 +17,4 @@`.
fn first_line(diff: &str) -> Option<u32> {
    let hunk = diff.lines().find_map(|line| line.strip_prefix("@@ "))?;
    let new = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}
