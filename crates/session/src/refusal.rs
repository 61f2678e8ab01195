//! The answer to a command that cannot be carried out: whatever its reply is, it gets the failure.

use domain::{Command, Failure};
use tokio::sync::mpsc;

use crate::actor_data::Message;

/// Answers everything that still came to a chat that takes no more.
pub async fn reject_all(mut mailbox: mpsc::UnboundedReceiver<Message>, failure: &Failure) {
    mailbox.close();
    while let Some(message) = mailbox.recv().await {
        refuse(message.command, failure.clone());
    }
}

/// Answers a command that cannot be carried out.
pub fn refuse(command: Command, failure: Failure) {
    command.refuse(failure);
}
