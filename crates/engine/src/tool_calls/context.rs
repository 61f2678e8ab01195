//! What a running tool may ask: output for people, the front-end's abilities, a question to the user.
//!
//! Invariant: every host call and every question ends, by a reply, a deadline or the turn's stop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::event::Channel;
use domain::host::HostRequest;
use domain::tool::ToolContext;
use domain::{
    Abilities, Answer, Ask, AskId, AskKind, BoxFuture, CancellationToken, Event, Fact, Failure, HostCall,
    HostReply, ItemDelta, ItemId, TurnId,
};
use tokio::sync::{mpsc, oneshot};

use crate::session::Session;

/// Live output kept for people; what the model gets is bounded by the tool.
const LIVE_OUTPUT: usize = 256 << 10;

/// The front-end whose prompt began a turn.
#[derive(Clone)]
pub struct EditorHandle {
    pub abilities: Abilities,
    pub calls: mpsc::Sender<HostRequest>,
}

pub struct CallContext {
    pub session: Arc<Session>,
    pub turn: TurnId,
    pub item: Option<ItemId>,
    pub host: Option<EditorHandle>,
    pub cancel: CancellationToken,
    output: Mutex<String>,
}

impl CallContext {
    pub fn new(
        session: Arc<Session>,
        turn: TurnId,
        item: Option<ItemId>,
        host: Option<EditorHandle>,
        cancel: CancellationToken,
    ) -> Self {
        Self { session, turn, item, host, cancel, output: Mutex::default() }
    }

    /// What was shown while the tool ran.
    pub fn take_output(&self) -> String {
        std::mem::take(&mut self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ToolContext for CallContext {
    fn output(&self, text: &str) {
        let Some(item) = self.item else { return };
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_empty() || output.len() + text.len() > LIVE_OUTPUT {
            return;
        }
        let offset = output.len() as u64;
        output.push_str(text);
        let delta = ItemDelta { item, channel: Channel::ToolOutput, offset, text: text.to_owned() };
        self.session.audience.publish(Event::delta(self.session.id.clone(), delta));
    }

    fn abilities(&self) -> Abilities {
        self.host.as_ref().map(|host| host.abilities.clone()).unwrap_or_default()
    }

    fn host(&self, call: HostCall, deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>> {
        Box::pin(async move {
            let Some(host) = &self.host else {
                return Err(Failure::user("No editor is attached to this chat."));
            };
            let (reply, answer) = oneshot::channel();
            let request =
                HostRequest { session: self.session.id.clone(), item: self.item, call, deadline, reply };
            host.calls
                .try_send(request)
                .map_err(|_| Failure::user("The editor does not take requests now."))?;
            tokio::select! {
                answer = answer => answer.unwrap_or_else(|_| Err(Failure::user("The editor gave no answer."))),
                () = tokio::time::sleep(deadline) => {
                    Err(Failure::user(format!("The editor gave no answer within {} s.", deadline.as_secs())))
                }
                () = self.cancel.cancelled() => Err(Failure::user("The turn was stopped.")),
            }
        })
    }

    fn ask(&self, kind: AskKind) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let abilities = self.abilities();
            let can = match kind {
                AskKind::Approval { .. } => abilities.approvals,
                AskKind::Question { .. } => abilities.questions,
                AskKind::Form { .. } => abilities.forms,
            };
            if !can {
                return Answer::Cancelled;
            }
            let id = AskId(self.session.next_ask());
            let waiting = self.session.asks.wait_for(id);
            let ask = Ask { id, turn: self.turn, item: self.item, kind };
            if self.session.journal.record(vec![Fact::AskRaised { ask }]).done().await.is_err() {
                return Answer::Cancelled;
            }
            let answer = tokio::select! {
                answer = waiting => answer.unwrap_or(Answer::Cancelled),
                () = self.cancel.cancelled() => Answer::Cancelled,
            };
            self.session.asks.settle(id, Answer::Cancelled);
            self.session.journal.note(Fact::AskSettled { id, answer: answer.clone() });
            answer
        })
    }
}
