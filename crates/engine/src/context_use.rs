//! What fills the context window: an estimate by the lengths of the texts, fitted to the tokens that were counted.
//!
//! Must not know providers. Invariant: the parts sum to the tokens of the call.

use std::fmt::Write as _;
use std::io;

use domain::event::{ContextUse, SessionUsage};
use domain::item::Part;
use domain::model::{Prompt, PromptEntry, Tokens};
use serde_json::Value;
use session::account::KnownLengths;

/// Counts the entries that are new; all of them where the history is another one.
fn update(known: &mut KnownLengths, prompt: &Prompt) {
    let keys = prompt.written.as_ref().map(|written| written.keys.as_slice());
    let keys = keys.filter(|keys| keys.len() == prompt.entries.len()).unwrap_or_default();
    if !keys.starts_with(&known.keys) {
        *known = KnownLengths::default();
    }
    for entry in prompt.entries.iter().skip(known.keys.len()) {
        match entry {
            PromptEntry::User { parts } => known.conversation += parts_length(parts),
            PromptEntry::Agent { text, .. } | PromptEntry::Reasoning { text, .. } => {
                known.conversation += text.len() as u64;
            }
            PromptEntry::Call { name, input, .. } => {
                known.tool_calls += name.len() as u64 + written_length(input);
            }
            PromptEntry::Result { parts, .. } => known.tool_calls += parts_length(parts),
        }
    }
    known.keys = keys.to_vec();
}

/// The lengths of what a call sends, in bytes; those of its tools are known.
pub(crate) fn lengths(prompt: &Prompt, tool_definitions: u64, known: &mut KnownLengths) -> ContextUse {
    update(known, prompt);
    let (conversation, tool_calls) = (known.conversation, known.tool_calls);
    let mut lengths = ContextUse { tool_definitions, conversation, tool_calls, ..ContextUse::default() };
    for text in &prompt.system {
        add_system(text, &mut lengths);
    }
    // Without keys nothing is known of the next history.
    if known.keys.is_empty() {
        *known = KnownLengths::default();
    }
    lengths
}

/// The length of a value as JSON, without writing it down.
fn written_length(value: &Value) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// An image counts like a page of text.
const IMAGE_LENGTH: u64 = 4_000;

pub(crate) fn parts_length(parts: &[Part]) -> u64 {
    let length = |part: &Part| match part {
        Part::Text { text } => text.len() as u64,
        Part::Image { .. } => IMAGE_LENGTH,
    };
    parts.iter().map(length).sum()
}

/// The system prompt is one text; its parts are between marks.
fn add_system(text: &str, lengths: &mut ContextUse) {
    lengths.rules += between(text, "<rule name=", "</rule>");
    lengths.instructions += between(text, "<instructions file=", "</instructions>");
    lengths.skills += between(text, crate::skills::HEADING, "\n\n");
    let special = lengths.rules + lengths.instructions + lengths.skills;
    lengths.system_prompt += (text.len() as u64).saturating_sub(special);
}

fn between(text: &str, open: &str, close: &str) -> u64 {
    let parts = text.split(open).skip(1);
    parts.map(|rest| (open.len() + rest.find(close).map_or(rest.len(), |at| at + close.len())) as u64).sum()
}

/// The tokens of a call, shared out by the lengths of what it sent; its answer is conversation.
pub(crate) fn fit(lengths: &ContextUse, tokens: &Tokens) -> ContextUse {
    let sent = tokens.input + tokens.cache_read + tokens.cache_write;
    let total = lengths.total().max(1);
    let share = |length: u64| {
        let tokens = u128::from(length) * u128::from(sent) / u128::from(total);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    };
    let mut fitted = ContextUse {
        system_prompt: share(lengths.system_prompt),
        rules: share(lengths.rules),
        skills: share(lengths.skills),
        instructions: share(lengths.instructions),
        tool_definitions: share(lengths.tool_definitions),
        tool_calls: share(lengths.tool_calls),
        conversation: share(lengths.conversation),
    };
    // What rounding left over, and the answer.
    fitted.conversation += tokens.all().saturating_sub(fitted.total());
    fitted
}

/// The tokens of a request before it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Estimate {
    pub(crate) tokens: u64,
    /// The length of the request in bytes.
    length: u64,
    /// Those of the history, which a summary makes fewer; the rest are instructions and tools.
    pub(crate) history: u64,
    /// By what the provider counted for the request before; else by the usual length of a token.
    pub(crate) is_counted: bool,
}

/// The usual length of a token in bytes.
const BYTES_OF_TOKEN: u64 = 4;
/// No text has longer tokens on average: a smaller count is not one of this request.
const LONGEST_TOKEN: u64 = 10;

impl Estimate {
    /// Whether the request is longer than `limit` because of its history.
    pub(crate) fn has_too_long_history(&self, limit: u64) -> bool {
        self.tokens > limit && self.tokens - self.history.min(self.tokens) < limit
    }

    /// The tokens that are left without the history, but with a message of so many bytes.
    pub(crate) fn without_history(&self, message: u64) -> u64 {
        let message = u128::from(message) * u128::from(self.tokens) / u128::from(self.length.max(1));
        let rest = self.tokens - self.history.min(self.tokens);
        rest.saturating_add(u64::try_from(message).unwrap_or(u64::MAX))
    }
}

/// `counted`: the length of the request before and its tokens.
pub(crate) fn estimate(lengths: &ContextUse, counted: Option<(u64, u64)>) -> Estimate {
    let (length, history) = (lengths.total(), lengths.conversation + lengths.tool_calls);
    let plausible = counted.filter(|(bytes, tokens)| *bytes > 0 && *tokens >= bytes.div_ceil(LONGEST_TOKEN));
    match plausible {
        Some((bytes, tokens)) => {
            let scaled = |length: u64| {
                let tokens = u128::from(length) * u128::from(tokens) / u128::from(bytes);
                u64::try_from(tokens).unwrap_or(u64::MAX)
            };
            Estimate { tokens: scaled(length), length, history: scaled(history), is_counted: true }
        }
        None => {
            let usual = |length: u64| length.div_ceil(BYTES_OF_TOKEN);
            Estimate { tokens: usual(length), length, history: usual(history), is_counted: false }
        }
    }
}

/// `/context`: the parts, as text.
pub(crate) fn text(usage: &SessionUsage) -> String {
    let Some(context) = &usage.context else {
        return "Nothing has been sent to a model in this chat yet.".to_owned();
    };
    let used = context.total();
    let mut text = match usage.context_limit.filter(|limit| *limit > 0) {
        Some(limit) => format!("{used} of {limit} tokens ({} %)\n\n", used * 100 / limit),
        None => format!("{used} tokens; the limit of this model is not known\n\n"),
    };
    for (name, tokens) in context.parts().into_iter().filter(|(_, tokens)| *tokens > 0) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {name}: {tokens}");
    }
    if let Some(limit) = usage.context_limit {
        let _ = writeln!(text, "- Free: {}", limit.saturating_sub(used));
    }
    text.push_str(
        "\nThe sum is what the provider counted; the parts are estimated by the lengths of the texts.",
    );
    text
}

#[cfg(test)]
mod tests {
    use domain::model::WrittenHistory;

    use super::*;

    #[test]
    fn the_parts_sum_to_the_tokens_of_the_call() {
        let system =
            "Base.\n\n<rule name=\"a\">\nx\n</rule>\n\n<instructions file=\"b\">\ny\n</instructions>";
        let prompt = Prompt {
            system: vec![system.into()],
            entries: vec![PromptEntry::User { parts: vec![Part::text("Hello there")] }],
            ..Prompt::default()
        };
        let lengths = lengths(&prompt, 0, &mut KnownLengths::default());
        assert_eq!(lengths.rules, "<rule name=\"a\">\nx\n</rule>".len() as u64);
        assert!(lengths.instructions > 20 && lengths.system_prompt > 4 && lengths.skills == 0);
        let tokens = Tokens { input: 7, cache_read: 90, output: 13, ..Tokens::default() };
        let fitted = fit(&lengths, &tokens);
        assert_eq!(fitted.total(), tokens.all());
        assert!(fitted.conversation >= 13 && fitted.rules > 0);
    }

    #[test]
    fn an_estimate_follows_what_the_provider_counted() {
        for (length, counted, tokens, is_counted) in [
            (4_000, None, 1_000, false),
            (4_000, Some((2_000, 1_000)), 2_000, true),
            (90_000, Some((30_000, 10_000)), 30_000, true),
            // A provider that counts nothing, or something else.
            (4_000, Some((2_000, 0)), 1_000, false),
            (4_000, Some((2_000, 7)), 1_000, false),
            (4_000, Some((0, 0)), 1_000, false),
            (u64::MAX, Some((1, u64::MAX)), u64::MAX, true),
        ] {
            let lengths = ContextUse {
                system_prompt: length / 2,
                conversation: length - length / 2,
                ..ContextUse::default()
            };
            let estimate = estimate(&lengths, counted);
            assert_eq!((estimate.tokens, estimate.is_counted), (tokens, is_counted), "{length} {counted:?}");
            assert!(tokens == u64::MAX || estimate.history.abs_diff(tokens / 2) <= 1, "{estimate:?}");
        }
    }

    #[test]
    fn a_summary_helps_only_where_the_history_is_what_is_too_long() {
        for (tokens, history, expected) in [
            (900, 800, false),
            (1_100, 800, true),
            (5_000, 10, false),
            (5_000, 4_500, true),
            (1_100, 100, false),
        ] {
            let estimate = Estimate { tokens, length: tokens * 4, history, is_counted: false };
            assert_eq!(estimate.has_too_long_history(1_000), expected, "{estimate:?}");
            assert_eq!(estimate.without_history(400), tokens - history + 100, "{estimate:?}");
        }
    }

    #[test]
    fn a_history_that_grew_or_changed_is_counted_as_a_new_one() {
        let mut known = KnownLengths::default();
        for keys in [vec![1], vec![1, 2], vec![1, 2, 5], vec![1, 3], vec![], vec![4, 5, 6]] {
            let text = |key: &u64| PromptEntry::User { parts: vec![Part::text("x".repeat(*key as usize))] };
            let entries = keys.iter().map(text).collect();
            let sum: u64 = keys.iter().sum();
            let written = Some(WrittenHistory { keys, ..WrittenHistory::default() });
            let prompt = Prompt { entries, written, ..Prompt::default() };
            assert_eq!(lengths(&prompt, 0, &mut known).conversation, sum);
        }
    }
}
