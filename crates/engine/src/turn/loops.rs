//! Detects a model that repeats itself: the same call with the same result, and nothing changed in between.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::item::Part;
use domain::tool_call::{Details, ToolCall};

/// Repetitions after which the model is warned; one more ends the turn.
const WARN_AT: u32 = 3;

#[derive(Default)]
pub(crate) struct LoopDetector {
    seen: HashMap<u64, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Repetition {
    None,
    /// The model is warned.
    Warn,
    Stop,
}

impl LoopDetector {
    pub(crate) fn observe(&mut self, call: &ToolCall) -> Repetition {
        let mut hasher = DefaultHasher::new();
        (&call.server, &call.name, &call.input_text).hash(&mut hasher);
        for part in &call.result {
            match part {
                Part::Text { text } => text.hash(&mut hasher),
                Part::Image { data, .. } => data.hash(&mut hasher),
            }
        }
        let key = hasher.finish();
        // After a change that is news, the same question is a new one: tests are run again after each edit.
        let is_change = matches!(call.details, Some(Details::FileChange(_)));
        if is_change && !call.error && !self.seen.contains_key(&key) {
            self.seen.clear();
        }
        let count = self.seen.entry(key).or_insert(0);
        *count += 1;
        match *count {
            WARN_AT => Repetition::Warn,
            count if count > WARN_AT => Repetition::Stop,
            _ => Repetition::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::tool_call::{FileChange, Origin, ToolState};

    use super::*;

    fn call(name: &str, input: &str, result: &str) -> ToolCall {
        let details = (name == "edit_file").then(|| {
            Details::FileChange(FileChange {
                path: "f".into(),
                diff: String::new(),
                lines_added: 0,
                lines_removed: 0,
                old_text: None,
                new_text: None,
            })
        });
        ToolCall {
            call_id: String::new(),
            name: name.into(),
            server: "eca".into(),
            origin: Origin::Native,
            input_text: input.into(),
            input: None,
            state: ToolState::Done,
            summary: String::new(),
            details,
            manual_approval: false,
            live_output: String::new(),
            result: vec![Part::text(result)],
            error: false,
            millis: 0,
            locations: Vec::new(),
            provider: None,
        }
    }

    #[test]
    fn a_repeated_call_is_warned_of_at_three_and_stopped_at_four() {
        let mut loops = LoopDetector::default();
        let mut observe = |name: &str, input: &str, result: &str| loops.observe(&call(name, input, result));
        for expected in [Repetition::None, Repetition::None, Repetition::Warn, Repetition::Stop] {
            assert_eq!(observe("read_file", "a", "same"), expected);
            assert_eq!(
                observe("read_file", "b", &format!("{expected:?}")),
                Repetition::None,
                "another result is no repetition"
            );
        }
    }

    #[test]
    fn tests_may_fail_alike_after_each_edit() {
        let mut loops = LoopDetector::default();
        for round in 0..10 {
            assert_eq!(loops.observe(&call("edit_file", &round.to_string(), "done")), Repetition::None);
            assert_eq!(loops.observe(&call("shell_command", "cargo test", "1 failed")), Repetition::None);
        }
        let mut last = Repetition::None;
        for _ in 0..4 {
            loops.observe(&call("shell_command", "cargo test", "1 failed"));
            last = loops.observe(&call("edit_file", "9", "done"));
        }
        assert_eq!(last, Repetition::Stop, "the same edit is no news");
    }
}
