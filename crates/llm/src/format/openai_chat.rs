//! OpenAI Chat Completions, spoken by OpenAI and by nearly everybody else: `encode` writes requests, `decode` reads
//! the streams with all their dialects.

mod decode;
mod encode;
mod wire;

pub use decode::Decoder;
pub use encode::encode;

pub(crate) const FORMAT: &str = "openai-chat";
