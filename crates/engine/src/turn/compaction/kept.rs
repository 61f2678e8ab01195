//! What a compaction keeps word for word beside the summary: the user's words, the goal, open tasks and the files touched. Pure.
//!
//! Invariants: it is made from the whole history, so that a second compaction keeps what the first one kept; the messages of
//! the turn that is being answered stay whole, with everything attached to them; where earlier words are too many, the
//! longest messages are shortened to their beginning and their end, and the first message comes before all others.

use domain::item::{Item, ItemKind, Part, PlanStatus};
use domain::tool_call::{Details, Origin, RejectedBy, ToolCall, ToolState};
use domain::{ItemId, TurnId};

use crate::tool_calls::REJECTED_WITH_REASON;
use crate::turn::goal;

/// Bytes of the user's words where the window of the model is not known.
const USUAL_BUDGET: usize = 64_000;
const LEAST_BUDGET: usize = 2_000;
const MOST_BUDGET: usize = 400_000;
/// A message that is shortened keeps at least this many bytes.
const SHORTEST: usize = 200;

const LAST_REQUEST: &str = "The user's last request, word for word:";
const EARLIER: &str = "What the user said before, word for word, oldest first:";

/// How many bytes of the user's words are kept: about a quarter of the window, with four bytes to a token.
pub(super) fn budget(context_limit: Option<u64>) -> usize {
    match context_limit.filter(|limit| *limit > 0) {
        Some(limit) => usize::try_from(limit).unwrap_or(MOST_BUDGET).clamp(LEAST_BUDGET, MOST_BUDGET),
        None => USUAL_BUDGET,
    }
}

/// The user's words up to `budget` bytes, the messages of `turn` whole, and the files touched.
pub(super) fn parts(items: &[Item], turn: TurnId, budget: usize) -> Vec<Part> {
    let is_message = |item: &&Item| matches!(item.kind, ItemKind::UserMessage { .. });
    let mut last: Vec<&Item> = items.iter().filter(is_message).filter(|item| item.turn == turn).collect();
    let is_answered = last.is_empty();
    if is_answered {
        last.extend(items.iter().rev().find(is_message));
    }
    let mut parts = Vec::new();
    let is_earlier = |item: &&Item| last.iter().all(|last| last.id != item.id);
    let earlier = within(items.iter().filter(is_earlier).filter_map(words_of).collect(), budget);
    if !earlier.is_empty() {
        parts.push(Part::text(format!("{EARLIER}\n{}", earlier.join("\n"))));
    }
    for item in last {
        let ItemKind::UserMessage { text, parts: whole } = &item.kind else { continue };
        if is_answered {
            parts.push(Part::text(format!("{LAST_REQUEST}\n{text}")));
        } else {
            // It still waits for its answer.
            parts.push(Part::text(LAST_REQUEST));
            parts.extend(whole.iter().cloned());
        }
    }
    parts.extend(goal_of(items));
    parts.extend(open_tasks(items));
    parts.extend(files(items));
    parts
}

/// The goal that the chat works toward.
fn goal_of(items: &[Item]) -> Option<Part> {
    let goal = goal::current(items).filter(|goal| goal.is_open())?;
    let kind = if goal.is_command { "this command succeeds" } else { "this holds" };
    Some(Part::text(format!("The goal of this chat: work until {kind}: {}", goal.condition)))
}

/// The tasks of the newest list that are not done.
fn open_tasks(items: &[Item]) -> Option<Part> {
    let mut calls = items.iter().rev().filter_map(Item::tool_call).filter(|call| !call.error);
    let entries = calls.find_map(|call| {
        let Some(Details::Tasks { entries }) = &call.details else { return None };
        Some(entries)
    })?;
    let open: Vec<String> = entries
        .iter()
        .filter(|entry| entry.status != PlanStatus::Done)
        .map(|entry| match entry.status {
            PlanStatus::InProgress => format!("- {} (begun)", entry.text),
            PlanStatus::Pending | PlanStatus::Done => format!("- {}", entry.text),
        })
        .collect();
    (!open.is_empty()).then(|| Part::text(format!("Open tasks:\n{}", open.join("\n"))))
}

/// What the user said in an item: a message, an answer to a question, the reason of a refusal.
struct Words<'a> {
    item: ItemId,
    about: &'static str,
    text: &'a str,
}

fn words_of(item: &Item) -> Option<Words<'_>> {
    let (about, text) = if let ItemKind::UserMessage { text, .. } = &item.kind {
        ("", text.as_str())
    } else {
        words_in_call(item.tool_call()?)?
    };
    let text = text.trim();
    (!text.is_empty()).then_some(Words { item: item.id, about, text })
}

/// What the user said about a call, and how.
fn words_in_call(call: &ToolCall) -> Option<(&'static str, &str)> {
    let Some(Part::Text { text }) = call.result.first() else { return None };
    if call.state == (ToolState::Rejected { by: RejectedBy::User }) {
        Some(("(rejecting a call) ", text.strip_prefix(REJECTED_WITH_REASON)?))
    } else if call.state == ToolState::Done && is_question(call) && !call.error {
        Some(("(answering a question) ", text.as_str()))
    } else {
        None
    }
}

/// The built-in tool whose result is what the user answered.
fn is_question(call: &ToolCall) -> bool {
    call.origin == Origin::Native && call.name == "ask_user"
}

/// One line per message, shortened to fit. Where there are too many, those in the middle are left out.
fn within(mut words: Vec<Words<'_>>, budget: usize) -> Vec<String> {
    let most = (budget / SHORTEST).max(2);
    let least: usize = words.iter().map(|words| words.text.len().min(SHORTEST)).sum();
    let mut left_out = 0;
    if words.len() > most && least > budget {
        // The first ones say what it is all about, the newest what it is about now.
        let first = most.div_ceil(4);
        left_out = words.len() - most;
        words.drain(first..first + left_out);
    }
    let first = words.first().map_or(0, |first| first.text.len().min(budget / 2));
    let lengths: Vec<usize> = words.iter().skip(1).map(|words| words.text.len()).collect();
    let cap = even_cap(lengths, budget - first);
    let mut lines: Vec<String> = Vec::with_capacity(words.len() + 1);
    for (at, words) in words.iter().enumerate() {
        let own = if at == 0 { first } else { cap };
        lines.push(format!("- {}{}", words.about, shortened(words, own)));
        if left_out > 0 && at + 1 == most.div_ceil(4) {
            lines.push(format!("- ({left_out} messages are left out here; the tool recall finds them)"));
        }
    }
    lines
}

/// The largest length to which all texts can be cut so that their sum fits.
fn even_cap(mut lengths: Vec<usize>, budget: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, count) = (budget, lengths.len());
    for (at, length) in lengths.into_iter().enumerate() {
        let share = left / (count - at);
        if length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// The beginning and the end of a text that is longer than `most` bytes.
fn shortened(words: &Words<'_>, most: usize) -> String {
    let text = words.text;
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    let item = words.item;
    format!("{} (… recall {item} reads the whole …) {}", &text[..head], &text[tail..])
}

fn files(items: &[Item]) -> Option<Part> {
    let mut files: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let ItemKind::ToolCall(call) = &item.kind else { return None };
            Some(&call.locations)
        })
        .flatten()
        .map(|location| location.path.display().to_string())
        .collect();
    files.sort();
    files.dedup();
    (!files.is_empty()).then(|| Part::text(format!("Files touched so far:\n{}", files.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: u64, turn: u64, kind: ItemKind) -> Item {
        Item { id: ItemId(id), turn: TurnId(turn), step: 0, parent: None, kind }
    }

    fn user(id: u64, turn: u64, text: &str) -> Item {
        item(id, turn, ItemKind::UserMessage { text: text.into(), parts: vec![Part::text(text)] })
    }

    fn text(items: &[Item], turn: u64, budget: usize) -> String {
        let texts = parts(items, TurnId(turn), budget).into_iter().map(|part| match part {
            Part::Text { text } => text,
            Part::Image { .. } => "image".to_owned(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    fn call(name: &str, state: ToolState, result: &str) -> ItemKind {
        let new = ToolCall::new(String::new(), "eca".into(), name.into(), Origin::Native);
        ItemKind::ToolCall(Box::new(ToolCall { state, result: vec![Part::text(result)], ..new }))
    }

    #[test]
    fn everything_that_the_user_said_is_kept_where_it_fits() {
        let summary = ItemKind::Compaction { summary: "short".into(), kept: Vec::new() };
        let refused = ToolState::Rejected { by: RejectedBy::User };
        let items = [
            user(1, 1, "Never touch config.lock."),
            item(2, 1, call("ask_user", ToolState::Done, "Port 8080.")),
            item(3, 1, call("shell_command", refused, &format!("{REJECTED_WITH_REASON}use make"))),
            item(4, 1, call("read_file", ToolState::Done, "file text")),
            item(5, 1, summary),
            user(6, 2, "Then the tests."),
            user(7, 3, "Go on."),
        ];
        let kept = text(&items, 3, 10_000);
        for wanted in ["- Never touch config.lock.", "Port 8080.", "use make", "- Then the tests.", "Go on."]
        {
            assert!(kept.contains(wanted), "{wanted} is missing: {kept}");
        }
        assert!(!kept.contains("file text") && kept.ends_with("word for word:\nGo on."), "{kept}");
        assert_eq!(
            text(&items[..1], 2, 10),
            "The user's last request, word for word:\nNever touch config.lock."
        );
        assert_eq!(text(&[], 2, 10), "");
    }

    #[test]
    fn the_turn_that_is_being_answered_stays_whole() {
        let image = Part::Image { mime: "image/png".into(), data: "DATA".into() };
        let parts_of = |text: &str| vec![image.clone(), Part::text(text)];
        let attached = ItemKind::UserMessage { text: "look".into(), parts: parts_of("look") };
        let items = [user(1, 1, "Before."), item(2, 2, attached), user(3, 2, "Also the tests.")];
        let kept = parts(&items, TurnId(2), 1_000);
        assert!(
            kept.contains(&image),
            "a text for the running turn does not push its attachments out: {kept:?}"
        );
        let text = text(&items, 2, 1_000);
        let order = ["Before.", "look", "Also the tests."].map(|part| text.find(part));
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{text}");
        assert!(
            !parts(&items, TurnId(3), 1_000).contains(&image),
            "an answered request keeps its text alone"
        );
    }

    #[test]
    fn too_many_words_are_shortened_and_the_first_message_stays() {
        let first = format!("Build a shop. {} Never touch config.lock.", "x".repeat(1_000));
        let paste = format!("Look at this: {} What is wrong?", "y".repeat(200_000));
        let mut items = vec![user(1, 1, &first), user(2, 2, &paste), user(3, 3, "Use tabs.")];
        items.extend((4..20).map(|id| user(id, id, "Go on.")));
        let kept = text(&items, 99, 8_000);
        assert!(kept.len() < 10_000, "{}", kept.len());
        for wanted in [first.as_str(), "Look at this", "What is wrong?", "Use tabs.", "recall item-2"] {
            assert!(kept.contains(wanted), "{wanted} is missing: {kept}");
        }
        items.extend((20..5_000).map(|id| user(id, id, &format!("Message {id}."))));
        let kept = text(&items, 9_999, 8_000);
        assert!(kept.len() < 12_000, "{}", kept.len());
        for wanted in ["Build a shop.", "Never touch config.lock.", "messages are left out", "Message 4998."]
        {
            assert!(kept.contains(wanted), "{wanted} is missing: {kept}");
        }
    }

    #[test]
    fn the_budget_follows_the_window() {
        for (limit, bytes) in [
            (None, 64_000),
            (Some(0), 64_000),
            (Some(100), 2_000),
            (Some(32_768), 32_768),
            (Some(1 << 20), 400_000),
        ] {
            assert_eq!(budget(limit), bytes, "{limit:?}");
        }
    }
}
