//! Owns a loaded model: its file, weights, vocabulary and template together. Must not know conversations.
//! Invariant: an `Engine` that exists can answer; everything it cannot do was refused when it was loaded.

use std::path::Path;
use std::sync::Arc;

use domain::middle::Middle;
use domain::tool::ToolSpec;

use crate::error::ModelError;
use crate::fill_prompt::FillMarks;
use crate::gguf::{Gguf, Source};
use crate::model::Model;
use crate::template::{self, Message, Template};
use crate::tokenizer::{FILL_MARKS, Tokenizer};

/// A model ready to run. Shared by any number of sessions.
pub struct Engine {
    pub(crate) model: Model,
    pub(crate) tokenizer: Tokenizer,
    template: Template,
    name: String,
}

/// The facts of a model file that are worth knowing before it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFacts {
    /// Tokens the model was trained to look back on.
    pub window: usize,
    pub tools: bool,
    /// It was trained to fill the middle of a text.
    pub fills_middle: bool,
}

impl FileFacts {
    /// Reads the directory of the file. A file that cannot be read has no facts; its first prompt says why.
    pub(crate) fn read(path: &Path) -> Option<FileFacts> {
        let file = Gguf::parse(map(path).ok()?).ok()?;
        let window = file.unsigned(&format!("{}.context_length", file.text("general.architecture")?))?;
        let tools = file.text("tokenizer.chat_template").is_some_and(template::offers_tools);
        let tokens = file.strings("tokenizer.ggml.tokens").unwrap_or_default();
        let has = |mark: &str| tokens.iter().any(|token| file.bytes()[token.clone()] == *mark.as_bytes());
        let fills_middle = FILL_MARKS.iter().any(|marks| marks.iter().all(|mark| has(mark)));
        Some(FileFacts { window: usize::try_from(window).ok()?, tools, fills_middle })
    }
}

fn map(path: &Path) -> Result<Source, ModelError> {
    let unreadable = |source| ModelError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // SAFETY: the map is read-only and models are replaced by renaming, never by writing into them.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(unreadable)?;
    Ok(Arc::new(map))
}

impl Engine {
    /// Maps the file and reads its directory; weights are paged in as they are used.
    pub fn open(path: &Path) -> Result<Engine, ModelError> {
        Engine::read(map(path)?)
    }

    /// Whether the file at `path` could run here.
    pub fn check(path: &Path) -> Result<(), ModelError> {
        Engine::open(path).map(|_| ())
    }

    /// Reads a model from bytes that are already there.
    pub fn read(source: Source) -> Result<Engine, ModelError> {
        let file = Gguf::parse(source)?;
        let model = Model::read(&file)?;
        let tokenizer = Tokenizer::read(&file)?;
        if tokenizer.size() != model.shape.vocabulary {
            let (tokens, rows) = (tokenizer.size(), model.shape.vocabulary);
            return Err(ModelError::damaged(format!("it has {tokens} tokens and {rows} embeddings")));
        }
        let template = Template::new(file.text("tokenizer.chat_template"))?;
        let name = file.text("general.name").unwrap_or("unnamed").chars().take(200).collect();
        Ok(Engine { model, tokenizer, template, name })
    }

    /// The name the file gives the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens the model was trained to look back on.
    pub fn trained_window(&self) -> usize {
        self.model.shape.context
    }

    /// Token ids of a text, as the model's vocabulary cuts it. With `marks`, texts such as `<|im_start|>` steer.
    pub fn encode(&self, text: &str, marks: bool) -> Vec<u32> {
        self.tokenizer.encode(text, marks)
    }

    /// The text of some tokens.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for &token in tokens {
            self.tokenizer.decode(token, &mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether the model's own chat template offers tools.
    pub fn offers_tools(&self) -> bool {
        self.template.offers_tools()
    }

    /// The tokens of a chat, up to where the assistant is to speak.
    pub fn encode_chat(&self, messages: &[Message]) -> Result<Vec<u32>, ModelError> {
        self.encode_chat_with(messages, &[])
    }

    /// The same, with the tools that the model may ask for.
    pub fn encode_chat_with(&self, messages: &[Message], tools: &[ToolSpec]) -> Result<Vec<u32>, ModelError> {
        let text = self.template.render(messages, tools, &self.tokenizer)?;
        let mut tokens = self.tokenizer.encode(&text, true);
        if let Some(prefix) = self.tokenizer.prefix()
            && tokens.first() != Some(&prefix)
        {
            tokens.insert(0, prefix);
        }
        Ok(tokens)
    }

    /// The tokens of a prompt that asks for the text of a hole, at most `room` of them. `None`: the model fills none.
    pub fn fill_prompt(&self, middle: &Middle, room: usize) -> Option<Vec<u32>> {
        Some(FillMarks::of(&self.tokenizer)?.prompt(&self.tokenizer, middle, room))
    }
}
