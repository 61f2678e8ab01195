//! Resolves workspaces beside the router, which reads nothing from the disk itself: settings and folders are looked at here.
//!
//! Must not know front-ends. Invariants: one workspace is resolved at a time, in the order of the requests; every request is
//! answered.

use std::path::PathBuf;
use std::sync::Arc;

use domain::command::WorkspaceSpec;
use domain::{Abilities, Failure, FrontendId};
use tokio::sync::{mpsc, oneshot};

use crate::workspace::{OpenWorkspace, Workspace, WorkspaceSource};

pub(super) enum ResolveRequest {
    /// A front-end was attached: workspaces that are resolved later serve it.
    Attached(Abilities),
    Workspace {
        spec: WorkspaceSpec,
        /// It is open already: only its folders are looked at.
        is_open: bool,
        /// Its folders must be there.
        must_exist: bool,
        caller: Caller,
    },
}

/// What waits for a workspace.
pub(super) enum Caller {
    /// The commands of a front-end.
    Frontend(FrontendId),
    /// A chat of folders of its own.
    Chat(oneshot::Sender<Arc<OpenWorkspace>>),
}

pub(super) struct ResolvedWorkspace {
    pub(super) spec: WorkspaceSpec,
    /// `None`: it was open already.
    pub(super) found: Result<Option<Arc<Workspace>>, Failure>,
    pub(super) caller: Caller,
}

/// Starts the task; it ends with the router.
pub(super) fn start(
    source: Arc<dyn WorkspaceSource>,
) -> (mpsc::UnboundedSender<ResolveRequest>, mpsc::UnboundedReceiver<ResolvedWorkspace>) {
    let (requests, mut incoming) = mpsc::unbounded_channel();
    let (resolved, answers) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(request) = incoming.recv().await {
            match request {
                ResolveRequest::Attached(abilities) => source.attached(&abilities),
                ResolveRequest::Workspace { spec, is_open, must_exist, caller } => {
                    let (source, wanted) = (source.clone(), spec.clone());
                    let work = move || {
                        if must_exist {
                            must_be_folders(&wanted.roots)?;
                        }
                        Ok((!is_open).then(|| source.workspace(&wanted)))
                    };
                    let broken = |_| Err(Failure::internal("The settings of a folder could not be read."));
                    let found = tokio::task::spawn_blocking(work).await.unwrap_or_else(broken);
                    if resolved.send(ResolvedWorkspace { spec, found, caller }).is_err() {
                        return;
                    }
                }
            }
        }
    });
    (requests, answers)
}

/// A chat in a folder that does not exist could do nothing but fail.
fn must_be_folders(roots: &[PathBuf]) -> Result<(), Failure> {
    match roots.iter().find(|root| !root.is_dir()) {
        None => Ok(()),
        Some(root) => Err(Failure::user(format!("There is no folder {}.", root.display()))
            .hint("Open the chat in a folder that exists.")),
    }
}
