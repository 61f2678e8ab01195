//! The short list of models that `dragoman models pull` offers.
//!
//! Owns names, repositories and our estimate of the memory a model needs. Size, license and SHA-256 are never written
//! here: they come from the hub when they are shown or used.

pub struct Choice {
    /// The name here; `local/<id>` in the list of models.
    pub id: &'static str,
    /// The repository on the hub. Its file of the format Q4_K_M is meant.
    pub repository: &'static str,
    /// Gigabytes of memory that the model needs while it answers, with its context.
    pub memory: u64,
    pub use_for: &'static str,
}

pub(crate) const CHOICES: [Choice; 3] = [
    Choice {
        id: "qwen2.5-coder-1.5b",
        repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        memory: 2,
        use_for: "questions about code, small edits",
    },
    Choice {
        id: "qwen2.5-coder-3b",
        repository: "Qwen/Qwen2.5-Coder-3B-Instruct-GGUF",
        memory: 4,
        use_for: "the same with more knowledge, slower",
    },
    Choice {
        id: "qwen3-4b",
        repository: "Qwen/Qwen3-4B-GGUF",
        memory: 5,
        use_for: "for work with tools, the slowest",
    },
];

pub fn find(name: &str) -> Option<&'static Choice> {
    let name = name.strip_prefix("local/").unwrap_or(name);
    CHOICES.iter().find(|choice| choice.id == name)
}
