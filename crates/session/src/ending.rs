//! How the actor of a chat ends, and what becomes of the commands that came meanwhile.
//!
//! Invariant: each of them is answered: by the next actor of the chat, or with a refusal.

use domain::Failure;
use tokio::sync::mpsc;

use super::actor_data::Message;
use crate::refusal::{refuse, reject_all};

/// How a chat's actor ends, with the reply to the command that ended it.
pub(super) enum Ending {
    /// What came meanwhile is for the next actor, which loads the chat again.
    Closed(FinalReply),
    /// The chat was deleted, or the program ends.
    Gone(FinalReply),
}

type FinalReply = Box<dyn FnOnce() + Send>;

impl Ending {
    pub(super) async fn finish(
        self,
        mut mailbox: mpsc::UnboundedReceiver<Message>,
        returned: &mpsc::UnboundedSender<Message>,
    ) {
        let gone = Failure::user("This chat was just closed or deleted.").hint("Send it again.");
        match self {
            Self::Gone(reply) => {
                reply();
                reject_all(mailbox, &gone).await;
            }
            Self::Closed(reply) => {
                reply();
                while let Some(message) = mailbox.recv().await {
                    // A window of another process looks for the next holder by itself.
                    let is_local = message.frontend.as_ref().is_some_and(|it| !it.abilities.remote);
                    if !is_local {
                        refuse(message.command, gone.clone());
                    } else if let Err(mpsc::error::SendError(message)) = returned.send(message) {
                        refuse(message.command, gone.clone());
                    }
                }
            }
        }
    }
}
