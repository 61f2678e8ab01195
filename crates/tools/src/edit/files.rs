//! The files a session works on: on disk or in the client's buffers, looked at before a change and after it.
//!
//! Invariant: nothing is written over that the session has not seen: a file that changed since it was read, since its
//! change was approved, or that has unsaved text in the client, is refused.

use std::sync::Arc;

use domain::tool::{Invocation, Scope};
use domain::tool_call::{Details, FileChange, Location};
use domain::{CancellationToken, HostCall, HostReply, Review};

use super::diff::file_change;
use super::disk::{self, WriteMethod};
use super::document::Document;
use super::line_ends::NormalizedText;
use super::plan::{Change, PlannedChange, plan};
use super::run_later;
use super::seen::{SeenFiles, SeenVia, TextStamp};
use crate::options::Limits;
use crate::paths::{ForbiddenPaths, Paths, ResolvedPath};

pub struct Files {
    pub paths: Paths,
    pub seen: SeenFiles,
    pub limits: Limits,
}

/// A file as it is when it is about to be changed.
pub struct CurrentFile {
    /// `None`: it does not exist.
    pub document: Option<Document>,
    route: WriteRoute,
}

impl CurrentFile {
    /// A file as it was just written.
    pub(crate) fn written(document: Document, is_in_client: bool) -> Self {
        let route = if is_in_client { WriteRoute::Client } else { WriteRoute::Disk };
        Self { document: Some(document), route }
    }

    /// It is written through the client.
    pub(crate) fn is_in_client(&self) -> bool {
        self.route == WriteRoute::Client
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WriteRoute {
    Disk,
    /// Through the client, which then holds the text.
    Client,
}

impl Files {
    /// What a change would do, as far as the disk tells.
    pub fn review(&self, text: &str, change: &Change, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { changes: true, ..Review::default() };
        let (summary, change) = self.review_change(text, change, scope, &mut review)?;
        review.summary = summary;
        review.details = change.map(Details::FileChange);
        Ok(review)
    }

    /// Adds one of several changes to a review. Says what it would be, and what it would look like where that is known.
    pub fn review_change(
        &self,
        text: &str,
        change: &Change,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<(String, Option<FileChange>), String> {
        let path = self.paths.review("path", text, scope, review)?;
        review.locations.push(Location { path: path.path().to_owned(), line: None });
        // A refusal could show what is in it. The rule decides about the path.
        if ForbiddenPaths::new(scope)?.contains(path.path()) {
            return Ok((format!("Changing {}", path.shown()), None));
        }
        let known = self.seen.get(&scope.session, path.path());
        let read = known.filter(|entry| entry.how != SeenVia::Reviewed);
        let in_client = known.is_some_and(|entry| entry.how == SeenVia::Client);
        let document = self.load_document(&path)?;
        if let (Some(document), Some(entry)) = (&document, read)
            && !in_client
            && entry.stamp != TextStamp::from_text(document.text())
        {
            return Err(self.describe_change(
                &path,
                document,
                scope,
                path.is_inside().then_some(SeenVia::Disk),
            ));
        }
        let old = document.as_ref().map(Document::text);
        let planned = plan(document.as_ref(), change);
        let texts = planned.as_ref().ok().map(|planned| (old.unwrap_or_default(), planned.text.as_str()));
        run_later::require_approval(&path, texts, review);
        let change = match planned {
            Ok(planned) => Some(file_change(path.path(), path.shown(), old, &planned.text)),
            // The client's text or a file that only an approved call may look at decides later.
            Err(_) if in_client || !path.is_inside() => None,
            Err(refused) => return Err(refused.into_message(read.is_some())),
        };
        if let Some(document) = &document {
            let stamp = TextStamp::from_text(document.text());
            self.seen.record(&scope.session, path.path(), stamp, SeenVia::Reviewed);
        }
        let what = if document.is_some() { "Editing" } else { "Creating" };
        Ok((format!("{what} {}", path.shown()), change))
    }

    /// The file as the client or the disk has it, refused where the two differ and the disk is to be written.
    pub async fn current(
        self: &Arc<Self>,
        path: &ResolvedPath,
        call: &Invocation,
    ) -> Result<CurrentFile, String> {
        let document = self.blocking(path, |files, path| files.load_document(&path)).await?;
        let abilities = call.context.abilities();
        let text = if abilities.read_text { self.client_text(path, call).await? } else { None };
        let Some(text) = text else {
            // A client that cannot read a file may still create one.
            let route = if abilities.write_text && document.is_none() {
                WriteRoute::Client
            } else {
                WriteRoute::Disk
            };
            return Ok(CurrentFile { document, route });
        };
        let Some(document) = document else {
            if abilities.write_text {
                return Ok(CurrentFile {
                    document: Some(Document::from_text(&text)),
                    route: WriteRoute::Client,
                });
            }
            return Err(describe_unsaved(path));
        };
        // A client that shows `\r\n` as `\n` would not write the same bytes back.
        let loses_line_ends = document.text().contains("\r\n") && !text.contains("\r\n");
        // An editor would write through to the other names of the file.
        let is_shared = self.blocking(path, |_, path| Ok(disk::has_other_names(&path))).await?;
        if abilities.write_text && document.is_plain() && !loses_line_ends && !is_shared {
            return Ok(CurrentFile { document: Some(Document::from_text(&text)), route: WriteRoute::Client });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if NormalizedText::new(text).text() != NormalizedText::new(document.text()).text() {
            return Err(describe_unsaved(path));
        }
        Ok(CurrentFile { document: Some(document), route: WriteRoute::Disk })
    }

    /// Refuses a file that is not as the session saw it. The answer shows the new content.
    pub fn check_seen(
        &self,
        path: &ResolvedPath,
        current: &CurrentFile,
        scope: &Scope,
    ) -> Result<(), String> {
        let (Some(document), Some(entry)) = (&current.document, self.seen.get(&scope.session, path.path()))
        else {
            return Ok(());
        };
        // A review looked at the disk and says nothing about a client's text.
        if entry.how == SeenVia::Reviewed && current.route == WriteRoute::Client {
            return Ok(());
        }
        if entry.stamp == TextStamp::from_text(document.text()) {
            return Ok(());
        }
        let how = if current.route == WriteRoute::Client { SeenVia::Client } else { SeenVia::Disk };
        Err(self.describe_change(path, document, scope, Some(how)))
    }

    /// Writes what was planned; says what is worth saying about how.
    pub async fn write(
        self: &Arc<Self>,
        path: &ResolvedPath,
        current: CurrentFile,
        planned: PlannedChange,
        call: &Invocation,
    ) -> Result<Option<String>, String> {
        let stamp = TextStamp::from_text(&planned.text);
        let (how, notice) = match current.route {
            WriteRoute::Client => {
                self.write_through_client(path, &planned.text, call).await?;
                (SeenVia::Client, None)
            }
            WriteRoute::Disk => {
                let written = self
                    .blocking(path, move |_, path| {
                        disk::replace(&path, current.document.as_ref().map(Document::bytes), &planned.bytes)
                    })
                    .await?;
                (SeenVia::Disk, describe_write(written))
            }
        };
        self.seen.record(&call.scope.session, path.path(), stamp, how);
        Ok(notice)
    }

    /// The text a client has of a file; `None` where it has none.
    pub async fn client_text(
        &self,
        path: &ResolvedPath,
        call: &Invocation,
    ) -> Result<Option<String>, String> {
        let read = HostCall::ReadText { path: path.path().to_owned() };
        match unless_cancelled(&call.cancel, call.context.host(read, self.limits.host_time)).await? {
            Ok(HostReply::Text(text)) => Ok(Some(text)),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Runs disk work on a thread that may wait.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        path: &ResolvedPath,
        work: impl FnOnce(&Self, ResolvedPath) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (files, path) = (self.clone(), path.clone());
        blocking(move || work(&files, path)).await
    }

    pub(crate) fn load_document(&self, path: &ResolvedPath) -> Result<Option<Document>, String> {
        let Some(loaded) = disk::load(path, self.limits.file_bytes)? else { return Ok(None) };
        match Document::read(loaded.bytes) {
            Ok(document) => Ok(Some(document)),
            Err(_) => Err(format!("{} is not a text file.", path.shown())),
        }
    }

    async fn write_through_client(
        &self,
        path: &ResolvedPath,
        text: &str,
        call: &Invocation,
    ) -> Result<(), String> {
        let shown = path.shown();
        let write = HostCall::WriteText { path: path.path().to_owned(), text: text.to_owned() };
        // Not given up when the call is stopped: whether it was written must be known.
        call.context
            .host(write, self.limits.host_time)
            .await
            .map_err(|failure| format!("The editor did not write {shown}: {failure}"))?;
        let read = HostCall::ReadText { path: path.path().to_owned() };
        match call.context.host(read, self.limits.host_time).await {
            Ok(HostReply::Text(back)) if back == text => Ok(()),
            Ok(HostReply::Text(back)) => {
                self.seen.record(
                    &call.scope.session,
                    path.path(),
                    TextStamp::from_text(&back),
                    SeenVia::Client,
                );
                let change = file_change(path.path(), shown, Some(text), &back);
                Err(format!("The editor changed {shown} while it wrote it (a formatter?):\n{}", change.diff))
            }
            Ok(_) => Err(format!(
                "The editor wrote {shown} but did not give it back. Read it to see what it holds."
            )),
            Err(failure) => Err(format!("The editor wrote {shown} but could not read it back: {failure}")),
        }
    }

    /// `tell`: the new content may be told, and where it comes from.
    fn describe_change(
        &self,
        path: &ResolvedPath,
        document: &Document,
        scope: &Scope,
        tell: Option<SeenVia>,
    ) -> String {
        let shown = path.shown();
        let text = document.shown();
        let Some(how) = tell.filter(|_| text.len() <= self.limits.output_bytes) else {
            return format!("{shown} was changed since you read it; nothing was written. Read it again.");
        };
        self.seen.record(&scope.session, path.path(), TextStamp::from_text(document.text()), how);
        let text = NormalizedText::new(&text).text().to_owned();
        format!("{shown} was changed since you read it; nothing was written. It holds this now:\n{text}")
    }
}

/// Runs work on a thread that may wait.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| "The tool failed. This is a bug in Dragoman.".to_owned())?
}

/// `Err` when the call is stopped first.
pub async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, String> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err("The call was stopped.".to_owned()),
        done = work => Ok(done),
    }
}

fn describe_write(written: WriteMethod) -> Option<String> {
    match written {
        WriteMethod::Renamed => None,
        WriteMethod::Unlinked { links } => Some(format!(
            "It shared its contents with {} other names (hard links), which keep the old contents.",
            links - 1
        )),
        WriteMethod::Owned => Some("It belongs to somebody else, so it was rewritten in place.".to_owned()),
    }
}

fn describe_unsaved(path: &ResolvedPath) -> String {
    let shown = path.shown();
    format!("{shown} has unsaved changes in the editor. Ask the user to save or discard them first.")
}
