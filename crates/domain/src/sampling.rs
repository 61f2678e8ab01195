//! What a tool may ask of a model, and what it gets.

use crate::item::Part;

/// What a model found on the web.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebAnswer {
    pub text: String,
    /// The pages that it cites: title and address.
    pub pages: Vec<(String, String)>,
}

/// What a tool asks the model of the turn.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample {
    pub system: String,
    /// Whose words each is: the user's where true, else the model's.
    pub messages: Vec<(bool, Vec<Part>)>,
    /// The largest answer in tokens; `None`: as the model has it.
    pub max_tokens: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Sampled {
    pub text: String,
    pub model: String,
    /// The answer was cut at the largest size.
    pub is_cut: bool,
}
