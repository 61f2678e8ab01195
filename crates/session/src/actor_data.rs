//! What the actor of a session holds. Plain data; `actor` handles commands with it, `lease` and `remote` keep the right to write.

use std::sync::Arc;

use domain::command::Command;
use domain::queue::EventSender;
use domain::{Abilities, CancellationToken, Failure, Outcome, Peers, RemoteChat, TurnId};
use tokio::task::JoinHandle;

use crate::attached_frontend::AttachedFrontend;

/// A message to a session's actor.
pub struct Message {
    pub frontend: Option<AttachedFrontend>,
    pub command: Command,
}

/// Who may write the chat.
#[derive(PartialEq, Debug)]
pub(crate) enum LeaseState {
    /// Nobody asked yet.
    Unknown,
    Held,
    HeldBy {
        /// For people.
        holder: String,
        /// Where it lets other processes attach.
        address: Option<String>,
    },
}

pub(crate) struct RunningTurn {
    pub(crate) id: TurnId,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: JoinHandle<Outcome>,
}

/// The actor of one chat. `S`: the session as the layers above hold it.
pub struct Actor<S> {
    pub session: Arc<S>,
    pub(crate) lease: LeaseState,
    pub(crate) updated_at: u64,
    pub(crate) peers: Option<Arc<dyn Peers>>,
    /// Set while another process holds the chat and this one works through it.
    pub(crate) remote: Option<RemoteChat>,
    /// The link to the holder is lost or could not be made yet: it is tried again.
    pub(crate) wants_remote: bool,
    /// When a chat of another process is looked at again.
    pub(crate) next_look: tokio::time::Instant,
    /// Why there is no link to the holder.
    pub(crate) unattached: Option<Failure>,
    /// What the person in front of this process can be asked.
    pub(crate) abilities: Option<Abilities>,
    /// Windows of other processes on this chat; they leave it with this actor.
    pub(crate) visitors: Vec<EventSender>,
    pub(crate) created_at: u64,
    pub(crate) turn: Option<RunningTurn>,
    /// A task watches over the lease.
    pub(crate) is_guarded: bool,
}
