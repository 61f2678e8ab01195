//! Questions of subagents in the chats of their parents, for front-ends that do not show the chats of subagents.
//!
//! Must not know what is asked. Invariants: a person sees the whole call that waits, as a call of the parent's chat; the
//! model of the parent is never sent it; nothing is raised or ended in a turn that is over.

use std::sync::Arc;

use domain::event::Fact;
use domain::item::{Item, ItemKind};
use domain::tool_call::{ToolInput, next};
use domain::{Answer, Ask, AskKind, CancellationToken, Failure, ItemId, TurnId};

use session::asks::PendingAsk;

use crate::session::{Inherited, Relay, Session};

/// A call of a subagent as it is in its parent's chat.
pub(crate) struct RelayedCall {
    parent: Arc<Session>,
    relay: Relay,
    id: ItemId,
    step: u32,
    ask: PendingAsk,
}

/// Shows a call of a subagent that waits for a person in the parent's chat. `None`: the person sees the subagent's chat.
pub(crate) async fn raise_call(
    session: &Session,
    item: &Item,
    kind: AskKind,
) -> Result<Option<RelayedCall>, Failure> {
    let Some(Inherited { parent, relay: Some(relay), .. }) = &session.inherited else { return Ok(None) };
    let step = {
        let state = parent.state();
        state.items().iter().find(|item| item.id == relay.call).map_or(0, |item| item.step)
    };
    let ask = parent.asks.wait_for(parent.log.next_ask());
    let asked = ask.id;
    let relayed =
        RelayedCall { parent: parent.clone(), relay: relay.clone(), id: parent.log.next_item(), step, ask };
    let mut shown = relayed.shown(item);
    if let ItemKind::ToolCall(call) = &mut shown.kind {
        call.state = domain::ToolState::Preparing;
    }
    let started = Fact::ItemStarted { item: shown.clone() };
    advance(&mut shown, ToolInput::MustAsk { ask: asked });
    let raised = Ask { id: asked, turn: relay.turn, item: Some(relayed.id), kind };
    let facts = vec![started, Fact::AskRaised { ask: raised }, Fact::ItemChanged { item: shown }];
    let turn = relay.turn;
    let commit = parent.commit_with(|state| if state.open_turn() == Some(turn) { facts } else { Vec::new() });
    commit.on_disk().await?;
    Ok(Some(relayed))
}

impl RelayedCall {
    /// Waits for the answer in the parent's chat, unless the question is settled elsewhere.
    pub(crate) async fn answer(&mut self, cancel: &CancellationToken) -> Answer {
        self.ask.wait(&self.parent, cancel).await
    }

    /// Shows how the call ended.
    pub(crate) fn end(self, item: &Item) {
        let (shown, turn) = (self.shown(item), self.relay.turn);
        self.parent.commit_with(|state| {
            if state.open_turn() == Some(turn) { vec![Fact::ItemEnded { item: shown }] } else { Vec::new() }
        });
    }

    fn shown(&self, item: &Item) -> Item {
        let mut kind = item.kind.clone();
        if let ItemKind::ToolCall(call) = &mut kind {
            let title = if call.summary.is_empty() { &call.name } else { &call.summary };
            call.summary = format!("{}: {title}", self.relay.agent);
        }
        Item { id: self.id, turn: self.relay.turn, step: self.step, parent: Some(self.relay.call), kind }
    }
}

/// Whether an item is a call of a subagent, shown in the chat of its parent for people alone.
pub fn is_relayed(item: &Item) -> bool {
    item.parent.is_some() && matches!(item.kind, ItemKind::ToolCall(_))
}

/// Where a question of a tool is asked: the chat, the turn and the call that waits.
pub(crate) fn place_of_question(
    session: &Arc<Session>,
    turn: TurnId,
    item: Option<ItemId>,
) -> (Arc<Session>, TurnId, Option<ItemId>) {
    match &session.inherited {
        Some(Inherited { parent, relay: Some(relay), .. }) => (parent.clone(), relay.turn, Some(relay.call)),
        _ => (session.clone(), turn, item),
    }
}

fn advance(item: &mut Item, input: ToolInput) {
    if let ItemKind::ToolCall(call) = &mut item.kind
        && let Ok(state) = next(&call.state, input)
    {
        call.state = state;
    }
}
