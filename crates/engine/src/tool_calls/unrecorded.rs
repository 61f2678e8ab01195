//! A call whose changes could not be undone, because their former state cannot be stored: a full disk, a locked store.
//!
//! Must not know how changes are recorded. Invariant: such a call runs only where a person says so, trusted chat or not.

use domain::ask::Choice;
use domain::item::{Item, ItemKind, Part};
use domain::tool::ToolContext;
use domain::tool_call::ToolInput;
use domain::{Answer, AskKind};

use super::ready_call::advance;
use crate::turn::Turn;

const RUN: &str = "Run it";
const LEAVE: &str = "Leave it";

/// Asks a person.
pub(super) async fn is_allowed(context: &dyn ToolContext, problem: &str) -> bool {
    let choice = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: Some(description.to_owned()),
    };
    let kind = AskKind::Question {
        text: format!("The changes of this call could not be undone. {problem} Run it all the same?"),
        options: vec![choice(RUN, "Its changes stay."), choice(LEAVE, "It does not run.")],
        freeform: false,
        url: None,
    };
    matches!(context.ask(kind).await, Answer::Text { text } if text == RUN)
}

/// The call ends without having run.
pub(super) fn refuse(turn: &Turn, mut item: Item, problem: &str) -> Item {
    if turn.cancel.is_cancelled() {
        return stop(item);
    }
    if let ItemKind::ToolCall(call) = &mut item.kind {
        let text = format!(
            "This call was not run, because its changes could not be undone. {problem} Tell the user; do not try another way."
        );
        call.result = vec![Part::text(text)];
        call.error = true;
    }
    advance(&mut item, ToolInput::Finished);
    item
}

/// The turn was stopped before the tool ran.
pub(super) fn stop(mut item: Item) -> Item {
    if let ItemKind::ToolCall(call) = &mut item.kind {
        call.error = true;
    }
    advance(&mut item, ToolInput::Stop);
    item
}
