//! One session of a connection: its projection, and its prompts and questions that are not answered yet.
//!
//! Invariant: a prompt under way is answered exactly once, by the end of its turn or when the session leaves the connection.

use std::collections::{HashMap, VecDeque};

use domain::agent::AgentOffers;
use domain::{AskId, Failure, TurnId};
use rpc::Responder;
use tokio::task::AbortHandle;

use crate::to_wire::Projection;
use crate::wire::acp;

/// One session of this connection.
pub(crate) struct OpenSession {
    pub projection: Projection,
    pub(crate) prompts: HashMap<TurnId, PendingPrompt>,
    /// Requests to the client that wait for a person.
    pub(crate) asked: HashMap<AskId, AbortHandle>,
    /// Prompts of version 2 that wait for the id of their message.
    pub unnamed: VecDeque<Responder>,
    /// What the agent of another vendor offers here, where the connection is to one.
    pub offers: Option<AgentOffers>,
}

/// A `session/prompt` that is not answered yet.
pub(crate) struct PendingPrompt {
    pub(crate) responder: Responder,
    /// Waits for `$/cancel_request`.
    pub(crate) watch: AbortHandle,
    pub(crate) cancelled: bool,
}

pub(crate) type Ended = (Responder, Result<acp::StopReason, Failure>);

impl OpenSession {
    pub(crate) fn new(projection: Projection) -> Self {
        let (prompts, asked, unnamed) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { projection, prompts, asked, unnamed, offers: None }
    }

    /// The client cancelled: the turn counts as cancelled, also when it ends by itself first.
    pub(crate) fn cancel(&mut self) {
        self.prompts.values_mut().for_each(|prompt| prompt.cancelled = true);
    }

    pub(crate) fn ended(&mut self, turn: TurnId, outcome: Result<acp::StopReason, Failure>) -> Option<Ended> {
        let prompt = self.prompts.remove(&turn)?;
        prompt.watch.abort();
        let stopped = prompt.cancelled || prompt.responder.cancellation().is_cancelled();
        let outcome = match outcome {
            Err(_) if stopped => Ok(acp::StopReason::Cancelled),
            outcome => outcome,
        };
        Some((prompt.responder, outcome))
    }

    /// Dropping the request cancels it at the client. Whether it was asked here and no other question is open.
    pub(crate) fn settled(&mut self, ask: AskId) -> bool {
        let asked = self.asked.remove(&ask);
        if let Some(asked) = &asked {
            asked.abort();
        }
        asked.is_some() && self.asked.is_empty()
    }

    /// Ends everything under way; gives the responders of the pending prompts.
    pub(crate) fn cancel_all(&mut self) -> Vec<Responder> {
        self.asked.drain().for_each(|(_, asked)| asked.abort());
        self.prompts
            .drain()
            .map(|(_, prompt)| {
                prompt.watch.abort();
                prompt.responder
            })
            .chain(self.unnamed.drain(..))
            .collect()
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.cancel_all();
    }
}
