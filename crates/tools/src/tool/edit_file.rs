//! `edit_file`: replaces text in a file.

use std::path::Path;
use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::{Details, Location};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::diff::file_change;
use crate::edit::document::Document;
use crate::edit::files::Files;
use crate::edit::patch::{self, FilePatch, Hunk, Operation};
use crate::edit::plan::{Change, TextEdit, plan};
use crate::lenient;
use crate::offered::BuiltInTool;

pub struct EditFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "file_path")]
    pub path: String,
    /// Text to replace, copied from the file
    #[serde(
        alias = "old_str",
        alias = "old_string",
        alias = "old_text",
        alias = "old_content",
        alias = "search"
    )]
    #[schemars(required)]
    pub original_content: Option<String>,
    #[schemars(required)]
    #[serde(alias = "new_str", alias = "new_string", alias = "new_text", alias = "replace")]
    pub new_content: Option<String>,
    #[serde(default, alias = "replace_all", deserialize_with = "lenient::flag")]
    pub all_occurrences: bool,
    /// More such edits of the file
    #[serde(default, deserialize_with = "lenient::list")]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    pub edits: Vec<EditInput>,
    /// Some models send a diff or search/replace blocks.
    #[serde(default, alias = "diff", alias = "input")]
    #[schemars(skip)]
    pub patch: Option<String>,
}

/// One of several edits.
#[derive(Deserialize)]
pub struct EditInput {
    #[serde(
        alias = "old_str",
        alias = "old_string",
        alias = "old_text",
        alias = "old_content",
        alias = "search"
    )]
    original_content: String,
    #[serde(alias = "new_str", alias = "new_string", alias = "new_text", alias = "replace")]
    new_content: String,
    #[serde(default, alias = "replace_all", deserialize_with = "lenient::flag")]
    all_occurrences: bool,
}

impl Input {
    /// Old and new texts by the names that rules know, however the call gave them.
    fn for_rules(&self) -> Vec<(&'static str, String)> {
        let parts = |first: &Option<String>, part: fn(&EditInput) -> &str| -> String {
            let more = self.edits.iter().map(part).chain(self.patch.as_deref());
            first
                .as_deref()
                .into_iter()
                .chain(more)
                .collect::<Vec<_>>()
                .join("\n")
                .trim_matches('\n')
                .to_owned()
        };
        vec![
            ("original_content", parts(&self.original_content, |edit| &edit.original_content)),
            ("new_content", parts(&self.new_content, |edit| &edit.new_content)),
        ]
    }

    pub fn into_change(self) -> Result<(String, Change), String> {
        let Self { path, original_content: old, new_content: new, all_occurrences: all, edits, patch } = self;
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let patch = patch.or_else(|| (old.is_empty() && patch::is_patch(&new)).then(|| new.clone()));
        if let Some(patch) = patch {
            let hunks = hunks_for(&path, &patch)?;
            return Ok((path, Change::Patch(hunks)));
        }
        if edits.is_empty() && old.is_empty() && new.is_empty() {
            return Err("Give original_content and new_content, or edits.".to_owned());
        }
        if edits.is_empty() {
            return Ok((path, Change::Replace { old, new, all }));
        }
        let first = (!old.is_empty() || !new.is_empty()).then_some(TextEdit { old, new, all });
        let more = edits.into_iter().map(|edit| {
            let EditInput { original_content: old, new_content: new, all_occurrences: all } = edit;
            TextEdit { old, new, all }
        });
        Ok((path, Change::ReplaceEach(first.into_iter().chain(more).collect())))
    }
}

/// The hunks of a patch that is for one file.
fn hunks_for(path: &str, text: &str) -> Result<Vec<Hunk>, String> {
    let mut files = patch::parse(text, Some(path))?;
    let file = files.pop().filter(|_| files.is_empty());
    match file {
        Some(FilePatch { path: named, operation: Operation::Update { move_to: None, hunks } })
            if Path::new(path).ends_with(&named) || Path::new(&named).ends_with(path) =>
        {
            Ok(hunks)
        }
        _ => Err(format!(
            "The patch does more than change {path}. Use apply_patch for other files, and for adding, deleting and moving."
        )),
    }
}

impl BuiltInTool for EditFile {
    type Input = Input;

    const NAME: &'static str = "edit_file";
    const DESCRIPTION: &'static str =
        "Replace text that is in a file exactly once, or everywhere with all_occurrences.";
    const EFFECT: ToolEffect = ToolEffect::WritesFiles;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let arguments = input.for_rules();
        let (path, change) = input.into_change()?;
        Ok(Review { arguments, ..self.files.review(&path, &change, scope)? })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (path, change) = input.into_change()?;
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
    let (places, repair) = (planned.replacements, planned.repair);
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
    for notice in repair.notice().into_iter().chain(notice.as_deref()) {
        text.push(' ');
        text.push_str(notice);
    }
    let line = first_line(&file_diff.diff);
    let locations = vec![Location { path: path.path().to_owned(), line }];
    Ok(ToolResult { details: Some(Details::FileChange(file_diff)), locations, ..ToolResult::text(text) })
}

/// The line of the new file where the first hunk begins: `@@ -1,3 +17,4 @@`.
pub(super) fn first_line(diff: &str) -> Option<u32> {
    let hunk = diff.lines().find_map(|line| line.strip_prefix("@@ "))?;
    let new = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}
