//! The conversation as text for a summarizer, in parts that its window can hold. Pure.
//!
//! Invariant: every message of the user and of the assistant is in one of the parts, in whole; only what tools were given
//! and gave is shortened.

use domain::item::Part;
use domain::model::PromptEntry;

/// Characters of a tool's arguments and of its result.
const TOOL_TEXT: usize = 4_000;

/// The conversation in parts of at most `most` bytes each; an empty conversation is one empty part.
pub(crate) fn parts(entries: &[PromptEntry], most: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for line in entries.iter().map(line_of).filter(|line| !line.is_empty()) {
        let mut rest = line.as_str();
        while !rest.is_empty() {
            let is_full = |part: &String| !part.is_empty() && part.len() + 2 + rest.len() > most;
            if parts.last().is_some_and(is_full) {
                parts.push(String::new());
            }
            let (piece, after) = split(rest, most);
            if let Some(part) = parts.last_mut() {
                if !part.is_empty() {
                    part.push_str("\n\n");
                }
                part.push_str(piece);
            }
            rest = after;
        }
    }
    parts
}

/// A part that was too long for the model, in two.
pub(super) fn halves(part: &str) -> [String; 2] {
    let (first, second) = split(part, part.len().div_ceil(2));
    [first.to_owned(), second.to_owned()]
}

/// The first `most` bytes, up to the end of a line where one is near, and the rest.
fn split(text: &str, most: usize) -> (&str, &str) {
    if text.len() <= most {
        return (text, "");
    }
    let end = text.floor_char_boundary(most.max(4));
    let line = text[..end].rfind('\n').map(|at| at + 1).filter(|at| *at > end / 2);
    text.split_at(line.unwrap_or(end))
}

fn line_of(entry: &PromptEntry) -> String {
    match entry {
        PromptEntry::User { parts } => format!("User: {}", text_of(parts)),
        PromptEntry::Agent { text, .. } => format!("Assistant: {text}"),
        PromptEntry::Reasoning { .. } => String::new(),
        PromptEntry::Call { name, input, .. } => {
            format!("Assistant calls {name} {}", shortened(&input.to_string()))
        }
        PromptEntry::Result { name, parts, .. } => format!("{name} gave: {}", shortened(&text_of(parts))),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TOOL_TEXT) {
        Some((end, _)) => format!("{} (…)", &text[..end]),
        None => text.to_owned(),
    }
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Image { .. } => "(an image)",
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> PromptEntry {
        PromptEntry::User { parts: vec![Part::text(text)] }
    }

    #[test]
    fn every_word_of_people_is_in_a_part_and_no_part_is_too_long() {
        let long = (0..2_000).map(|at| format!("word{at} and ü\n")).collect::<String>();
        let agent = PromptEntry::Agent { text: long.clone(), provider: None };
        let entries = [user("Never touch config.lock."), user(&long), agent, user("Go on.")];
        for most in [16, 100, 1_000, 1_000_000] {
            let parts = parts(&entries, most);
            assert!(parts.iter().all(|part| part.len() <= most), "{most}");
            let without_breaks = |text: &str| text.split_whitespace().collect::<String>();
            let joined = without_breaks(&parts.concat());
            let all = format!("User: Never touch config.lock. User: {long} Assistant: {long} User: Go on.");
            assert_eq!(joined, without_breaks(&all), "{most}");
        }
        assert_eq!(parts(&entries, 1_000_000).len(), 1);
        assert_eq!(parts(&[], 10), [""]);
    }

    #[test]
    fn what_tools_were_given_and_gave_is_shortened() {
        let call = PromptEntry::Call {
            call_id: "1".into(),
            name: "write".into(),
            input: json!({"text": "x".repeat(9_000)}),
            provider: None,
        };
        let result = PromptEntry::Result {
            call_id: "1".into(),
            name: "write".into(),
            parts: vec![Part::text("é".repeat(9_000))],
            error: false,
        };
        let parts = parts(&[call, result], 1_000_000);
        assert!(parts[0].len() < 13_000 && parts[0].matches("(…)").count() == 2, "{}", parts[0].len());
    }

    #[test]
    fn halves_are_the_whole() {
        for text in ["", "ü", "one line", "first\nsecond\nthird", "aüb"] {
            assert_eq!(halves(text).concat(), text);
        }
        assert_eq!(halves("first\nsecond"), ["first\n", "second"]);
    }
}
