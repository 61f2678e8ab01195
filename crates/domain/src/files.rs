//! What the engine needs of the files of a workspace outside of tool calls: contexts and plain reads.
//!
//! Invariant: the same path policy as the tools; nothing outside the workspace is read.

use std::path::PathBuf;
use std::sync::Arc;

use crate::BoxFuture;
use crate::command::{Context, ContextQuery, FileContent, FileStat};
use crate::failure::Failure;
use crate::item::Part;
use crate::tool::{Scope, ToolContext};

pub trait Files: Send + Sync {
    /// What can be added to a prompt, best match first; stable for equal queries.
    fn query<'a>(
        &'a self,
        roots: &'a [PathBuf],
        text: &'a str,
        kind: ContextQuery,
    ) -> BoxFuture<'a, Vec<Context>>;

    /// The text (or image) a context stands for, bounded.
    fn expand<'a>(
        &'a self,
        context: &'a Context,
        scope: &'a Scope,
        port: Arc<dyn ToolContext>,
    ) -> BoxFuture<'a, Result<Vec<Part>, Failure>>;

    /// A short tree of the workspace for the repo map.
    fn repo_map<'a>(&'a self, roots: &'a [PathBuf]) -> BoxFuture<'a, String>;

    fn read<'a>(&'a self, roots: &'a [PathBuf], path: PathBuf)
    -> BoxFuture<'a, Result<FileContent, Failure>>;

    fn stat<'a>(&'a self, roots: &'a [PathBuf], path: PathBuf) -> BoxFuture<'a, Result<FileStat, Failure>>;

    fn glob<'a>(
        &'a self,
        roots: &'a [PathBuf],
        pattern: String,
    ) -> BoxFuture<'a, Result<Vec<PathBuf>, Failure>>;

    /// Starts building what queries need, in the background.
    fn warm(&self, _roots: &[PathBuf]) {}
}
