//! What a running tool may use of the engine: live output, the editor of the turn, questions to the user, the model.
//!
//! Invariant: every host call and every question ends, by a reply, a deadline or the turn's stop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::event::{Channel, EventBody, Fact, Level, Notice};
use domain::host::HostRequest;
use domain::job::Continued;
use domain::tool::{Sample, Sampled, ToolContext, WebAnswer};
use domain::{
    Abilities, Answer, Ask, AskKind, BoxFuture, CancellationToken, Failure, HostCall, HostReply, ItemDelta,
    ItemId, TurnId,
};
use session::EditorHandle;
use tokio::sync::oneshot;

use super::sampling::Sampler;
use crate::session::Session;
use crate::subagents::relay;
use crate::turn::Turn;
use crate::web_search;

/// Live output kept for people; what the model gets is bounded by the tool.
const LIVE_OUTPUT: usize = 256 << 10;
const CUT: &str = "\n[More output follows, which is not shown here.]\n";

pub(crate) struct EngineToolContext {
    pub(crate) session: Arc<Session>,
    pub(crate) turn: TurnId,
    pub(crate) item: Option<ItemId>,
    pub(crate) editor: Option<EditorHandle>,
    pub(crate) cancel: CancellationToken,
    /// `None`: the tool cannot use a model.
    pub(crate) sampler: Option<Sampler>,
    output: Mutex<LiveOutput>,
    /// The call's command, where it outlives the call.
    continued: Mutex<Option<Continued>>,
}

/// What a tool prints while it runs.
#[derive(Default)]
struct LiveOutput {
    text: String,
    /// The tool has ended, or printed more than is kept: what comes now would follow a gap.
    is_closed: bool,
}

impl LiveOutput {
    /// The part of `text` that still fits, with its place; the last one ends with a note.
    fn add(&mut self, text: &str) -> Option<(u64, String)> {
        if self.is_closed || text.is_empty() {
            return None;
        }
        let left = LIVE_OUTPUT - self.text.len().min(LIVE_OUTPUT);
        let mut added = text[..text.floor_char_boundary(left)].to_owned();
        if added.len() < text.len() {
            self.is_closed = true;
            added.push_str(CUT);
        }
        let offset = self.text.len() as u64;
        self.text.push_str(&added);
        Some((offset, added))
    }
}

impl EngineToolContext {
    pub(crate) fn new(
        session: Arc<Session>,
        turn: TurnId,
        item: Option<ItemId>,
        editor: Option<EditorHandle>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            session,
            turn,
            item,
            editor,
            cancel,
            sampler: None,
            output: Mutex::default(),
            continued: Mutex::default(),
        }
    }

    /// What the tool of a call may use.
    pub(crate) fn of_call(turn: &Turn, item: ItemId, cancel: &CancellationToken) -> Self {
        let (session, editor) = (turn.session.clone(), turn.editor.clone());
        let mut context = Self::new(session, turn.id, Some(item), editor, cancel.clone());
        context.sampler = Some(Sampler::of(turn));
        context
    }

    /// What goes on after the call.
    pub(crate) fn take_continued(&self) -> Option<Continued> {
        self.continued.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was shown while the tool ran.
    pub(crate) fn take_output(&self) -> String {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.is_closed = true;
        std::mem::take(&mut output.text)
    }
}

impl ToolContext for EngineToolContext {
    fn output(&self, text: &str) {
        let Some(item) = self.item else { return };
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((offset, text)) = output.add(text) else { return };
        // Behind the facts that were committed before it: one of them shows the call.
        let delta = ItemDelta { item, channel: Channel::ToolOutput, offset, text };
        self.session.log.publish(EventBody::Delta(delta));
    }

    fn goes_on(&self, continued: Continued) {
        *self.continued.lock().unwrap_or_else(PoisonError::into_inner) = Some(continued);
    }

    fn notice(&self, text: &str) {
        let notice = Notice { level: Level::Warning, text: text.to_owned() };
        self.session.commit(vec![Fact::Notice { notice }]);
    }

    fn abilities(&self) -> Abilities {
        self.editor.as_ref().map(|editor| editor.abilities.clone()).unwrap_or_default()
    }

    fn host(&self, call: HostCall, deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>> {
        Box::pin(async move {
            let Some(editor) = &self.editor else {
                return Err(Failure::user("No editor is attached to this chat."));
            };
            let (reply, answer) = oneshot::channel();
            let request =
                HostRequest { session: self.session.id.clone(), item: self.item, call, deadline, reply };
            editor
                .calls
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
            let (session, turn, item) = relay::place_of_question(&self.session, self.turn, self.item);
            // Another window may show what the editor of the turn cannot.
            if !self.abilities().can_answer(&kind) && !session.audience.can_answer(&kind) {
                return Answer::Cancelled;
            }
            let asked = session.asks.wait_for(session.log.next_ask());
            let ask = Ask { id: asked.id, turn, item, kind };
            if asked.raise(&session, ask, Vec::new()).await.is_err() {
                return Answer::Cancelled;
            }
            asked.answer(&session, &self.cancel).await
        })
    }

    fn search_web<'a>(&'a self, model: &'a str, words: &'a str) -> BoxFuture<'a, Result<WebAnswer, Failure>> {
        Box::pin(web_search::run(&self.session, model, words))
    }

    fn sample(&self, sample: Sample) -> BoxFuture<'_, Result<Sampled, Failure>> {
        Box::pin(async move {
            match &self.sampler {
                Some(sampler) => sampler.sample(&self.session, sample, &self.cancel).await,
                None => Err(Failure::user("No model can be used here.")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_output_ends_where_it_is_cut_and_has_no_gap() {
        let mut output = LiveOutput::default();
        let mut shown = String::new();
        let pieces = ["one\n".to_owned(), "ü".repeat(LIVE_OUTPUT), "small\n".to_owned(), String::new()];
        for piece in &pieces {
            if let Some((offset, text)) = output.add(piece) {
                assert_eq!(offset, shown.len() as u64);
                shown.push_str(&text);
            }
        }
        assert!(shown.starts_with("one\nüü") && shown.ends_with(CUT) && !shown.contains("small"));
        assert!(shown.len() <= LIVE_OUTPUT + CUT.len());
        assert_eq!(shown, output.text);
    }
}
