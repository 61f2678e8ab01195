//! Anthropic Messages: `encode` writes requests, `decode` reads the streams of Anthropic and of compatible servers.

mod decode;
mod encode;

pub use decode::Decoder;
pub use encode::{encode, headers};

pub(crate) const FORMAT: &str = "anthropic";
