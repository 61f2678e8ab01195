//! OpenAI Responses: `encode` writes requests, `decode` reads the streams of OpenAI and of compatible servers.

mod decode;
mod encode;
mod text_call;
mod wire;

pub use decode::Decoder;
pub use encode::encode;

pub(crate) const FORMAT: &str = "openai-responses";
