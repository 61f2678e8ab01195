//! `directory_tree`: what is in a folder.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{CancellationToken, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::Files;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Limits;
use crate::paths::ResolvedPath;
use crate::walk::Walk;

const DEFAULT_DEPTH: usize = 10;
/// Entries that are counted at all.
const MAX_WALKED: usize = 100_000;

pub struct DirectoryTree {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    #[serde(default = "workspace_folder", deserialize_with = "lenient::folder")]
    path: String,
    #[serde(default, deserialize_with = "lenient::positive")]
    max_depth: Option<usize>,
}

/// The folder that a missing path means.
pub fn workspace_folder() -> String {
    ".".to_owned()
}

impl BuiltInTool for DirectoryTree {
    type Input = Input;

    const NAME: &'static str = "directory_tree";
    const DESCRIPTION: &'static str = "List a folder as a tree.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review::default();
        let path = self.files.paths.review("path", &input.path, scope, &mut review)?;
        review.summary = format!("Listing {}", path.shown());
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = self.files.paths.resolve_approved(&input.path, &call)?;
        let depth = input.max_depth.unwrap_or(DEFAULT_DEPTH).max(1);
        let cancel = call.cancel.clone();
        let list = move |files: &Files, path: ResolvedPath| tree(&path, depth, &files.limits, cancel);
        self.files.blocking(&path, list).await.map(ToolResult::text)
    }
}

struct TreeEntry {
    depth: usize,
    name: String,
    folder: bool,
}

/// The path, one indented line per entry, a note where levels were left out, and a line that counts.
pub fn tree(
    path: &ResolvedPath,
    depth: usize,
    limits: &Limits,
    cancel: CancellationToken,
) -> Result<String, String> {
    let bounds = Bounds { depth, entries: limits.tree_entries, per_folder: usize::MAX };
    tree_within(path, &bounds, limits.walk_time, cancel)
}

/// The map of a workspace: the same with limits of its own.
pub(crate) fn map(path: &ResolvedPath, limits: &Limits) -> Result<String, String> {
    let (entries, per_folder) = (limits.map_entries, limits.map_entries_per_folder);
    let bounds = Bounds { depth: usize::MAX, entries, per_folder };
    tree_within(path, &bounds, limits.walk_time, CancellationToken::new())
}

/// How much of a tree is shown.
struct Bounds {
    depth: usize,
    entries: usize,
    /// Entries of one folder, the topmost excepted.
    per_folder: usize,
}

fn tree_within(
    path: &ResolvedPath,
    bounds: &Bounds,
    time: Duration,
    cancel: CancellationToken,
) -> Result<String, String> {
    let shown = path.shown();
    if !path.path().is_dir() {
        return Err(format!("{shown} is not a folder. Use read_file for files, glob to look for names."));
    }
    let mut walk = Walk::new(path.path(), time, cancel);
    let entries = read_entries(&mut walk, bounds.depth);
    if walk.is_stopped() {
        return Err("The call was stopped.".to_owned());
    }
    let walked = entries.len();
    let entries = within_folders(entries, bounds.per_folder);
    let deepest = entries.iter().map(|entry| entry.depth).max().unwrap_or(1);
    let fits = |depth: &usize| count_to_depth(&entries, *depth) <= bounds.entries;
    let shown_depth = (1..=deepest).rev().find(fits).unwrap_or(1);
    let (mut folders, mut files) = (0, 0);
    let mut out = format!("{}\n", path.path().display());
    let shown = entries.iter().filter(|entry| entry.depth <= shown_depth).take(bounds.entries);
    for entry in shown {
        let mark = if entry.folder { "/" } else { "" };
        if entry.folder {
            folders += 1
        } else {
            files += 1
        }
        // Writing to a string does not fail.
        let _ = writeln!(out, "{:indent$}{}{mark}", "", entry.name, indent = entry.depth);
    }
    if folders + files < walked || walk.cut_short {
        let more = walked - folders - files;
        let _ = writeln!(out, "[{more} or more deeper entries left out; list a subfolder to see them]");
    }
    let _ = write!(out, "\n{folders} directories, {files} files");
    Ok(out)
}

fn read_entries(walk: &mut Walk, depth: usize) -> Vec<TreeEntry> {
    let within = walk.by_ref().skip(1).filter(|entry| entry.depth() <= depth).take(MAX_WALKED);
    let entry = |entry: ignore::DirEntry| TreeEntry {
        depth: entry.depth(),
        name: entry.file_name().display().to_string(),
        folder: entry.file_type().is_some_and(|kind| kind.is_dir()),
    };
    within.map(entry).collect()
}

/// The first `most` entries of each folder with what is in them; the topmost folder is whole.
fn within_folders(entries: Vec<TreeEntry>, most: usize) -> Vec<TreeEntry> {
    if most == usize::MAX {
        return entries;
    }
    // How many entries of the open folder of each depth were seen, and the depth below which everything is left out.
    let (mut counts, mut left_out) = (Vec::<usize>::new(), usize::MAX);
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        if entry.depth > left_out {
            continue;
        }
        left_out = usize::MAX;
        counts.resize(entry.depth + 1, 0);
        counts[entry.depth] += 1;
        if entry.depth > 1 && counts[entry.depth] > most {
            left_out = entry.depth;
        } else {
            kept.push(entry);
        }
    }
    kept
}

fn count_to_depth(entries: &[TreeEntry], depth: usize) -> usize {
    entries.iter().filter(|entry| entry.depth <= depth).count()
}
