//! The vocabulary of Dragoman: what a session, an item, an event, a command and a tool are.
//!
//! Owns the words that every other crate speaks. Knows no IO, no wire format, no protocol and no vendor.
//! Invariant: everything a front-end may show is an [`Event`], everything it may ask for is a [`Command`].

pub mod agent;
pub mod ask;
pub mod command;
mod completion;
pub mod event;
pub mod failure;
pub mod files;
pub mod frontend_link;
mod frontend_port;
pub mod host;
pub mod hosts;
pub mod ids;
pub mod item;
pub mod job;
pub mod key_text;
pub mod link;
pub mod memory;
pub mod middle;
pub mod model;
mod model_answer;
pub mod names;
pub mod note;
mod part;
pub mod pattern;
pub mod peers;
pub mod provider;
pub mod queue;
mod refusal;
pub mod replay;
mod sampling;
mod session_settings;
mod slash_argument;
pub mod slash_commands;
pub mod spending;
pub mod store;
pub mod taint;
pub mod text_cursor;
mod text_format;
pub mod tool;
pub mod tool_call;
pub mod visible;

pub use ask::{Answer, Ask, AskKind};
pub use command::{Command, Reply};
pub use event::{Event, EventBody, Fact, ItemDelta, Level, Notice, Outcome, Recorded};
pub use failure::{Failure, FailureKind};
pub use frontend_link::{FrontendEvent, FrontendLink};
pub use host::{Abilities, HostCall, HostReply};
pub use ids::{AskId, FrontendId, ItemId, SessionId, TurnId};
pub use item::{Item, ItemKind, Part};
pub use link::{Follower, Link};
pub use model::{Model, ModelEvent, ModelStream, Prompt};
pub use note::{Goal, GoalState, Note, NoteAbout};
pub use pattern::escape_pattern;
pub use peers::{Peers, RemoteChat};
pub use store::Store;
pub use text_cursor::TextCursor;
pub use tool::{Review, Tool, ToolSpec};
pub use tool_call::{ToolCall, ToolState};
pub use visible::{visible_json, visible_line, visible_source, visible_text, visible_value};

/// A boxed future, so that the traits here can be used as trait objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The token that stops work: cancelled once, seen everywhere.
pub use tokio_util::sync::CancellationToken;
