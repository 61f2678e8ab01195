//! Owns the architectures that can be run, and their names in files.

use crate::error::ModelError;
use crate::gguf::Gguf;

/// A family of models that differ in names and details only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    Llama,
    Qwen2,
    Qwen3,
}

impl Architecture {
    const NAMES: &'static str = "llama, qwen2 and qwen3";

    pub(super) fn read(file: &Gguf) -> Result<Architecture, ModelError> {
        let name = file.text("general.architecture").unwrap_or("unknown");
        let all = [Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3];
        all.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            let known = Architecture::NAMES;
            ModelError::unsupported(format!("its architecture is {name}; supported: {known}"))
        })
    }

    /// The name in the file, which is also the prefix of the keys of its sizes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen2 => "qwen2",
            Architecture::Qwen3 => "qwen3",
        }
    }

    pub(super) fn has_head_norms(self) -> bool {
        self == Architecture::Qwen3
    }
}
