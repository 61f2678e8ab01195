//! Formatters after a change: a filter that the settings name for an ending of files gets the text and prints it anew.
//!
//! Must not know tools. Invariants: a formatter runs in the strictest sandbox, in which the workspace is read-only, or not at
//! all; Dragoman writes the file itself, as it writes every change; a formatter that fails changes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::tool::Scope;
use domain::{CancellationToken, SessionId};
use process::sandbox::Allowance;
use process::{OutputLimit, Spawn};

use crate::edit::diff::file_change;
use crate::edit::disk;
use crate::edit::document::Document;
use crate::edit::files::Files;
use crate::edit::seen::{SeenVia, TextStamp};
use crate::options::Confine;
use crate::paths::ResolvedPath;
use crate::shell::quiet;

/// How long a formatter may take.
const LONGEST: Duration = Duration::from_secs(5);
/// Text that a formatter may add.
const MORE_BYTES: usize = 1 << 20;
/// A longer diff is not shown.
const SHOWN_DIFF: usize = 4_000;

/// Shell lines by ending of files, and the sandbox that they run in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Formatters {
    pub(crate) lines: BTreeMap<String, String>,
    pub(crate) sandbox: Option<Confine>,
}

impl Formatters {
    fn line_for(&self, path: &ResolvedPath) -> Option<&String> {
        self.lines.get(path.path().extension()?.to_str()?)
    }

    /// The file before a change, where it would be formatted after it; `None` also where there is none yet.
    pub(crate) async fn bytes_before(&self, files: &Arc<Files>, path: &ResolvedPath) -> Option<Vec<u8>> {
        self.line_for(path)?;
        load(files, path).await
    }

    /// Formats a file that was just changed; tells the model what that did.
    pub(crate) async fn format(
        &self,
        files: &Arc<Files>,
        (path, old): &(ResolvedPath, Option<Vec<u8>>),
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let line = self.line_for(path)?;
        let before = load(files, path).await?;
        // A call may name files that it leaves as they are.
        if old.as_ref() == Some(&before) {
            return None;
        }
        let after = match self.run(line, &before, path.path(), scope, cancel).await {
            Ok(after) if after == before => return None,
            Ok(after) => after,
            Err(problem) => return Some(format!("It was not formatted: {problem}")),
        };
        write(files, path, before, after, &scope.session).await
    }

    /// What the formatter prints.
    async fn run(
        &self,
        line: &str,
        text: &[u8],
        path: &Path,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, String> {
        let confine = self.sandbox.as_ref().ok_or("formatters run only in the sandbox, which is off.")?;
        let root = scope.roots.first().ok_or("no folder is open.")?;
        let allowance = Allowance { strict: true, run_later: scope.roots.to_vec(), ..Allowance::default() };
        let finished = Spawn::shell(line)
            .directory(root)
            .env("FILE", path)
            .envs(quiet::VARIABLES.iter().copied())
            .input(text)
            .deadline(LONGEST)
            .limit(OutputLimit { head: text.len() + MORE_BYTES, tail: 2_000 })
            .confine(confine.sandbox.clone(), allowance)
            .run(cancel)
            .await
            .map_err(|error| error.to_string())?;
        let is_whole = finished.stdout.tail.is_empty() && finished.stdout.dropped == 0;
        if !finished.success() || !is_whole || finished.stdout.head.is_empty() {
            let said = finished.stderr.text();
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it printed no text");
            return Err(format!("`{line}` failed: {said}"));
        }
        Ok(finished.stdout.head)
    }
}

async fn load(files: &Arc<Files>, path: &ResolvedPath) -> Option<Vec<u8>> {
    let load = |files: &Files, path: ResolvedPath| disk::load(&path, files.limits.file_bytes);
    files.blocking(path, load).await.ok().flatten().map(|loaded| loaded.bytes)
}

async fn write(
    files: &Arc<Files>,
    path: &ResolvedPath,
    before: Vec<u8>,
    after: Vec<u8>,
    session: &SessionId,
) -> Option<String> {
    let (old, new) = (Document::read(before.clone()).ok()?, Document::read(after.clone()).ok()?);
    let replace = move |_: &Files, path: ResolvedPath| disk::replace(&path, Some(&before), &after);
    if let Err(problem) = files.blocking(path, replace).await {
        return Some(format!("It was not formatted: {problem}"));
    }
    files.seen.record(session, path.path(), TextStamp::from_text(new.text()), SeenVia::Disk);
    let change = file_change(path.path(), path.shown(), Some(old.text()), new.text());
    Some(if change.diff.len() <= SHOWN_DIFF {
        format!("The project's formatter changed it then:\n{}", change.diff)
    } else {
        "The project's formatter changed much of it then. Read it again before you change it.".to_owned()
    })
}
