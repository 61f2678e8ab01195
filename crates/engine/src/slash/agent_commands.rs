//! The commands of the agent of another vendor that answers in a chat: they are listed beside ours, and the agent runs them.
//!
//! Invariant: undo and redo stay ours, whatever the agent offers.

use domain::command::{SlashCommand, SlashOrigin};

use crate::session::Session;
use crate::turn::start;

const OURS: [&str; 2] = ["undo", "redo"];

/// Empty where a model of a provider answers, or the agent does not run yet.
pub(super) fn list(session: &Session) -> Vec<SlashCommand> {
    let offers = || start::choose_model(session).ok()?.agent()?.offers(&session.id);
    let commands = offers().map(|offers| offers.slash_commands).unwrap_or_default();
    let command = |(name, description)| {
        let (origin, arguments) = (SlashOrigin::Custom, Vec::new());
        SlashCommand { name, description, origin, arguments }
    };
    commands.into_iter().filter(|(name, _)| !OURS.contains(&name.as_str())).map(command).collect()
}
