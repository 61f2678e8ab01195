//! The files a session works on: on disk or in the client's buffers, looked at before a change and after it.
//!
//! Invariant: nothing is written over that the session has not seen: a file that changed since it was read, since its
//! change was approved, or that has unsaved text in the client, is refused.

use std::sync::Arc;

use domain::tool::{Invocation, Scope};
use domain::tool_call::{Details, Location};
use domain::{CancellationToken, HostCall, HostReply, Review};

use super::diff::file_change;
use super::disk::{self, Written};
use super::document::Document;
use super::line_ends::Plain;
use super::plan::{Change, Planned, plan};
use super::seen::{How, Seen, Stamp};
use crate::options::Limits;
use crate::paths::{Paths, Resolved};

pub struct Files {
    pub paths: Paths,
    pub seen: Seen,
    pub limits: Limits,
}

/// A file as it stands when it is about to be changed.
pub struct Current {
    /// `None`: it does not exist.
    pub document: Option<Document>,
    route: Route,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Disk,
    /// Through the client, which then holds the text.
    Client,
}

impl Files {
    /// What a change would do, as far as the disk tells.
    pub fn review(&self, text: &str, change: &Change, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { changes: true, ..Review::default() };
        let path = self.paths.review("path", text, scope, &mut review)?;
        review.locations.push(Location { path: path.path().to_owned(), line: None });
        path.guard_git(&mut review);
        let known = self.seen.get(&scope.session, path.path());
        let read = known.filter(|entry| entry.how != How::Reviewed);
        let in_client = known.is_some_and(|entry| entry.how == How::Client);
        let document = self.on_disk(&path)?;
        if let (Some(document), Some(entry)) = (&document, read)
            && !in_client
            && entry.stamp != Stamp::of(document.text())
        {
            return Err(self.changed(&path, document, scope, path.is_inside().then_some(How::Disk)));
        }
        let old = document.as_ref().map(Document::text);
        match plan(document.as_ref(), change) {
            Ok(planned) => {
                let change = file_change(path.path(), path.shown(), old, &planned.text);
                review.details = Some(Details::FileChange(change));
            }
            // The client's text or a file that only an approved call may look at decides later.
            Err(_) if in_client || !path.is_inside() => {}
            Err(refused) => return Err(refused.told(read.is_some())),
        }
        let what = if document.is_some() { "Editing" } else { "Creating" };
        review.summary = format!("{what} {}", path.shown());
        if let Some(document) = &document {
            self.seen.put(&scope.session, path.path(), Stamp::of(document.text()), How::Reviewed);
        }
        Ok(review)
    }

    /// The file as the client or the disk has it, refused where the two differ and the disk is to be written.
    pub async fn current(self: &Arc<Self>, path: &Resolved, call: &Invocation) -> Result<Current, String> {
        let document = self.blocking(path, |files, path| files.on_disk(&path)).await?;
        let abilities = call.port.abilities();
        let text = if abilities.read_text { self.client_text(path, call).await? } else { None };
        let Some(text) = text else {
            // A client that cannot read a file may still create one.
            let route = if abilities.write_text && document.is_none() { Route::Client } else { Route::Disk };
            return Ok(Current { document, route });
        };
        let Some(document) = document else {
            if abilities.write_text {
                return Ok(Current { document: Some(Document::from_text(&text)), route: Route::Client });
            }
            return Err(unsaved(path));
        };
        // A client that shows `\r\n` as `\n` would not write the same bytes back.
        let loses_line_ends = document.text().contains("\r\n") && !text.contains("\r\n");
        if abilities.write_text && document.is_plain() && !loses_line_ends {
            return Ok(Current { document: Some(Document::from_text(&text)), route: Route::Client });
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if Plain::new(text).text() != Plain::new(document.text()).text() {
            return Err(unsaved(path));
        }
        Ok(Current { document: Some(document), route: Route::Disk })
    }

    /// Refuses a file that is not as the session saw it. The new content is told.
    pub fn check_seen(&self, path: &Resolved, current: &Current, scope: &Scope) -> Result<(), String> {
        let (Some(document), Some(entry)) = (&current.document, self.seen.get(&scope.session, path.path()))
        else {
            return Ok(());
        };
        // A review looked at the disk and says nothing about a client's text.
        if entry.how == How::Reviewed && current.route == Route::Client {
            return Ok(());
        }
        if entry.stamp == Stamp::of(document.text()) {
            return Ok(());
        }
        let how = if current.route == Route::Client { How::Client } else { How::Disk };
        Err(self.changed(path, document, scope, Some(how)))
    }

    /// Writes what was planned; says what is worth saying about how.
    pub async fn write(
        self: &Arc<Self>,
        path: &Resolved,
        current: Current,
        planned: Planned,
        call: &Invocation,
    ) -> Result<Option<String>, String> {
        let stamp = Stamp::of(&planned.text);
        let (how, note) = match current.route {
            Route::Client => {
                self.through_client(path, &planned.text, call).await?;
                (How::Client, None)
            }
            Route::Disk => {
                let written = self
                    .blocking(path, move |_, path| {
                        disk::replace(&path, current.document.as_ref().map(Document::bytes), &planned.bytes)
                    })
                    .await?;
                (How::Disk, note(written))
            }
        };
        self.seen.put(&call.scope.session, path.path(), stamp, how);
        Ok(note)
    }

    /// The text a client has of a file; `None` where it has none.
    pub async fn client_text(&self, path: &Resolved, call: &Invocation) -> Result<Option<String>, String> {
        let read = HostCall::ReadText { path: path.path().to_owned() };
        match or_stopped(&call.cancel, call.port.host(read, self.limits.host_time)).await? {
            Ok(HostReply::Text(text)) => Ok(Some(text)),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Runs disk work on a thread that may wait.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        path: &Resolved,
        work: impl FnOnce(&Self, Resolved) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (files, path) = (self.clone(), path.clone());
        blocking(move || work(&files, path)).await
    }

    fn on_disk(&self, path: &Resolved) -> Result<Option<Document>, String> {
        let Some(loaded) = disk::load(path, self.limits.file_bytes)? else { return Ok(None) };
        match Document::read(loaded.bytes) {
            Ok(document) => Ok(Some(document)),
            Err(_) => Err(format!("{} is not a text file.", path.shown())),
        }
    }

    async fn through_client(&self, path: &Resolved, text: &str, call: &Invocation) -> Result<(), String> {
        let shown = path.shown();
        let write = HostCall::WriteText { path: path.path().to_owned(), text: text.to_owned() };
        // Not given up when the call is stopped: whether it was written must be known.
        call.port
            .host(write, self.limits.host_time)
            .await
            .map_err(|failure| format!("The editor did not write {shown}: {failure}"))?;
        let read = HostCall::ReadText { path: path.path().to_owned() };
        match call.port.host(read, self.limits.host_time).await {
            Ok(HostReply::Text(back)) if back == text => Ok(()),
            Ok(HostReply::Text(back)) => {
                self.seen.put(&call.scope.session, path.path(), Stamp::of(&back), How::Client);
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
    fn changed(&self, path: &Resolved, document: &Document, scope: &Scope, tell: Option<How>) -> String {
        let shown = path.shown();
        let text = document.shown();
        let Some(how) = tell.filter(|_| text.len() <= self.limits.output_bytes) else {
            return format!("{shown} was changed since you read it; nothing was written. Read it again.");
        };
        self.seen.put(&scope.session, path.path(), Stamp::of(document.text()), how);
        let text = Plain::new(&text).text().to_owned();
        format!("{shown} was changed since you read it; nothing was written. It holds this now:\n{text}")
    }
}

/// Runs work on a thread that may wait.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| "The tool broke down. This is a mistake of ours.".to_owned())?
}

/// `Err` when the call is stopped first.
pub async fn or_stopped<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, String> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err("The call was stopped.".to_owned()),
        done = work => Ok(done),
    }
}

fn note(written: Written) -> Option<String> {
    match written {
        Written::Renamed => None,
        Written::InPlace { links } => Some(format!(
            "It has {links} hard links, so it was rewritten in place and all of them show the change."
        )),
        Written::Owned => Some("It belongs to somebody else, so it was rewritten in place.".to_owned()),
    }
}

fn unsaved(path: &Resolved) -> String {
    let shown = path.shown();
    format!("{shown} has unsaved changes in the editor. Ask the user to save or discard them first.")
}
