//! `glob`: files by name.

use std::sync::Arc;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{CancellationToken, Review};
use globset::GlobBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use super::directory_tree::workspace_folder;
use crate::edit::files::Files;
use crate::editor;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Limits;
use crate::paths::ResolvedPath;
use crate::walk::Walk;

pub struct Glob {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Such as **/*.rs
    pattern: String,
    #[serde(default = "workspace_folder", deserialize_with = "lenient::folder")]
    path: String,
}

impl Input {
    /// The folder to start from and the pattern below it: an absolute pattern names its own folder.
    fn split(self) -> (String, String) {
        if !self.pattern.starts_with('/') {
            return (self.path, self.pattern);
        }
        let fixed = self.pattern.find(['*', '?', '[', '{']).unwrap_or(self.pattern.len());
        let cut = self.pattern[..fixed].rfind('/').unwrap_or(0);
        let folder = if cut == 0 { "/" } else { &self.pattern[..cut] };
        (folder.to_owned(), self.pattern[cut + 1..].to_owned())
    }
}

impl BuiltInTool for Glob {
    type Input = Input;

    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "Find files by name pattern.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { summary: format!("Looking for {}", input.pattern), ..Review::default() };
        let (folder, pattern) = input.split();
        compile(&pattern)?;
        self.files.paths.review("path", &folder, scope, &mut review)?;
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (folder, pattern) = input.split();
        let path = self.files.paths.resolve_approved(&folder, &call)?;
        let cancel = call.cancel.clone();
        let found = match editor::find_files(&path, &pattern, &call, &self.files).await? {
            Some(found) => found,
            None => {
                let search = move |files: &Files, path: ResolvedPath| {
                    find_files(&path, &pattern, &files.limits, cancel)
                };
                self.files.blocking(&path, search).await?
            }
        };
        Ok(list_paths(&found, call.scope.roots.first()))
    }
}

fn list_paths(found: &FoundFiles, root: Option<&std::path::PathBuf>) -> ToolResult {
    let shown = found.paths.iter().map(|path| {
        let short = root.and_then(|root| path.strip_prefix(root).ok());
        short.unwrap_or(path).display().to_string()
    });
    let mut lines: Vec<String> = shown.collect();
    if lines.is_empty() {
        lines.push("No file matches. Mind that what git ignores is left out.".to_owned());
    }
    if found.more {
        lines.push(format!("[only the first {}; narrow the pattern or give a path]", lines.len()));
    }
    ToolResult::text(lines.join("\n"))
}

pub struct FoundFiles {
    pub paths: Vec<std::path::PathBuf>,
    pub more: bool,
}

/// Files below a folder that match, sorted.
pub fn find_files(
    folder: &ResolvedPath,
    pattern: &str,
    limits: &Limits,
    cancel: CancellationToken,
) -> Result<FoundFiles, String> {
    let matcher = compile(pattern)?;
    let mut walk = Walk::new(folder.path(), limits.walk_time, cancel);
    let mut found = FoundFiles { paths: Vec::new(), more: false };
    for entry in walk.by_ref() {
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let relative = entry.path().strip_prefix(folder.path()).unwrap_or(entry.path());
        if !matcher.is_match(relative) {
            continue;
        }
        if found.paths.len() == limits.paths {
            found.more = true;
            break;
        }
        found.paths.push(entry.into_path());
    }
    if walk.is_stopped() {
        return Err("The call was stopped.".to_owned());
    }
    found.more |= walk.cut_short;
    Ok(found)
}

/// A pattern without a slash matches names in every folder.
pub fn full_pattern(pattern: &str) -> String {
    let pattern = pattern.trim_start_matches("./");
    if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") }
}

pub fn compile(pattern: &str) -> Result<globset::GlobMatcher, String> {
    let glob = GlobBuilder::new(&full_pattern(pattern)).literal_separator(true).build();
    Ok(glob.map_err(|error| format!("`{pattern}` is not a pattern: {error}."))?.compile_matcher())
}
