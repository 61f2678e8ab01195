//! The chunks of Chat Completions as far as they are read, with the members that many servers add.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub usage: Option<Usage>,
    #[serde(default)]
    pub x_groq: Option<Groq>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Groq {
    pub usage: Option<Usage>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    /// In place of `delta` where the server does not stream.
    #[serde(borrow, default)]
    pub message: Option<Delta<'a>>,
    /// In place of both at servers that speak the older Completions API.
    #[serde(default)]
    pub text: Option<String>,
    pub finish_reason: Option<String>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// The name that Copilot has for it.
    #[serde(default)]
    pub reasoning_text: Option<String>,
    #[serde(borrow, default)]
    pub reasoning: Option<&'a RawValue>,
    #[serde(default)]
    pub reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    pub refusal: Option<String>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<CallDelta<'a>>>,
    /// A call as the API had it before `tool_calls`.
    #[serde(borrow, default)]
    pub function_call: Option<Function<'a>>,
    #[serde(default)]
    pub annotations: Option<Vec<Annotation>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default, deserialize_with = "index")]
    pub index: Option<u32>,
    pub id: Option<String>,
    #[serde(borrow, default)]
    pub function: Option<Function<'a>>,
}

/// A number, also one that a gateway wrote as text.
fn index<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().and_then(|index| u32::try_from(index).ok());
    Ok(number.or_else(|| value.as_str()?.trim().parse().ok()))
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    pub name: Option<String>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Annotation {
    pub url_citation: Option<UrlCitation>,
}

#[derive(Deserialize)]
pub(super) struct UrlCitation {
    pub title: Option<String>,
    pub url: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    #[serde(default)]
    pub completion_tokens: Option<u64>,
    pub prompt_tokens_details: Option<PromptDetails>,
    pub completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's and Moonshot's names for cached input.
    pub prompt_cache_hit_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct PromptDetails {
    pub cached_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct CompletionDetails {
    pub reasoning_tokens: Option<u64>,
}
