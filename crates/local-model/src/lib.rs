//! The embedded model: a GGUF file run on the CPU, in this process, with code of our own.
//!
//! [`Engine`] is a loaded file, [`Session`] a conversation with it. Knows nothing of editors, tools or the network;
//! spawns no program and reads no environment.

mod answer_parser;
mod completions;
mod conversation;
mod engine;
mod error;
mod fill_prompt;
mod format;
mod generation;
mod gguf;
mod grammar;
mod install;
mod kernels;
mod lookup;
mod memory;
mod model;
mod probe;
mod provider;
mod python_json;
mod registry;
mod sampler;
mod saved_prefix;
mod session;
mod template;
mod threads;
mod tokenizer;
mod tool_chat;
mod wheel;

pub use engine::Engine;
pub use error::ModelError;
pub use generation::{AnswerEnd, AnswerOptions};
pub use install::{DEFAULT, Incoming, InstallError, Weights};
pub use probe::weights_per_second;
pub use provider::LocalModel;
pub use registry::{Installed, Registry};
pub use sampler::Sampling;
pub use saved_prefix::remove_saved_prefixes;
pub use session::{AnswerReport, Limits, Session};
pub use template::{Message, RequestedCall, Role};
pub use wheel::package_member;
