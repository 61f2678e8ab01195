//! Contexts that need no file index.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::{Context, ContextQuery, FileContent, FileStat};
use domain::files::Files;
use domain::item::Part;
use domain::tool::{Scope, ToolPort};
use domain::{BoxFuture, Failure};

pub struct PlainFiles;

impl Files for PlainFiles {
    fn query<'a>(&'a self, _: &'a [PathBuf], _: &'a str, _: ContextQuery) -> BoxFuture<'a, Vec<Context>> {
        Box::pin(async { Vec::new() })
    }

    fn expand<'a>(
        &'a self,
        context: &'a Context,
        _: &'a Scope,
        _: Arc<dyn ToolPort>,
    ) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            match context {
                Context::Text { text, .. } => Ok(vec![Part::text(text.clone())]),
                _ => Ok(Vec::new()),
            }
        })
    }

    fn repo_map<'a>(&'a self, _: &'a [PathBuf]) -> BoxFuture<'a, String> {
        Box::pin(async { String::new() })
    }

    fn read<'a>(&'a self, _: &'a [PathBuf], _: PathBuf) -> BoxFuture<'a, Result<FileContent, Failure>> {
        Box::pin(async { Err(Failure::user("no")) })
    }

    fn stat<'a>(&'a self, _: &'a [PathBuf], _: PathBuf) -> BoxFuture<'a, Result<FileStat, Failure>> {
        Box::pin(async { Err(Failure::user("no")) })
    }

    fn glob<'a>(&'a self, _: &'a [PathBuf], _: String) -> BoxFuture<'a, Result<Vec<PathBuf>, Failure>> {
        Box::pin(async { Err(Failure::user("no")) })
    }
}
