//! The end of everything: sessions flush, servers end, hooks of the end run.
//!
//! Invariant: it takes no longer than its deadlines, whatever hangs.

use std::sync::Arc;
use std::time::Duration;

use config::HookEvent;
use domain::command::Command;
use domain::{CancellationToken, Failure, Reply};
use futures_util::future::join_all;
use session::Message;
use session::actor::TURN_SHUTDOWN_TIMEOUT;
use session::refusal::refuse;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Router;
use crate::hooks;
use crate::workspace::Workspace;
use crate::{SESSION_END_HOOKS_TIMEOUT, SHUTDOWN_TIMEOUT};

/// `sessionStart` hooks run after this delay, so that they do not slow the first answer.
const START_DELAY: Duration = Duration::from_millis(150);
/// What the sessions may take of [`SHUTDOWN_TIMEOUT`]: to stop their turns and to flush.
const SESSIONS_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(450);

// Each deadline leaves time for what comes after it.
const _: () = assert!(TURN_SHUTDOWN_TIMEOUT.as_millis() + 100 <= SESSIONS_SHUTDOWN_TIMEOUT.as_millis());
const _: () = assert!(SESSIONS_SHUTDOWN_TIMEOUT.as_millis() + 100 <= SHUTDOWN_TIMEOUT.as_millis());

impl Router {
    /// Every session stops its turn and flushes; then the servers end.
    pub(super) fn shutdown(&mut self, reply: Reply<()>) {
        self.is_down = true;
        for command in std::mem::take(&mut self.waiting).into_values().flatten() {
            refuse(command, Failure::closed());
        }
        let sessions: Vec<_> = self.sessions.drain().map(|(_, mailbox)| mailbox).collect();
        let workspaces: Vec<_> = self.workspaces.drain(..).map(|known| known.workspace).collect();
        let begun = Instant::now();
        tokio::spawn(async move {
            let stops = sessions.into_iter().map(|mailbox| async move {
                let (reply, stopped) = oneshot::channel();
                if mailbox.send(Message { frontend: None, command: Command::Shutdown { reply } }).is_ok() {
                    let _ = stopped.await;
                }
            });
            let _ = tokio::time::timeout_at(begun + SESSIONS_SHUTDOWN_TIMEOUT, join_all(stops)).await;
            let hooks = workspaces.iter().filter_map(|known| run_session_hooks(known, HookEvent::SessionEnd));
            let hooks = join_all(hooks.collect::<Vec<_>>());
            let sources = workspaces.iter().flat_map(|workspace| &workspace.sources);
            let ends = join_all(sources.map(|source| source.shutdown()));
            let _ = tokio::time::timeout_at(begun + SHUTDOWN_TIMEOUT, ends).await;
            let _ = tokio::time::timeout(SESSION_END_HOOKS_TIMEOUT, hooks).await;
            let _ = reply.send(Ok(()));
        });
    }
}

/// Runs the hooks of a program's start or end beside everything else.
pub(super) fn run_session_hooks(workspace: &Arc<Workspace>, event: HookEvent) -> Option<JoinHandle<()>> {
    hooks::has(workspace, event).then(|| {
        let workspace = workspace.clone();
        tokio::spawn(async move {
            if event == HookEvent::SessionStart {
                // Nothing is started before the first answer.
                tokio::time::sleep(START_DELAY).await;
            }
            hooks::run_outside(&workspace, event, serde_json::Map::new(), CancellationToken::new()).await;
        })
    })
}
