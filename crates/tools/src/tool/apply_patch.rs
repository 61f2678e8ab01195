//! `apply_patch`: adds, changes, deletes and moves several files in one call.
//!
//! Invariant: all of a patch is done or none of it. Every file goes through the same review, policy and checks as a single
//! edit of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, TextFormat, ToolEffect, ToolResult};
use domain::tool_call::{Details, FileChange, Location};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit_file::first_line;
use super::patch_steps::{Step, carry_out, prepare, refuse_link};
use crate::edit::diff::{combined, deletion, renaming};
use crate::edit::document::Document;
use crate::edit::files::Files;
use crate::edit::patch::{self, FilePatch, Operation};
use crate::edit::plan::Change;
use crate::edit::run_later;
use crate::offered::BuiltInTool;
use crate::paths::ForbiddenPaths;

pub struct ApplyPatch {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "patch", alias = "diff", alias = "patch_text", alias = "patchText")]
    input: String,
}

/// Names of files in a summary.
const MOST_NAMED: usize = 3;

impl BuiltInTool for ApplyPatch {
    type Input = Input;

    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = "Change files, all or none: *** Begin Patch, then per file *** Update File: PATH \
        (or Add File, Delete File; *** Move to: PATH may follow), hunks of lines after @@ with ' ' (stays), '-' or '+' \
        before each, *** End Patch. Give three lines around a change; where these are there twice, @@ and the line that \
        opens the function.";
    const EFFECT: ToolEffect = ToolEffect::WritesFiles;
    const COUNTS_AS: &'static [&'static str] = &["edit_file", "write_file", "move_file"];

    fn text_format(&self) -> Option<TextFormat> {
        let description = "Change files, all or none. Give three lines around a change; where these are there twice, @@ \
                           and the line that opens the function.";
        Some(TextFormat { argument: "input", grammar: patch::GRAMMAR, description })
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let text = |name| (name, input.input.clone());
        let arguments = ["original_content", "new_content", "content"].map(text).to_vec();
        let mut review = Review { changes: true, arguments, ..Review::default() };
        let (mut summaries, mut changes) = (Vec::new(), Vec::new());
        for file in patch::parse(&input.input, None)? {
            let shown = file.path.clone();
            let (summary, change) = self
                .review_file(file, scope, &mut review)
                .map_err(|reason| format!("{shown}: {reason} No file was changed."))?;
            summaries.push(summary);
            changes.extend(change);
        }
        refuse_repeated(review.locations.iter().map(|location| location.path.as_path()))?;
        let more = summaries.len().saturating_sub(MOST_NAMED);
        summaries.truncate(MOST_NAMED);
        review.summary = summaries.join(", ");
        if more > 0 {
            review.summary.push_str(&format!(" and {more} more"));
        }
        review.details = combined(changes).map(Details::FileChange);
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let mut steps: Vec<Step> = Vec::new();
        for file in patch::parse(&input.input, None)? {
            let shown = file.path.clone();
            let step = prepare(&self.files, file, &call).await;
            steps.push(step.map_err(|reason| format!("{shown}: {reason} No file was changed."))?);
        }
        refuse_repeated(steps.iter().flat_map(Step::paths))?;
        if call.cancel.is_cancelled() {
            return Err("The call was stopped before anything was written.".to_owned());
        }
        let changes: Vec<FileChange> = steps.iter().map(Step::change).collect();
        let locations = changes
            .iter()
            .map(|change| Location { path: change.path.clone(), line: first_line(&change.diff) })
            .collect();
        let told = carry_out(&self.files, steps, &call).await?;
        let details = combined(changes).map(Details::FileChange);
        Ok(ToolResult { details, locations, ..ToolResult::text(told.join("\n")) })
    }
}

/// Two pieces for one file would be planned from the same text, and one would be lost.
fn refuse_repeated<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<(), String> {
    let mut known = HashSet::new();
    for path in paths {
        if !known.insert(path) {
            let path = path.display();
            return Err(format!(
                "The patch names {path} more than once. Send one piece for it. No file was changed."
            ));
        }
    }
    Ok(())
}

impl ApplyPatch {
    fn review_file(
        &self,
        file: FilePatch,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<(String, Option<FileChange>), String> {
        let FilePatch { path, operation } = file;
        match operation {
            Operation::Add { content } => {
                let resolved = self.files.paths.resolve(&path, scope)?;
                if resolved.is_inside() && resolved.path().symlink_metadata().is_ok() {
                    return Err("It exists already. Use `*** Update File:` to change it.".to_owned());
                }
                self.files.review_change(&path, &Change::WriteAll { content }, scope, review)
            }
            Operation::Delete => self.review_deletion(&path, scope, review),
            Operation::Update { move_to: None, hunks } => {
                self.files.review_change(&path, &Change::Patch(hunks), scope, review)
            }
            Operation::Update { move_to: Some(to), hunks } => {
                let from = self.files.paths.review_entry("path", &path, scope, review)?;
                refuse_link(&from)?;
                let change = if hunks.is_empty() {
                    review.locations.push(Location { path: from.path().to_owned(), line: None });
                    run_later::require_approval(&from, Some(("", "")), review);
                    None
                } else {
                    self.files.review_change(&path, &Change::Patch(hunks), scope, review)?.1
                };
                let to = self.files.paths.review("path", &to, scope, review)?;
                review.locations.push(Location { path: to.path().to_owned(), line: None });
                run_later::require_approval(&to, None, review);
                let change = renaming(from.shown(), to.shown(), change, to.path());
                Ok((format!("Moving {} to {}", from.shown(), to.shown()), Some(change)))
            }
        }
    }

    fn review_deletion(
        &self,
        path: &str,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<(String, Option<FileChange>), String> {
        let path = self.files.paths.review_entry("path", path, scope, review)?;
        refuse_link(&path)?;
        review.locations.push(Location { path: path.path().to_owned(), line: None });
        run_later::require_approval(&path, None, review);
        let summary = format!("Deleting {}", path.shown());
        if ForbiddenPaths::new(scope)?.contains(path.path()) || !path.is_inside() {
            return Ok((summary, None));
        }
        let document = self.files.load_document(&path)?.ok_or("It does not exist.")?;
        let change = deletion(path.path(), path.shown(), Document::text(&document));
        Ok((summary, Some(change)))
    }
}
