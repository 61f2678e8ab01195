//! What follows a change of files: a formatter, and the diagnostics of the changed files that are new since the change.
//!
//! Must not know which tool changes files or how. Invariants: a change waits for diagnostics a second and a half at most; no
//! language server is started for it; without an answer from before the change nothing is called new.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::host::{Diagnostic, LanguageServices};
use domain::tool::{Invocation, Scope, TextFormat, ToolContext, ToolResult};
use domain::{Abilities, BoxFuture, CancellationToken, HostCall, HostReply, Part, Review, Tool, ToolSpec};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::editor_diagnostics::describe_line;
use super::formatting::Formatters;
use crate::edit::files::Files;
use crate::paths::ResolvedPath;

/// All that a change may wait for diagnostics, before and after it.
const LONGEST: Duration = Duration::from_millis(1_500);
/// Of this, what the state before the change may take.
const BEFORE: Duration = Duration::from_millis(500);
/// When an editor is asked after the change: it learns of it by itself.
const LOOKS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(250), Duration::from_millis(500)];
/// Diagnostics that a result names.
const MOST: usize = 20;
/// Changed files that are looked at.
const MOST_FILES: usize = 5;

/// Files with their bytes before a call, and what a formatter needs of the call.
type Formatting = (Vec<(ResolvedPath, Option<Vec<u8>>)>, Scope, CancellationToken);

/// Edits in a row without news after which an editor is asked only once more.
const MOST_BARREN: usize = 2;

/// A tool that changes files, and whose results name new diagnostics.
pub(crate) struct CheckedEdit {
    pub(crate) inner: Arc<dyn Tool>,
    pub(crate) files: Arc<Files>,
    pub(crate) services: Option<Arc<dyn LanguageServices>>,
    pub(crate) formatters: Formatters,
    /// Edits in a row after which the editor told nothing else than before.
    pub(crate) barren: AtomicUsize,
}

impl Tool for CheckedEdit {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.inner.is_useful_with(abilities)
    }

    fn text_format(&self) -> Option<TextFormat> {
        self.inner.text_format()
    }

    fn counts_as(&self) -> &'static [&'static str] {
        self.inner.counts_as()
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        self.inner.prepare()
    }

    fn review(&self, input: &Value, scope: &Scope) -> Result<Review, String> {
        self.inner.review(input, scope)
    }

    fn remember(&self, keys: &[String], scope: &Scope) {
        self.inner.remember(keys, scope);
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let mut asked = self.question(&call);
            let began = Instant::now();
            let before = match &mut asked {
                Some(asked) => asked.look(self, began + BEFORE).await,
                None => None,
            };
            let spent = began.elapsed();
            let formatting = self.formatting(&call).await;
            let mut result = self.inner.run(call).await;
            if let Some((paths, scope, cancel)) = formatting.filter(|_| !result.error) {
                for path in &paths {
                    let formatted = self.formatters.format(&self.files, path, &scope, &cancel).await;
                    result.parts.extend(formatted.map(Part::text));
                }
            }
            if let (Some(asked), Some(before), false) = (asked, before, result.error) {
                let until = Instant::now() + LONGEST.saturating_sub(spent);
                let new = asked.look_for_new(self, &before, until).await;
                result.parts.extend(describe(&new, &asked.scope).map(Part::text));
            }
            result
        })
    }
}

/// Who is asked about which files.
struct Question {
    paths: Vec<PathBuf>,
    scope: Scope,
    context: Arc<dyn ToolContext>,
    cancel: CancellationToken,
    by_editor: bool,
}

impl CheckedEdit {
    /// The files of the workspace that a call names.
    fn paths_of(&self, call: &Invocation) -> Vec<ResolvedPath> {
        let named = named_paths(&call.input);
        let resolved = named.iter().filter_map(|text| self.files.paths.resolve(text, &call.scope).ok());
        resolved.filter(ResolvedPath::is_inside).take(MOST_FILES).collect()
    }

    /// What is to be formatted after the call. An editor that holds the text formats by its own rules.
    async fn formatting(&self, call: &Invocation) -> Option<Formatting> {
        if self.formatters.lines.is_empty() || call.context.abilities().write_text {
            return None;
        }
        let mut paths = Vec::new();
        for path in self.paths_of(call) {
            let before = self.formatters.bytes_before(&self.files, &path).await;
            paths.push((path, before));
        }
        Some((paths, call.scope.clone(), call.cancel.clone()))
    }

    /// `None`: nobody can tell without delay.
    fn question(&self, call: &Invocation) -> Option<Question> {
        let by_editor = call.context.abilities().diagnostics;
        if !by_editor && self.services.is_none() {
            return None;
        }
        let mut paths: Vec<PathBuf> = self.paths_of(call).iter().map(|path| path.path().to_owned()).collect();
        if !by_editor {
            let services = self.services.as_ref()?;
            paths.retain(|path| services.is_running_for(path, &call.scope.roots));
        }
        let (scope, context, cancel) = (call.scope.clone(), call.context.clone(), call.cancel.clone());
        (!paths.is_empty()).then_some(Question { paths, scope, context, cancel, by_editor })
    }
}

impl Question {
    /// The diagnostics of the files; `None` where they do not come in time.
    async fn look(&self, edit: &CheckedEdit, until: Instant) -> Option<Vec<Diagnostic>> {
        let mut all = Vec::new();
        for path in &self.paths {
            let left = until.saturating_duration_since(Instant::now());
            let asked = HostCall::Diagnostics { path: Some(path.clone()) };
            let answer = async {
                if self.by_editor {
                    return self.context.host(asked, left).await.ok();
                }
                let services = edit.services.as_ref()?;
                services.ask(asked, &self.scope.roots, left).await.ok().map(|answer| answer.reply)
            };
            let reply = tokio::select! {
                reply = timeout_at(until, answer) => reply.ok().flatten(),
                () = self.cancel.cancelled() => None,
            };
            let Some(HostReply::Diagnostics(found)) = reply else { return None };
            all.extend(found.into_iter().filter(|one| one.path == *path));
        }
        Some(all)
    }

    /// The diagnostics that were not there before the change.
    async fn look_for_new(
        &self,
        edit: &CheckedEdit,
        before: &[Diagnostic],
        until: Instant,
    ) -> Vec<Diagnostic> {
        if !self.by_editor {
            return new_since(before, self.look(edit, until).await.unwrap_or_default());
        }
        let is_barren = edit.barren.load(Ordering::Relaxed) >= MOST_BARREN;
        for wait in LOOKS.into_iter().take(if is_barren { 1 } else { LOOKS.len() }) {
            tokio::select! {
                () = tokio::time::sleep_until(until.min(Instant::now() + wait)) => {}
                () = self.cancel.cancelled() => return Vec::new(),
            }
            let Some(after) = self.look(edit, until).await else { return Vec::new() };
            // A different answer is one about the changed file.
            if !is_same(before, &after) {
                edit.barren.store(0, Ordering::Relaxed);
                return new_since(before, after);
            }
        }
        edit.barren.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }
}

/// Paths that the input of a call names: as an argument, or in a patch.
fn named_paths(input: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, value) in input.as_object().into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        if matches!(name.as_str(), "path" | "file_path" | "destination") {
            paths.push(text.to_owned());
        }
        let headers = ["*** Update File: ", "*** Add File: ", "*** Move to: ", "+++ b/"];
        let in_patch =
            text.lines().filter_map(|line| headers.iter().find_map(|head| line.strip_prefix(head)));
        paths.extend(in_patch.map(|path| path.trim().to_owned()));
    }
    paths.sort();
    paths.dedup();
    paths
}

/// What a diagnostic says, wherever it stands: a change moves those behind it.
fn saying(one: &Diagnostic) -> (PathBuf, String, String, Option<String>) {
    (one.path.clone(), one.severity.to_string(), one.message.clone(), one.code.clone())
}

fn is_same(before: &[Diagnostic], after: &[Diagnostic]) -> bool {
    before.len() == after.len() && new_since(before, after.to_vec()).is_empty()
}

fn new_since(before: &[Diagnostic], after: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut known: HashMap<_, usize> = HashMap::new();
    for one in before {
        *known.entry(saying(one)).or_default() += 1;
    }
    let is_new = |one: &Diagnostic| match known.get_mut(&saying(one)) {
        Some(left @ 1..) => {
            *left -= 1;
            false
        }
        Some(0) | None => true,
    };
    after.into_iter().filter(is_new).collect()
}

fn describe(new: &[Diagnostic], scope: &Scope) -> Option<String> {
    if new.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = new.iter().take(MOST).map(|one| describe_line(one, scope)).collect();
    if new.len() > MOST {
        lines.push(format!("[{} more]", new.len() - MOST));
    }
    Some(format!("New since this change:\n{}", lines.join("\n")))
}
