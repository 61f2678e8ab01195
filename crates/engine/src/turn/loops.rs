//! Notices a model that goes in circles: the same call with the same result, and nothing changed in between.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::item::Part;
use domain::tool_call::{Details, ToolCall};

/// Repetitions after which the model is told; one more ends the turn.
const TOLD_AT: u32 = 3;

#[derive(Default)]
pub struct LoopDetector {
    seen: HashMap<u64, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
        let key = hasher.finish();
        // After a change that is news, the same question is a new one: tests are run again after each edit.
        let is_change = matches!(call.details, Some(Details::FileChange(_)));
        if is_change && !call.error && !self.seen.contains_key(&key) {
            self.seen.clear();
        }
        let count = self.seen.entry(key).or_insert(0);
        *count += 1;
        match *count {
            TOLD_AT => Circle::Tell,
            count if count > TOLD_AT => Circle::Stop,
            _ => Circle::No,
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
    fn the_same_call_is_told_at_three_and_stopped_at_four() {
        let mut loops = LoopDetector::default();
        let mut see = |name: &str, input: &str, result: &str| loops.see(&call(name, input, result));
        for expected in [Circle::No, Circle::No, Circle::Tell, Circle::Stop] {
            assert_eq!(see("read_file", "a", "same"), expected);
            assert_eq!(
                see("read_file", "b", &format!("{expected:?}")),
                Circle::No,
                "another result is no circle"
            );
        }
    }

    #[test]
    fn tests_may_fail_alike_after_each_edit() {
        let mut loops = LoopDetector::default();
        for round in 0..10 {
            assert_eq!(loops.see(&call("edit_file", &round.to_string(), "done")), Circle::No);
            assert_eq!(loops.see(&call("shell_command", "cargo test", "1 failed")), Circle::No);
        }
        let mut last = Circle::No;
        for _ in 0..4 {
            loops.see(&call("shell_command", "cargo test", "1 failed"));
            last = loops.see(&call("edit_file", "9", "done"));
        }
        assert_eq!(last, Circle::Stop, "the same edit is no news");
    }
}
