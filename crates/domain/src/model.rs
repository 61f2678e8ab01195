//! Prompts to a model and its answers, in no vendor's words.
//!
//! A prompt is append-only from call to call, so that provider caches hit. A stream is a flat list of blocks in the
//! order the model made them; dropping it aborts the call.

use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::Stream;
use serde_json::Value;

use crate::agent::ExternalAgent;
use crate::failure::Failure;
use crate::ids::SessionId;
use crate::middle::Middle;
pub use crate::model_answer::{StopReason, Tokens};
use crate::part::{Part, ProviderBlock};
use crate::tool::{TextFormat, ToolSpec};

/// Something that answers prompts: a provider over HTTP or the embedded model. `app` makes them.
pub trait Model: Send + Sync {
    /// Starts the call. Errors that end it are the last thing the stream yields. Retries happen inside; the
    /// stream reports them as [`ModelEvent::Waiting`].
    fn stream(&self, prompt: Prompt) -> ModelStream;

    /// What is known of this model.
    fn info(&self) -> ModelInfo;

    /// The agent behind the name, where it runs tools of its own: the engine then prompts it instead of calling `stream`.
    fn agent(&self) -> Option<Arc<dyn ExternalAgent>> {
        None
    }
}

pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, Failure>> + Send>>;

/// All models of a configuration. Resolving is cheap; nothing is connected before the first prompt.
pub trait Models: Send + Sync {
    /// `provider/name`, e.g. `anthropic/claude-sonnet-4-5`. Unknown names of a known provider are accepted.
    fn find(&self, name: &str) -> Result<Arc<dyn Model>, Failure>;

    /// What a user can choose from now, best first within a provider.
    fn list(&self) -> Vec<ModelInfo>;

    /// The model to use where none was chosen.
    fn default_model(&self) -> Option<String>;

    /// A cheap model for titles and the like, where one is configured beside `main`.
    fn small_model(&self, main: &str) -> Option<String>;
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModelInfo {
    /// `provider/name`.
    pub id: String,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    pub price: Option<Price>,
    pub tools: bool,
    pub images: bool,
    pub reasoning: bool,
    /// Names of reasoning efforts and the like, weakest first.
    pub variants: Vec<String>,
    /// The provider adds tools to the context where a search gave them, so found tools are called by their own names.
    pub loads_tools: bool,
    /// Its server computes one prompt at a time and keeps that one alone, as servers of this machine do.
    pub single_slot: bool,
    /// It was trained to fill the middle of a text, and its server takes requests for that.
    pub fills_middle: bool,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

impl Price {
    /// What a call cost. Cache reads and writes are not part of `input`.
    pub fn of(&self, tokens: &Tokens) -> f64 {
        let per = |count: u64, price: f64| count as f64 * price / 1_000_000.0;
        per(tokens.input, self.input)
            + per(tokens.output, self.output)
            + per(tokens.cache_read, self.cache_read.unwrap_or(self.input))
            + per(tokens.cache_write, self.cache_write.unwrap_or(self.input))
    }
}

/// One call to a model.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// For providers that route equal prefixes to one cache.
    pub session: Option<SessionId>,
    /// Stable instructions, in order; the cached prefix.
    pub system: Vec<Arc<str>>,
    /// The instructions are Dragoman's own text: nothing of a user or a project is in them.
    pub has_own_instructions: bool,
    pub tools: Arc<[ToolSpec]>,
    /// Tools whose one argument may be written as plain text, by full name.
    pub text_tools: Vec<(String, TextFormat)>,
    /// An answer should call one tool at most.
    pub is_sequential: bool,
    /// Only for a model that loads tools.
    pub deferred: Option<DeferredTools>,
    /// The history, oldest first.
    pub entries: Vec<PromptEntry>,
    /// Lets a provider keep what it wrote of the history; without it every request is written anew.
    pub written: Option<WrittenHistory>,
    pub max_output: Option<u64>,
    pub temperature: Option<f64>,
    pub variant: Option<String>,
    /// The answer must be JSON of this schema, where the API can enforce it.
    pub output_schema: Option<Value>,
    /// The text to write belongs between these two, and nothing else of the prompt is for the model. Only for a model that
    /// fills middles.
    pub middle: Option<Middle>,
    /// The provider searches the web by its own tool while it answers; an API without one refuses the prompt.
    pub web_search: bool,
    /// Another model follows if this call fails, so it gives up early instead of waiting long.
    pub has_alternative: bool,
}

/// A place of the chat in which a provider keeps the written form of its history from prompt to prompt.
#[derive(Clone, Debug, Default)]
pub struct WrittenHistory {
    /// One key per entry of the prompt. Within a chat, equal keys mean equal entries.
    pub keys: Vec<u64>,
    pub place: WrittenPlace,
}

/// Holds a value that only the provider knows.
pub type WrittenPlace = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

/// Tools that are not among those of the prompt until a search gives them.
#[derive(Clone, Debug, Default)]
pub struct DeferredTools {
    /// The full name of the tool that searches. Each line of its results that is a JSON object with a `name` is a definition.
    pub search: String,
    /// The tools that searches of the history gave, as they are now.
    pub found: Vec<ToolSpec>,
}

/// One entry of a prompt. Consecutive `Reasoning`, `Agent` and `Call` are one answer; each `Call` is followed, after
/// the answer it belongs to, by exactly one `Result` with the same `call_id`.
#[derive(Clone, PartialEq, Debug)]
pub enum PromptEntry {
    User { parts: Vec<Part> },
    Reasoning { text: String, provider: Option<ProviderBlock> },
    Agent { text: String, provider: Option<ProviderBlock> },
    Call { call_id: String, name: String, input: Value, provider: Option<ProviderBlock> },
    Result { call_id: String, name: String, parts: Vec<Part>, error: bool },
}

/// One event of an answer. Blocks come in order; a block's deltas may interleave with those of another (tool calls).
#[derive(Clone, PartialEq, Debug)]
pub enum ModelEvent {
    /// The call waits (rate limit, retry), as text for a status line.
    Waiting {
        text: String,
    },
    /// The answer holds something that cannot be shown, as a sentence for the user.
    Warning {
        text: String,
    },
    /// The provider refused the images of the prompt; the call goes on without them.
    ImagesRefused,
    BlockStarted {
        block: u32,
        kind: BlockKind,
    },
    BlockDelta {
        block: u32,
        text: String,
    },
    BlockEnded {
        block: u32,
        provider: Option<ProviderBlock>,
    },
    /// Replaces the earlier usage of this call.
    Usage(Tokens),
    /// The last event of a good stream.
    Ended {
        reason: StopReason,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockKind {
    Text,
    Reasoning,
    /// `name` is the name offered to the model (`eca__read_file`). Deltas are the argument text.
    ToolCall {
        call_id: String,
        name: String,
    },
    Citation {
        title: String,
        url: String,
    },
}
