//! Resolves workspaces beside the router, which reads nothing from the disk itself: settings and folders are looked at here.
//!
//! Must not know front-ends. Invariants: every request is answered, within a deadline; a folder that cannot be read, such as
//! one on a network that is away, delays no other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::WorkspaceSpec;
use domain::{Abilities, Failure, FrontendId};
use tokio::sync::{mpsc, oneshot};

use crate::workspace::{OpenWorkspace, Workspace, WorkspaceSource};

/// What reading the settings of a folder may take.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(60);

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
                    let (source, resolved) = (source.clone(), resolved.clone());
                    tokio::spawn(async move {
                        let found = find(source, spec.clone(), is_open, must_exist).await;
                        let _ = resolved.send(ResolvedWorkspace { spec, found, caller });
                    });
                }
            }
        }
    });
    (requests, answers)
}

async fn find(
    source: Arc<dyn WorkspaceSource>,
    spec: WorkspaceSpec,
    is_open: bool,
    must_exist: bool,
) -> Result<Option<Arc<Workspace>>, Failure> {
    let work = tokio::task::spawn_blocking(move || {
        if must_exist {
            must_be_folders(&spec.roots)?;
        }
        Ok((!is_open).then(|| source.workspace(&spec)))
    });
    match tokio::time::timeout(RESOLVE_TIMEOUT, work).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Err(Failure::internal("The settings of a folder could not be read.")),
        Err(_) => Err(Failure::user(format!(
            "The settings of the folder were not read within {} s.",
            RESOLVE_TIMEOUT.as_secs()
        ))
        .hint("Look whether the disk or the network of the folder answers.")),
    }
}

/// A chat in a folder that does not exist could do nothing but fail.
fn must_be_folders(roots: &[PathBuf]) -> Result<(), Failure> {
    match roots.iter().find(|root| !root.is_dir()) {
        None => Ok(()),
        Some(root) => Err(Failure::user(format!("There is no folder {}.", root.display()))
            .hint("Open the chat in a folder that exists.")),
    }
}
