//! The answer to a command that cannot be carried out.

use crate::command::Command;
use crate::failure::Failure;

impl Command {
    /// Answers a command that cannot be carried out: whatever its reply is, it gets the failure.
    pub fn refuse(self, failure: Failure) {
        macro_rules! send {
            ($reply:expr) => {{
                let _ = $reply.send(Err(failure));
            }};
        }
        match self {
            Self::Open { reply, .. } | Self::Load { reply, .. } | Self::Fork { reply, .. } => {
                send!(reply)
            }
            Self::Close { reply, .. }
            | Self::Delete { reply, .. }
            | Self::Rollback { reply, .. }
            | Self::Flag { reply, .. }
            | Self::Steer { reply, .. }
            | Self::CancelCall { reply, .. }
            | Self::ServerAction { reply, .. }
            | Self::Shutdown { reply } => send!(reply),
            Self::Enter { reply, .. } | Self::Catalog { reply } => send!(reply),
            Self::Preview { reply, .. } => send!(reply),
            Self::Read { reply, .. } => send!(reply),
            Self::List { reply, .. } => send!(reply),
            Self::Configure { reply, .. } => send!(reply),
            Self::Prompt { reply, .. } => send!(reply),
            Self::Contexts { reply, .. } => send!(reply),
            Self::SlashCommands { reply, .. } => send!(reply),
            Self::CompleteArgument { reply, .. } => send!(reply),
            Self::Servers { reply, .. } => send!(reply),
            Self::Providers { reply } => send!(reply),
            Self::Memory { reply } => send!(reply),
            Self::Agent { reply, .. } => send!(reply),
            Self::Login { reply, .. } => send!(reply),
            Self::FinishLogin { reply, .. } | Self::Logout { reply, .. } => send!(reply),
            Self::Jobs { reply } => send!(reply),
            Self::StopJob { reply, .. } => send!(reply),
            Self::JobOutput { reply, .. } => send!(reply),
            Self::ReadFile { reply, .. } => send!(reply),
            Self::Stat { reply, .. } => send!(reply),
            Self::Glob { reply, .. } => send!(reply),
            Self::Complete { reply, .. } => send!(reply),
            Self::Answer { reply, .. } => send!(reply),
            Self::Attach { .. } | Self::Detach | Self::Cancel { .. } => {}
        }
    }
}
