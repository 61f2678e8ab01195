//! What differs between the dialects that clients speak, as traits.

use domain::command::{Accepted, Catalog};
use domain::{Abilities, AskId, Event, Failure, ItemId, SessionId};

use crate::reply::Reply;
use crate::wire::ChatId;
use crate::wire::notifications::Outbound;
use crate::wire::requests::Prompt;

/// What a client speaks. `S` is the state of its connection.
pub(crate) trait Dialect<S>: Send + Sync {
    fn name(&self) -> &'static str;

    /// A projection for a chat that the client has not seen.
    fn new_projection(&self) -> Box<dyn Projection>;

    /// Adapts the abilities that the client named to those of its dialect.
    fn adapt(&self, abilities: &mut Abilities);

    /// Whether the client knows a notification.
    fn knows(&self, notification: &str) -> bool;

    /// The model that a client means.
    fn model(&self, catalog: &Catalog, name: String) -> Option<String>;

    /// Answers a prompt and shows what went wrong with it.
    fn answer_prompt(&self, server: &mut S, prompted: Prompted, reply: Reply<Prompt>);
}

/// A prompt that the engine has accepted or refused.
pub(crate) struct Prompted {
    pub session: SessionId,
    /// The client learns the chat's id from the response.
    pub is_new: bool,
    pub outcome: Result<Accepted, Failure>,
}

/// Events of one chat to notifications.
pub(crate) trait Projection: Send {
    fn project<'a>(&mut self, chat: ChatId<'a>, event: &'a Event) -> Vec<Outbound<'a>>;

    /// The ask that waits on a tool call, by the id that the client has of it.
    fn ask_of(&self, call: &str) -> Option<AskId>;

    /// The id that the client has of a call.
    fn call_id(&self, call: ItemId) -> String;
}
