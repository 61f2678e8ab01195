//! One module per API format: how a prompt is written and how a stream is read. Nothing here does IO.
//!
//! Invariant: what a prompt holds is written the same way in every later request, so that provider caches hit.

pub mod anthropic;
mod api;
pub mod bedrock;
pub mod deferred;
pub(crate) mod fill;
pub mod gemini;
pub mod history;
pub mod names;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod shared;
mod unread;
pub mod written;

use std::sync::Arc;

use domain::model::Prompt;
use serde_json::Value;

use crate::framing::Framing;
use crate::text_tool_calls::TextToolCalls;
use names::Names;

pub use api::Api;
pub use shared::{Blocks, Decode, Dialect, EffortField, Events, Origin, Target, Thinking};
pub(crate) use shared::{
    NO_IMAGES, function, generate_call_id, input_schema, is_strict, push_usage, schema_instruction,
};

impl Api {
    /// The body of a request.
    pub fn encode(self, prompt: &Prompt, target: &Target) -> Value {
        match self {
            Self::OpenAiResponses => openai_responses::encode(prompt, target),
            Self::OpenAiChat => openai_chat::encode(prompt, target),
            Self::Anthropic => anthropic::encode(prompt, target),
            Self::Gemini => gemini::encode(prompt, target),
            Self::Ollama => ollama::encode(prompt, target),
            Self::Bedrock => bedrock::encode(prompt, target),
        }
    }

    /// The body as bytes. What the chat's last request held already is not written again where that is possible. `extra`
    /// names what `encode` depends on beside the prompt and the target.
    pub fn encode_bytes(
        self,
        prompt: &Prompt,
        target: &Target,
        extra: &str,
        encode: impl Fn(&Prompt) -> Value,
    ) -> Vec<u8> {
        // Marks on messages of the user alone may be far from the end.
        let has_far_marks = self == Self::OpenAiChat && target.dialect.cache_marks;
        let kept = match has_far_marks {
            true => None,
            false => written::body(self, prompt, format!("{} {target:?} {extra}", self.name()), &encode),
        };
        // A JSON value always has a text.
        kept.unwrap_or_else(|| encode(prompt).to_string().into_bytes())
    }

    /// Headers that depend on the prompt.
    pub fn headers(self, prompt: &Prompt, target: &Target) -> Vec<(&'static str, String)> {
        match self {
            Self::Anthropic => anthropic::headers(prompt, target),
            Self::OpenAiResponses | Self::OpenAiChat | Self::Gemini | Self::Ollama | Self::Bedrock => {
                Vec::new()
            }
        }
    }

    /// A reader for the answer to `prompt`.
    pub fn decoder(self, prompt: &Prompt, target: &Target) -> Box<dyn Decode> {
        let names = Names::of_prompt(prompt);
        let origin = Origin { format: self.name(), model: target.id.to_owned() };
        let decoder = self.plain_decoder(origin.clone(), names);
        let scans = target.dialect.text_tool_calls && matches!(self, Self::OpenAiChat | Self::Ollama);
        let tools = if scans { prompt.tools.clone() } else { Arc::default() };
        Box::new(TextToolCalls::new(decoder, tools, origin))
    }

    fn plain_decoder(self, origin: Origin, names: Names) -> Box<dyn Decode> {
        match self {
            Self::OpenAiResponses => Box::new(openai_responses::Decoder::new(origin, names)),
            Self::OpenAiChat => Box::new(openai_chat::Decoder::new(origin, names)),
            Self::Anthropic => Box::new(anthropic::Decoder::new(origin, names)),
            Self::Gemini => Box::new(gemini::Decoder::new(origin, names)),
            Self::Ollama => Box::new(ollama::Decoder::new(origin, names)),
            Self::Bedrock => Box::new(bedrock::Decoder::new(origin, names)),
        }
    }

    /// How the events of a stream are cut out of its bytes.
    pub fn framing(self) -> Framing {
        match self {
            Self::OpenAiResponses | Self::OpenAiChat | Self::Anthropic | Self::Gemini => Framing::sse(),
            Self::Ollama => Framing::Lines(Default::default()),
            Self::Bedrock => Framing::Frames(Default::default()),
        }
    }
}
