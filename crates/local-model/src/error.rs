//! Owns every reason why a file or a request is turned down, as sentences that say what to do next.
//! Knows nothing about how files are read. Invariant: no message holds the content of a prompt.

use std::path::PathBuf;

const ADVICE: &str = "Run such a model with Ollama or a llama.cpp server and configure it as a provider.";

/// Why a model was not loaded, or why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("Cannot read {}: {source}. Check that the file exists and is readable.", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("This is not a GGUF file: {0}. Use a file whose name ends in .gguf, from a complete download.")]
    NotGguf(String),
    #[error("The GGUF file is damaged: {0}. Download it again.")]
    Damaged(String),
    #[error("The embedded engine cannot run this model: {0}. {ADVICE}")]
    Unsupported(String),
    #[error("The chat template of the model file failed: {0}. {ADVICE}")]
    Template(String),
    #[error(
        "The prompt is {tokens} tokens long and the window holds {window}. Shorten it or start a new chat."
    )]
    TooLong { tokens: usize, window: usize },
    #[error(
        "The model needs {needed} MB of memory, and {free} MB are free. Close other programs, or take a smaller model: \
         `dragoman models pull` lists them."
    )]
    TooLittleMemory { needed: u64, free: u64 },
    #[error("The prompt is empty. Write something to answer.")]
    EmptyPrompt,
}

impl ModelError {
    pub(crate) fn damaged(what: impl Into<String>) -> ModelError {
        ModelError::Damaged(what.into())
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> ModelError {
        ModelError::Unsupported(what.into())
    }
}
