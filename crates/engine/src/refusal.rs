//! The answer to a command that cannot be carried out: whatever its reply is, it gets the failure.

use domain::{Command, Failure};
use tokio::sync::mpsc;

use crate::session::actor::Message;

/// Answers everything that still came to a chat that takes no more.
pub(crate) async fn reject_all(mut mailbox: mpsc::UnboundedReceiver<Message>, failure: &Failure) {
    mailbox.close();
    while let Some(message) = mailbox.recv().await {
        refuse(message.command, failure.clone());
    }
}

/// Answers a command that cannot be carried out.
pub(crate) fn refuse(command: Command, failure: Failure) {
    macro_rules! send {
        ($reply:expr) => {{
            let _ = $reply.send(Err(failure));
        }};
    }
    match command {
        Command::Open { reply, .. } | Command::Load { reply, .. } | Command::Fork { reply, .. } => {
            send!(reply)
        }
        Command::Close { reply, .. }
        | Command::Delete { reply, .. }
        | Command::Rollback { reply, .. }
        | Command::Flag { reply, .. }
        | Command::Steer { reply, .. }
        | Command::ServerAction { reply, .. }
        | Command::Shutdown { reply } => send!(reply),
        Command::Enter { reply, .. } | Command::Catalog { reply } => send!(reply),
        Command::Preview { reply, .. } => send!(reply),
        Command::Read { reply, .. } => send!(reply),
        Command::List { reply, .. } => send!(reply),
        Command::Configure { reply, .. } => send!(reply),
        Command::Prompt { reply, .. } => send!(reply),
        Command::Contexts { reply, .. } => send!(reply),
        Command::SlashCommands { reply, .. } => send!(reply),
        Command::CompleteArgument { reply, .. } => send!(reply),
        Command::Servers { reply } => send!(reply),
        Command::Providers { reply } => send!(reply),
        Command::Login { reply, .. } => send!(reply),
        Command::FinishLogin { reply, .. } | Command::Logout { reply, .. } => send!(reply),
        Command::Jobs { reply } => send!(reply),
        Command::StopJob { reply, .. } => send!(reply),
        Command::JobOutput { reply, .. } => send!(reply),
        Command::ReadFile { reply, .. } => send!(reply),
        Command::Stat { reply, .. } => send!(reply),
        Command::Glob { reply, .. } => send!(reply),
        Command::Complete { reply, .. } => send!(reply),
        Command::Answer { reply, .. } => send!(reply),
        Command::Attach { .. } | Command::Detach | Command::Cancel { .. } => {}
    }
}
