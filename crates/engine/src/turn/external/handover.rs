//! What an agent knows of a chat: which of its sessions belongs to the chat, and what was said since. Pure.
//!
//! The journal keeps it in the items that the agent made: each has a provider block with the agent's session. Invariant:
//! an agent never goes on in a session that has seen what the user took back, or that belongs to another chat.

use domain::item::{Item, ItemKind, Part, ProviderBlock};
use domain::{SessionId, TurnId};
use serde_json::json;
use session::state::State;

use crate::turn::compaction::transcript;
use crate::turn::prompt;

/// The format of the provider blocks of agents.
pub(super) const FORMAT: &str = "acp";
/// Bytes of the history that are handed over as text.
const MOST_HISTORY: usize = 200_000;

/// What begins the name of a model that is an agent.
pub const AGENT_PREFIX: &str = "acp:";

/// What an agent must be told before the prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Handover {
    /// The agent's session of this chat.
    pub(super) known: Option<String>,
    /// What was said in the chat that this session has not seen; empty where there is nothing.
    pub(super) unseen: String,
    /// Everything that was said, for an agent that has lost its session.
    pub(super) everything: String,
}

/// The short name in `acp:NAME/MODEL`.
pub(super) fn agent_of(model: &str) -> &str {
    let name = model.strip_prefix(AGENT_PREFIX).unwrap_or(model);
    name.split_once('/').map_or(name, |(name, _)| name)
}

/// The mark of items that an agent made in one of its sessions.
pub(super) fn mark(model: &str, session: &str, chat: &SessionId) -> ProviderBlock {
    let data = json!({"session": session, "chat": chat.as_str()});
    ProviderBlock { format: FORMAT.to_owned(), model: model.to_owned(), data }
}

/// Whether an agent made the item.
pub fn is_of_agent(item: &Item) -> bool {
    provider(item).is_some_and(|provider| provider.format == FORMAT)
}

fn provider(item: &Item) -> Option<&ProviderBlock> {
    match &item.kind {
        ItemKind::AgentMessage { provider, .. } | ItemKind::Reasoning { provider, .. } => provider.as_ref(),
        ItemKind::ToolCall(call) => call.provider.as_ref(),
        ItemKind::UserMessage { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Flag { .. }
        | ItemKind::Note(_) => None,
    }
}

/// What to hand over for the prompt of `turn`.
pub(super) fn plan(state: &State, chat: &SessionId, model: &str, turn: TurnId) -> Handover {
    let items = state.items();
    let is_own = |item: &&Item| {
        provider(item).is_some_and(|it| {
            it.format == FORMAT && agent_of(&it.model) == agent_of(model) && it.data["chat"] == chat.as_str()
        })
    };
    let everything = history(state, |item| item.turn < turn);
    let Some(last) = items.iter().rfind(is_own) else {
        return Handover { known: None, unseen: everything.clone(), everything };
    };
    let session = provider(last).and_then(|it| it.data["session"].as_str()).unwrap_or_default();
    let in_session =
        |item: &&Item| is_own(item) && provider(item).is_some_and(|it| it.data["session"] == session);
    let first = items.iter().find(in_session).map_or(last.turn, |item| item.turn);
    if !is_unbroken(items, first, turn) {
        return Handover { known: None, unseen: everything.clone(), everything };
    }
    let unseen = history(state, |item| item.turn > last.turn && item.turn < turn);
    Handover { known: Some(session.to_owned()), unseen, everything }
}

/// Whether no turn from `first` on was taken back. A turn that was has left a gap in the numbers.
fn is_unbroken(items: &[Item], first: TurnId, now: TurnId) -> bool {
    (first.0..now.0).all(|number| items.iter().any(|item| item.turn.0 == number))
}

/// The end of the history of some items, as text.
fn history(state: &State, wanted: impl Fn(&Item) -> bool) -> String {
    let mut part = State::default();
    let items = state.items().iter().filter(|item| wanted(item)).cloned();
    for (number, item) in (1..).zip(items) {
        part.fold(number, &domain::Fact::ItemEnded { item });
    }
    let entries = prompt::entries(&part, false);
    let text = transcript::parts(&entries, usize::MAX).concat();
    let start = text.ceil_char_boundary(text.len().saturating_sub(MOST_HISTORY));
    if start == 0 { text } else { format!("(The beginning is left out.)\n{}", &text[start..]) }
}

/// The parts of a prompt with the history before them.
pub(super) fn with_history(history: &str, parts: Vec<Part>) -> Vec<Part> {
    if history.is_empty() {
        return parts;
    }
    let text = format!(
        "<earlier-conversation>\n{history}\n</earlier-conversation>\nThat was said in this chat before, by the user and by other \
         assistants. Take it as known, and answer what follows."
    );
    std::iter::once(Part::text(text)).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use domain::{Fact, ItemId};

    use super::*;

    const MODEL: &str = "acp:double/default";

    fn state(items: Vec<(u64, ItemKind)>) -> State {
        let mut state = State::default();
        for (number, (turn, kind)) in (1..).zip(items) {
            let item = Item { id: ItemId(number), turn: TurnId(turn), step: 0, parent: None, kind };
            state.fold(number, &Fact::ItemEnded { item });
        }
        state
    }

    fn user(text: &str) -> ItemKind {
        ItemKind::UserMessage { text: text.into(), parts: vec![Part::text(text)] }
    }

    fn answer(text: &str, session: Option<&str>, chat: &str) -> ItemKind {
        let provider = session.map(|session| mark(MODEL, session, &SessionId::new(chat)));
        ItemKind::AgentMessage { text: text.into(), interrupted: false, provider }
    }

    fn planned(items: Vec<(u64, ItemKind)>, turn: u64) -> Handover {
        plan(&state(items), &SessionId::new("chat"), "acp:double/other", TurnId(turn))
    }

    #[test]
    fn a_session_goes_on_and_learns_what_others_said() {
        let own = |turn: u64| [(turn, user("u")), (turn, answer("a", Some("s1"), "chat"))];
        let first = planned(vec![(1, user("now"))], 1);
        assert_eq!(first, Handover::default());
        let second = planned([own(1).to_vec(), vec![(2, user("now"))]].concat(), 2);
        assert_eq!((second.known.as_deref(), second.unseen.as_str()), (Some("s1"), ""));
        assert!(second.everything.contains("User: u") && !second.everything.contains("now"));
        let other = vec![(2, user("to another")), (2, answer("by another", None, "")), (3, user("now"))];
        let third = planned([own(1).to_vec(), other].concat(), 3);
        assert_eq!(third.known.as_deref(), Some("s1"));
        assert_eq!(third.unseen, "User: to another\n\nAssistant: by another");
    }

    #[test]
    fn a_session_that_saw_too_much_or_belongs_to_another_chat_is_left() {
        let own = |chat: &str| vec![(1, user("u")), (1, answer("a", Some("s1"), chat))];
        let rolled_back = planned([own("chat"), vec![(3, user("now"))]].concat(), 3);
        assert_eq!(rolled_back.known, None, "turn 2 was taken back");
        assert!(rolled_back.unseen.contains("Assistant: a"));
        let forked = planned([own("the original"), vec![(2, user("now"))]].concat(), 2);
        assert_eq!(forked.known, None);
        let of_another_agent = plan(
            &state([own("chat"), vec![(2, user("now"))]].concat()),
            &SessionId::new("chat"),
            "acp:codex/default",
            TurnId(2),
        );
        assert_eq!(of_another_agent.known, None);
        assert!(of_another_agent.unseen.contains("User: u"));
    }

    #[test]
    fn a_long_history_is_cut_at_its_beginning() {
        let long =
            planned(vec![(1, user(&"ü".repeat(MOST_HISTORY))), (1, user("the end")), (2, user("now"))], 2);
        assert!(long.unseen.len() < MOST_HISTORY + 100 && long.unseen.ends_with("the end"));
    }
}
