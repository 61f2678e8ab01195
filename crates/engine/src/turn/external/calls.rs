//! The tool calls and the plan of an agent as items of the chat.
//!
//! Must not decide about calls. Invariants: a call is an item from its first update on and ends once; updates of a call that
//! is over change nothing; output on its way is shown and not kept, the whole of it is kept at the end.

use std::collections::HashMap;
use std::time::Instant;

use domain::agent::{AgentCall, CallKind, CallStatus};
use domain::event::{Channel, EventBody, Fact};
use domain::item::{Item, ItemKind, Part, PlanEntry, ProviderBlock};
use domain::tool_call::{Details, Origin, ToolCall, ToolInput, ToolState, next};
use domain::{ItemDelta, TurnId};
use serde_json::json;

use crate::session::Session;
use crate::tool_calls::agent_tools::text_of;
use crate::tool_calls::foreign::name_of;

pub(super) struct AgentCalls<'a> {
    session: &'a Session,
    turn: TurnId,
    step: u32,
    agent: String,
    mark: ProviderBlock,
    /// By the agent's own ids.
    calls: HashMap<String, KnownCall>,
    plan: Option<Item>,
}

struct KnownCall {
    item: Item,
    /// Everything that the agent said of it.
    merged: AgentCall,
    since: Instant,
    /// Bytes of output that were shown.
    shown: usize,
}

impl<'a> AgentCalls<'a> {
    pub(super) fn new(
        session: &'a Session,
        turn: TurnId,
        step: u32,
        agent: String,
        mark: ProviderBlock,
    ) -> Self {
        Self { session, turn, step, agent, mark, calls: HashMap::new(), plan: None }
    }

    pub(super) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Takes in an update of a call.
    pub(super) fn update(&mut self, update: AgentCall) {
        let is_new = !self.calls.contains_key(&update.id);
        let (id, status, output) = (update.id.clone(), update.status, update.output.clone());
        let is_shown_anew = self.merge(update);
        let Some(known) = self.calls.get_mut(&id) else { return };
        if call_of(&known.item).is_none_or(|call| call.state.is_over()) {
            return;
        }
        match status {
            Some(CallStatus::Done | CallStatus::Failed) => {
                known.end(status == Some(CallStatus::Failed));
                self.session.commit(vec![Fact::ItemEnded { item: known.item.clone() }]);
                return;
            }
            Some(CallStatus::Running) => known.begin(),
            Some(CallStatus::Pending) | None => {}
        }
        if is_new {
            self.session.commit(vec![Fact::ItemStarted { item: known.item.clone() }]);
        } else if is_shown_anew || status == Some(CallStatus::Running) {
            self.session.commit(vec![Fact::ItemChanged { item: known.item.clone() }]);
        }
        if let Some(output) = output {
            known.show_output(self.session, &text_of(&output));
        }
    }

    /// Makes the item of a call that the agent asks about; gives it with all that is known of the call.
    pub(super) fn asked(&mut self, update: AgentCall) -> Option<(Item, AgentCall)> {
        let id = update.id.clone();
        let is_new = !self.calls.contains_key(&id);
        self.merge(update);
        let known = self.calls.get(&id)?;
        if is_new {
            self.session.commit(vec![Fact::ItemStarted { item: known.item.clone() }]);
        }
        Some((known.item.clone(), known.merged.clone()))
    }

    /// Takes over what was decided about a call; `is_committed`: the item as it is now is in the journal.
    pub(super) fn decided(&mut self, id: &str, item: Item, is_committed: bool) {
        let Some(known) = self.calls.get_mut(id) else { return };
        let (Some(call), Some(decided)) = (call_of_mut(&mut known.item), call_of(&item)) else { return };
        (call.state, call.manual_approval) = (decided.state.clone(), decided.manual_approval);
        (call.result, call.error) = (decided.result.clone(), decided.error);
        (call.input, call.details) = (decided.input.clone(), decided.details.clone());
        let is_over = call.state.is_over();
        if is_over {
            self.session.commit(vec![Fact::ItemEnded { item: known.item.clone() }]);
        } else if !is_committed {
            self.session.commit(vec![Fact::ItemChanged { item: known.item.clone() }]);
        }
    }

    /// The whole plan of the agent, as the call of a task tool.
    pub(super) fn plan(&mut self, entries: Vec<PlanEntry>) {
        let is_new = self.plan.is_none();
        let mut item = match self.plan.take() {
            Some(item) => item,
            None => {
                let mut call = self.blank("task");
                (call.summary, call.input, call.state) =
                    ("Plan".to_owned(), Some(json!({})), ToolState::Running);
                self.session.new_item(self.turn, self.step, ItemKind::ToolCall(Box::new(call)))
            }
        };
        if let Some(call) = call_of_mut(&mut item) {
            call.details = Some(Details::Tasks { entries });
        }
        self.plan = Some(item.clone());
        let fact = if is_new { Fact::ItemStarted { item } } else { Fact::ItemChanged { item } };
        self.session.commit(vec![fact]);
    }

    /// The agent is done, or was stopped: nothing of it stays open.
    pub(super) fn end(&mut self, is_whole: bool) {
        let mut open: Vec<&mut KnownCall> = self.calls.values_mut().collect();
        open.sort_by_key(|known| known.item.id);
        for known in open {
            let state = call_of(&known.item).map(|call| call.state.clone()).unwrap_or(ToolState::Done);
            if state.is_over() {
                continue;
            }
            if is_whole && state == ToolState::Running {
                known.end(false);
            } else {
                known.take_output();
                advance(&mut known.item, ToolInput::Stop);
            }
            self.session.commit(vec![Fact::ItemEnded { item: known.item.clone() }]);
        }
        if let Some(mut item) = self.plan.take() {
            advance(&mut item, ToolInput::Finished);
            self.session.commit(vec![Fact::ItemEnded { item }]);
        }
    }

    fn blank(&self, name: &str) -> ToolCall {
        let mut call = ToolCall::new(String::new(), self.agent.clone(), name.to_owned(), Origin::Native);
        call.provider = Some(self.mark.clone());
        call
    }

    /// Whether people see the call otherwise than before.
    fn merge(&mut self, update: AgentCall) -> bool {
        if !self.calls.contains_key(&update.id) {
            let mut call = self.blank(name_of(update.kind.unwrap_or(CallKind::Other)));
            call.input = Some(json!({}));
            let item = self.session.new_item(self.turn, self.step, ItemKind::ToolCall(Box::new(call)));
            let merged = AgentCall { id: update.id.clone(), ..AgentCall::default() };
            let known = KnownCall { item, merged, since: Instant::now(), shown: 0 };
            self.calls.insert(update.id.clone(), known);
        }
        let Some(known) = self.calls.get_mut(&update.id) else { return false };
        known.merge(update)
    }
}

impl KnownCall {
    fn merge(&mut self, update: AgentCall) -> bool {
        let before = self.item.clone();
        let AgentCall { title, kind, input, output, changes, locations, .. } = update;
        let merged = &mut self.merged;
        merged.title = title.or(merged.title.take());
        merged.kind = kind.or(merged.kind);
        merged.input = input.or(merged.input.take());
        merged.output = output.or(merged.output.take());
        merged.locations = locations.or(merged.locations.take());
        if !changes.is_empty() {
            merged.changes = changes;
        }
        let Some(call) = call_of_mut(&mut self.item).filter(|call| !call.state.is_over()) else {
            return false;
        };
        if let Some(kind) = merged.kind {
            call.name = name_of(kind).to_owned();
        }
        call.summary = merged.title.as_deref().map(domain::visible_line).unwrap_or_default().into_owned();
        if let Some(input) = &merged.input {
            call.input = Some(input.clone());
        }
        call.locations = merged.locations.clone().unwrap_or_default();
        if let Some(change) = merged.changes.first() {
            call.details = Some(Details::FileChange(change.clone()));
        }
        before != self.item
    }

    fn begin(&mut self) {
        if call_of(&self.item).is_some_and(|call| call.state == ToolState::Preparing) {
            advance(&mut self.item, ToolInput::Allowed);
        }
    }

    fn end(&mut self, failed: bool) {
        // An agent that ran a call while a person was still being asked about it did not wait.
        if call_of(&self.item).is_some_and(|call| call.state != ToolState::Running) {
            advance(&mut self.item, ToolInput::Allowed);
        }
        self.take_output();
        if let Some(call) = call_of_mut(&mut self.item) {
            call.error = failed;
        }
        advance(&mut self.item, ToolInput::Finished);
    }

    fn take_output(&mut self) {
        let (millis, changes) = (self.since.elapsed().as_millis() as u64, self.merged.changes.clone());
        let output = self.merged.output.clone().unwrap_or_default();
        let Some(call) = call_of_mut(&mut self.item) else { return };
        call.millis = millis;
        call.result = output;
        // The first change is in the details.
        let others = changes.iter().skip(1).filter(|change| !change.diff.is_empty());
        call.result.extend(others.map(|change| Part::text(change.diff.clone())));
    }

    /// Shows what is new of the output while the call runs.
    fn show_output(&mut self, session: &Session, whole: &str) {
        let Some(new) = whole.get(self.shown..).filter(|new| !new.is_empty()) else { return };
        let (item, offset) = (self.item.id, self.shown as u64);
        let delta = ItemDelta { item, channel: Channel::ToolOutput, offset, text: new.to_owned() };
        self.shown = whole.len();
        session.log.publish(EventBody::Delta(delta));
    }
}

fn call_of(item: &Item) -> Option<&ToolCall> {
    if let ItemKind::ToolCall(call) = &item.kind { Some(call) } else { None }
}

fn call_of_mut(item: &mut Item) -> Option<&mut ToolCall> {
    if let ItemKind::ToolCall(call) = &mut item.kind { Some(call) } else { None }
}

fn advance(item: &mut Item, input: ToolInput) {
    if let Some(call) = call_of_mut(item)
        && let Ok(state) = next(&call.state, input)
    {
        call.state = state;
    }
}
