//! Fill-in-the-middle: which servers and models can, where a request for it goes, what it holds and how its answer is read.
//!
//! Does no IO. Invariant: without a row for the server or the model, nothing is sent but a chat.

use domain::middle::Middle;
use domain::model::{BlockKind, ModelEvent, StopReason, Tokens};
use rpc::sse::SseEvent;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Api, Blocks, Decode, Events, push_usage};
use crate::fault::Fault;

/// How a server fills the middle of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// llama.cpp, which knows the marks of its model.
    Infill,
    /// Ollama, whose templates know them.
    Generate,
    Mistral,
    DeepSeek,
    /// Plain completions, of a prompt with the marks of the model's family.
    Template(&'static Family),
}

/// The marks of a family of models.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Family {
    /// Parts of its models' names, in small letters.
    names: &'static [&'static str],
    before: &'static str,
    after: &'static str,
    middle: &'static str,
    /// The text after the cursor comes first.
    is_after_first: bool,
    /// Where an answer ends.
    stops: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        names: &["qwen2.5-coder", "qwen3-coder", "qwen-coder", "codegemma"],
        before: "<|fim_prefix|>",
        after: "<|fim_suffix|>",
        middle: "<|fim_middle|>",
        is_after_first: false,
        stops: &["<|endoftext|>", "<|fim_prefix|>", "<|file_sep|>", "<|file_separator|>"],
    },
    Family {
        names: &["starcoder", "santacoder", "stable-code", "granite-code", "codeqwen"],
        before: "<fim_prefix>",
        after: "<fim_suffix>",
        middle: "<fim_middle>",
        is_after_first: false,
        stops: &["<|endoftext|>", "<fim_prefix>", "<file_sep>"],
    },
    Family {
        names: &["deepseek-coder"],
        before: "<｜fim▁begin｜>",
        after: "<｜fim▁hole｜>",
        middle: "<｜fim▁end｜>",
        is_after_first: false,
        stops: &["<｜fim▁begin｜>", "<|EOT|>", "<｜end▁of▁sentence｜>"],
    },
    Family {
        names: &["codellama", "code-llama"],
        before: "<PRE> ",
        after: " <SUF>",
        middle: " <MID>",
        is_after_first: false,
        stops: &["<EOT>", "<PRE>"],
    },
    Family {
        names: &["codestral"],
        before: "[PREFIX]",
        after: "[SUFFIX]",
        middle: "",
        is_after_first: true,
        stops: &["[PREFIX]", "[SUFFIX]", "</s>"],
    },
    Family {
        names: &["seed-coder"],
        before: "<[fim-prefix]>",
        after: "<[fim-suffix]>",
        middle: "<[fim-middle]>",
        is_after_first: true,
        stops: &["<[fim-prefix]>", "<[fim-suffix]>"],
    },
];

/// Tokens of an answer, where the prompt does not say.
const MOST_TOKENS: u64 = 256;

impl Family {
    fn of(model: &str) -> Option<&'static Self> {
        let name: String =
            model
                .chars()
                .map(|letter| {
                    if letter.is_alphanumeric() || letter == '.' { letter.to_ascii_lowercase() } else { '-' }
                })
                .collect();
        FAMILIES.iter().find(|family| family.names.iter().any(|known| name.contains(known)))
    }

    fn prompt(&self, middle: &Middle) -> String {
        let Self { before, after, middle: end, is_after_first, .. } = self;
        match is_after_first {
            true => format!("{after}{}{before}{}{end}", middle.after, middle.before),
            false => format!("{before}{}{after}{}{end}", middle.before, middle.after),
        }
    }
}

impl Fill {
    /// How `model` at a server of this vendor and API fills a middle; `vendor` is empty for a server without a row.
    pub(crate) fn of(vendor: &str, api: Api, model: &str) -> Option<Self> {
        let family = Family::of(model);
        match (vendor, api) {
            ("llama.cpp", _) => family.map(|_| Self::Infill),
            (_, Api::Ollama) => family.map(|_| Self::Generate),
            ("mistral", _) => model.contains("codestral").then_some(Self::Mistral),
            ("deepseek", _) => {
                let can = model == "deepseek-chat" || model.starts_with("deepseek-v");
                can.then_some(Self::DeepSeek)
            }
            ("" | "vllm" | "lmstudio" | "litellm", Api::OpenAiChat) => family.map(Self::Template),
            _ => None,
        }
    }

    /// The address, from the base of the provider's url.
    pub(crate) fn url(self, base: &str) -> String {
        let bare = base.strip_suffix("/v1").or_else(|| base.strip_suffix("/beta")).unwrap_or(base);
        match self {
            Self::Infill => format!("{bare}/infill"),
            Self::Generate => format!("{bare}/api/generate"),
            Self::Mistral => format!("{bare}/v1/fim/completions"),
            Self::DeepSeek => format!("{bare}/beta/completions"),
            Self::Template(_) => format!("{base}/completions"),
        }
    }

    pub(crate) fn body(self, model: &str, middle: &Middle, most: Option<u64>) -> Value {
        let most = most.unwrap_or(MOST_TOKENS);
        match self {
            Self::Infill => json!({
                "input_prefix": middle.before, "input_suffix": middle.after, "n_predict": most, "temperature": 0,
                "cache_prompt": true, "stream": true,
            }),
            Self::Generate => json!({
                "model": model, "prompt": middle.before, "suffix": middle.after, "stream": true,
                "options": {"num_predict": most, "temperature": 0},
            }),
            Self::Mistral | Self::DeepSeek => json!({
                "model": model, "prompt": middle.before, "suffix": middle.after, "max_tokens": most,
                "temperature": 0, "stream": true,
            }),
            Self::Template(family) => json!({
                "model": model, "prompt": family.prompt(middle), "max_tokens": most, "temperature": 0,
                "stop": family.stops, "stream": true,
            }),
        }
    }

    /// A reader, where the answer is not that of the provider's API.
    pub(crate) fn decoder(self) -> Option<Box<dyn Decode>> {
        match self {
            Self::Infill | Self::Generate => Some(Box::new(Decoder::default())),
            Self::Mistral | Self::DeepSeek | Self::Template(_) => None,
        }
    }
}

/// Reads the answers of llama.cpp and of Ollama, whose pieces differ in names alone.
#[derive(Default)]
struct Decoder {
    blocks: Blocks,
    text: Option<u32>,
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(alias = "response", default)]
    content: String,
    #[serde(alias = "done", default)]
    stop: bool,
    /// `limit` or `length` where the answer was cut.
    #[serde(alias = "done_reason", default)]
    stop_type: Option<String>,
    #[serde(alias = "prompt_eval_count", default)]
    tokens_evaluated: Option<u64>,
    #[serde(alias = "eval_count", default)]
    tokens_predicted: Option<u64>,
}

impl Decode for Decoder {
    fn push(&mut self, event: SseEvent<'_>, out: &mut Events) -> Result<(), Fault> {
        if matches!(event.data.trim(), "" | "[DONE]") {
            return Ok(());
        }
        if let Some(fault) = Fault::of_unknown_event(event.name, event.data) {
            return Err(fault);
        }
        let piece: Piece = serde_json::from_str(event.data)
            .map_err(|_| Fault::malformed("an event that is no piece of a completion", event.data))?;
        if !piece.content.is_empty() {
            let block = match self.text {
                Some(block) => block,
                None => *self.text.insert(self.blocks.start(BlockKind::Text, out)),
            };
            out.push_back(ModelEvent::BlockDelta { block, text: piece.content });
        }
        if piece.stop {
            let counts = (piece.tokens_evaluated, piece.tokens_predicted);
            let (input, output) = (counts.0.unwrap_or(0), counts.1.unwrap_or(0));
            push_usage(&mut self.tokens, Tokens { input, output, ..Tokens::default() }, out);
            let is_cut = matches!(piece.stop_type.as_deref(), Some("limit" | "length"));
            self.blocks.end(if is_cut { StopReason::MaxTokens } else { StopReason::Done }, out);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Events) -> bool {
        self.blocks.is_ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_families_are_known() {
        let of = |vendor, api, model| Fill::of(vendor, api, model).map(|fill| fill.url("http://h/v1"));
        let chat = Api::OpenAiChat;
        for (vendor, api, model, expected) in [
            ("llama.cpp", chat, "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", Some("http://h/infill")),
            ("llama.cpp", chat, "llama-3.2-3b", None),
            ("ollama", Api::Ollama, "qwen2.5-coder:1.5b", Some("http://h/api/generate")),
            ("", Api::Ollama, "mistral-nemo", None),
            ("mistral", chat, "codestral-latest", Some("http://h/v1/fim/completions")),
            ("mistral", chat, "mistral-large-latest", None),
            ("deepseek", chat, "deepseek-chat", Some("http://h/beta/completions")),
            ("deepseek", chat, "deepseek-reasoner", None),
            ("vllm", chat, "bigcode/starcoder2-7b", Some("http://h/v1/completions")),
            ("lmstudio", chat, "deepseek-coder-v2-lite", Some("http://h/v1/completions")),
            ("", chat, "house-qwen2.5-coder", Some("http://h/v1/completions")),
            ("openrouter", chat, "qwen/qwen2.5-coder-32b", None),
            ("openai", Api::OpenAiResponses, "codestral", None),
        ] {
            assert_eq!(of(vendor, api, model).as_deref(), expected, "{vendor} {model}");
        }
        assert_eq!(
            Fill::Mistral.url("https://api.mistral.ai/v1"),
            "https://api.mistral.ai/v1/fim/completions"
        );
        assert_eq!(
            Fill::DeepSeek.url("https://api.deepseek.com"),
            "https://api.deepseek.com/beta/completions"
        );
    }

    #[test]
    fn each_family_has_its_own_marks() {
        let middle = Middle { path: None, before: "a(".into(), after: ")b".into() };
        let prompt = |model| match Fill::of("vllm", Api::OpenAiChat, model) {
            Some(fill) => fill.body(model, &middle, Some(9))["prompt"].as_str().unwrap().to_owned(),
            None => panic!("{model}"),
        };
        assert_eq!(prompt("Qwen/Qwen2.5-Coder-7B"), "<|fim_prefix|>a(<|fim_suffix|>)b<|fim_middle|>");
        assert_eq!(prompt("starcoder2"), "<fim_prefix>a(<fim_suffix>)b<fim_middle>");
        assert_eq!(prompt("deepseek-coder-6.7b"), "<｜fim▁begin｜>a(<｜fim▁hole｜>)b<｜fim▁end｜>");
        assert_eq!(prompt("codellama-7b"), "<PRE> a( <SUF>)b <MID>");
        assert_eq!(prompt("codestral-22b"), "[SUFFIX])b[PREFIX]a(");
        assert_eq!(prompt("Seed-Coder-8B"), "<[fim-suffix]>)b<[fim-prefix]>a(<[fim-middle]>");
    }
}
