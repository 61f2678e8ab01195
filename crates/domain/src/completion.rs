//! One model call outside every chat: what is asked for, and what came of it.

use std::time::Duration;

use serde_json::Value;

use crate::middle::Middle;
use crate::model::Tokens;
use crate::spending::Gate;

/// One model call outside every chat.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// For the bill: `title`, `compact`, `rewrite`, `customize`.
    pub purpose: String,
    pub system: String,
    /// Alternating, the user's first and last.
    pub messages: Vec<String>,
    pub output_schema: Option<Value>,
    /// The cursor that the text is for. A model that fills middles is asked by it instead of by the messages.
    pub middle: Option<Middle>,
    /// `None`: the default model.
    pub model: Option<String>,
    /// Refuse where only the embedded model is there.
    pub no_local: bool,
    pub deadline: Duration,
    /// Asked before the call.
    pub gate: Gate,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Completed {
    pub text: String,
    pub model: String,
    pub tokens: Tokens,
    pub cost: Option<f64>,
}
