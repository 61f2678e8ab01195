//! Notices a model that goes in circles: the same call with the same result.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::item::Part;
use domain::tool_call::ToolCall;

/// Repetitions after which the model is told; one more ends the turn.
const TOLD_AT: u32 = 3;

#[derive(Default)]
pub struct LoopDetector {
    seen: HashMap<u64, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Circle {
    No,
    Tell,
    Stop,
}

impl LoopDetector {
    pub fn see(&mut self, call: &ToolCall) -> Circle {
        let mut hasher = DefaultHasher::new();
        (&call.server, &call.name, &call.input_text).hash(&mut hasher);
        for part in &call.result {
            match part {
                Part::Text { text } => text.hash(&mut hasher),
                Part::Image { data, .. } => data.hash(&mut hasher),
            }
        }
        let count = self.seen.entry(hasher.finish()).or_insert(0);
        *count += 1;
        match *count {
            TOLD_AT => Circle::Tell,
            count if count > TOLD_AT => Circle::Stop,
            _ => Circle::No,
        }
    }
}
