//! The conversation around a wish: an answer to a question completes the wish that raised it.
//!
//! Owns the reading of the history. Hosts differ in whether the answer is the prompt or the last turn; both work.

use super::grammar::intent;
use super::phrases::tidy;
use super::understand::{beyond, understand};
use super::{Outcome, RefusalKind, Turn, views};
use crate::plan::Plan;

/// Alternatives are examples of wishes: only those stay that this plan takes.
pub(super) fn wish(plan: &Plan, prompt: &str, history: &[Turn]) -> Outcome {
    let mut outcome = read(plan, prompt, history);
    if let Outcome::Refused(refusal) = &mut outcome
        && refusal.kind == RefusalKind::Beyond
    {
        refusal
            .alternatives
            .retain(|example| !matches!(understand(plan, example, None), Outcome::Refused(_)));
    }
    outcome
}

fn read(plan: &Plan, prompt: &str, history: &[Turn]) -> Outcome {
    let history = without_echo(history, prompt);
    let prompt = tidy(prompt);
    if prompt.is_empty() {
        return Outcome::Refused(beyond("Say what should change."));
    }
    // An answer to our question: the wish that raised it, with the answer as its target.
    if let Some((wish, None)) = pending(history)
        && (!is_wish(plan, &prompt) || is_target(plan, &prompt))
    {
        return understand(plan, &wish, Some(&prompt));
    }
    // The wish sent again, with the answer at the end of the history.
    let answer = match pending(history) {
        Some((wish, Some(answer))) if tidy(&wish).eq_ignore_ascii_case(&prompt) => Some(answer),
        _ => None,
    };
    understand(plan, &prompt, answer.as_deref())
}

/// Whether a text is a wish of its own and no mere answer.
fn is_wish(plan: &Plan, prompt: &str) -> bool {
    intent(prompt).is_some() || matches!(understand(plan, prompt, None), Outcome::Edited { .. })
}

/// Some hosts append the prompt to the history before they send it.
fn without_echo<'h>(history: &'h [Turn], prompt: &str) -> &'h [Turn] {
    match history {
        [before @ .., last]
            if last.role == "user"
                && last.content.trim() == prompt.trim()
                && before.last().is_none_or(|turn| turn.role != "user") =>
        {
            before
        }
        all => all,
    }
}

/// The wish before the last question, and the answer if it is there already.
fn pending(history: &[Turn]) -> Option<(String, Option<String>)> {
    let (history, answer) = match history {
        [before @ .., last] if last.role == "user" => (before, Some(last.content.clone())),
        all => (all, None),
    };
    let (question, before) = history.split_last()?;
    if question.role == "user" || !question.content.contains('?') {
        return None;
    }
    let wish = before.iter().rev().find(|turn| turn.role == "user")?;
    Some((wish.content.clone(), answer.map(|answer| tidy(&answer))))
}

/// Whether a text only names views: `Users table`, `both`, `the first one`.
fn is_target(plan: &Plan, text: &str) -> bool {
    let mut words = text.to_lowercase();
    for index in views::mentioned(plan, text, false).into_iter().chain(views::mentioned(plan, text, true)) {
        for name in [&plan.resources[index].title, &plan.resources[index].singular] {
            words = words.replace(&name.to_lowercase(), " ");
        }
    }
    let filler = [
        "the", "table", "tables", "view", "list", "page", "both", "all", "every", "of", "them", "one",
        "ones", "in", "for", "to", "on", "and", "column", "first", "second", "third", "last", "only", "s",
        "just",
    ];
    words
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .all(|word| filler.contains(&word) || word.parse::<usize>().is_ok())
}
