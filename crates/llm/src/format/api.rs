//! The API formats by name, and the facts about each. `format` writes and reads them.

/// The API formats, by the names that configuration uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Api {
    OpenAiResponses,
    OpenAiChat,
    Anthropic,
    Gemini,
    Ollama,
    Bedrock,
}

impl Api {
    pub const ALL: [Self; 6] =
        [Self::OpenAiResponses, Self::OpenAiChat, Self::Anthropic, Self::Gemini, Self::Ollama, Self::Bedrock];

    /// The name in configuration and in stored provider blocks.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiResponses => "openai-responses",
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Bedrock => "bedrock",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// Whether the providers of this format search the web by a tool of their own.
    pub fn searches_web(self) -> bool {
        match self {
            Self::OpenAiResponses | Self::Anthropic | Self::Gemini => true,
            Self::OpenAiChat | Self::Ollama | Self::Bedrock => false,
        }
    }

    /// The member of the body that holds the history.
    pub fn history_member(self) -> &'static str {
        match self {
            Self::OpenAiResponses => "input",
            Self::Gemini => "contents",
            Self::OpenAiChat | Self::Anthropic | Self::Ollama | Self::Bedrock => "messages",
        }
    }

    /// The type of answer that is asked for.
    pub fn accept(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            Self::Bedrock => "application/vnd.amazon.eventstream",
            Self::OpenAiResponses | Self::OpenAiChat | Self::Anthropic | Self::Gemini => "text/event-stream",
        }
    }
}
