//! `move_file`: another name for a file or folder. Never over one that is there.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Location;
use platform::project_files;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::disk;
use crate::edit::files::{Files, blocking};
use crate::edit::run_later;
use crate::offered::BuiltInTool;
use crate::paths::{ForbiddenPaths, ResolvedPath, path_texts};

pub struct MoveFile {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    source: String,
    destination: String,
}

/// Most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 20_000;

impl BuiltInTool for MoveFile {
    type Input = Input;

    const NAME: &'static str = "move_file";
    const DESCRIPTION: &'static str = "Move or rename a file or folder to a name that is free.";
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
        review_contents(&from, &to, scope, &mut review)?;
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

/// A folder takes along what is in it: files that no tool may read, and files that would run later in their new place.
fn review_contents(
    from: &ResolvedPath,
    to: &ResolvedPath,
    scope: &Scope,
    review: &mut Review,
) -> Result<(), String> {
    let forbidden = ForbiddenPaths::new(scope)?;
    let mut folders = if from.path().is_symlink() { Vec::new() } else { vec![from.path().to_owned()] };
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return Err("The folder holds too many files to look at. Move smaller ones.".to_owned());
            }
            let path = entry.path();
            if forbidden.contains(&path) {
                review.read_paths.push(path_texts(&path, scope));
            }
            let moved = path.strip_prefix(from.path()).map(|below| to.path().join(below)).unwrap_or_default();
            if project_files::runs_later(&moved) {
                run_later::require_approval_of_path(&moved, moved.display().to_string(), review);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    Ok(())
}
