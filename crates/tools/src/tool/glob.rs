//! `glob`: files by name.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

use super::directory_tree::workspace_folder;
use crate::edit::files::Files;
use crate::editor;
use crate::glob_search::{FoundFiles, compile, find_files};
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::paths::ResolvedPath;

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
