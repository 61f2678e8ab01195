//! The embedded model: a GGUF file run on the CPU, in this process, with code of our own.
//!
//! [`Engine`] is a loaded file, [`Session`] a conversation with it. Knows nothing of editors, tools or the network;
//! spawns no program and reads no environment.

mod answer_parser;
mod conversation;
mod engine;
mod error;
mod format;
mod gguf;
mod install;
mod kernels;
mod memory;
mod model;
mod probe;
mod provider;
mod python_json;
mod registry;
mod sampler;
mod session;
mod template;
mod threads;
mod tokenizer;
mod tool_chat;
mod wheel;

pub use engine::Engine;
pub use error::ModelError;
pub use install::{DEFAULT, Incoming, InstallError, Weights};
pub use probe::weights_per_second;
pub use provider::LocalModel;
pub use registry::{Installed, Registry};
pub use sampler::Sampling;
pub use session::{AnswerEnd, AnswerReport, Limits, Session};
pub use template::{Message, RequestedCall, Role};
pub use wheel::package_member;
