//! The title of a chat: made once, by the configured model, a cheap one of the same vendor or the chat's own, else by a
//! rule.
//!
//! Invariants: never delays the answer, never replaces a title, never asks the embedded model. A server that has the chat's
//! prompt in its only slot is asked when the turn is over, and the request begins with that prompt.

use std::sync::Arc;
use std::time::Duration;

use domain::Failure;
use domain::command::{Completion, SessionSettings};
use domain::event::{Fact, Outcome};
use domain::item::{ItemKind, Part};
use domain::model::{Model, ModelInfo, Prompt, PromptEntry};

use crate::completion::{self, Used};
use crate::own_text::own_text;
use crate::paid_call;
use crate::session::Session;
use crate::spending;
use crate::turn::Turn;

/// Of a title that a rule makes.
const MAX_LENGTH: usize = 60;
/// Of a title that a model makes. ECA cuts there, and its clients have room for that.
const MAX_MODEL_LENGTH: usize = 40;
const MODEL_TIMEOUT: Duration = Duration::from_secs(20);

/// The request for a title, unless the settings have another.
pub const REQUEST: &str = "Answer with a title of at most six words for a chat that begins with this message. No quotes, no \
    full stop.";
/// The same at the end of the chat itself.
const REQUEST_IN_CHAT: &str =
    "Answer with a title of at most six words for this chat. No quotes, no full stop, no tool calls.";

/// Gives a chat that begins its title, or leaves that to the end of the turn.
pub(crate) fn start(session: &Arc<Session>, text: &str, model: &ModelInfo) {
    if session.state().settings().title.is_some() || is_made_after_turn(session, model) {
        return;
    }
    // Something prevented the title of a recorded chat.
    if !session.decisions.makes_titles() {
        return;
    }
    let by_rule = shorten(text);
    let Some(model) = title_model(session, model) else {
        set(session, by_rule);
        return;
    };
    let (session, text) = (session.clone(), text.to_owned());
    tokio::spawn(async move {
        let closed = session.closed.clone();
        tokio::select! {
            title = ask_model(&session, model, &text) => set(&session, title.unwrap_or(by_rule)),
            () = closed.cancelled() => {}
        }
    });
}

/// The end of a turn of a chat that has no title yet, because its server has one slot.
pub(crate) fn finish_turn(turn: &Turn, outcome: &Outcome) {
    let session = &turn.session;
    let is_due = !session.is_subagent() && is_made_after_turn(session, &turn.model.info());
    if !is_due || session.state().settings().title.is_some() {
        return;
    }
    let by_rule = first_words(session);
    if *outcome != Outcome::Done {
        set(session, by_rule);
        return;
    }
    let (session, model, prompt) = (session.clone(), turn.model.clone(), turn.prompt_now());
    tokio::spawn(async move {
        let closed = session.closed.clone();
        tokio::select! {
            title = extend_prompt(&session, model, prompt) => set(&session, title.unwrap_or(by_rule)),
            () = closed.cancelled() => set(&session, first_words(&session)),
        }
    });
}

/// A request with another beginning would take the chat's prompt out of the only slot of its server.
fn is_made_after_turn(session: &Session, model: &ModelInfo) -> bool {
    let workspace = &session.workspace;
    model.single_slot
        && !session.decisions.is_recorded()
        && workspace.settings.chat.title
        && workspace.models.small_model(&model.id).is_none()
}

/// `None`: a rule makes the title.
fn title_model(session: &Session, chat: &ModelInfo) -> Option<String> {
    let workspace = &session.workspace;
    if session.decisions.is_recorded() {
        return workspace.models.small_model(&chat.id);
    }
    let own = || Some(chat.id.clone()).filter(|id| !id.starts_with("local/"));
    workspace.models.small_model(&chat.id).or_else(own).filter(|_| workspace.settings.chat.title)
}

fn first_words(session: &Session) -> String {
    let state = session.state();
    let first = state.items().iter().find_map(|item| {
        let ItemKind::UserMessage { text, .. } = &item.kind else { return None };
        Some(shorten(text))
    });
    first.unwrap_or_default()
}

async fn ask_model(session: &Session, model: String, text: &str) -> Option<String> {
    let own = own_text(session.prompts().chat_title.as_ref());
    let completion = Completion {
        purpose: "title".into(),
        system: own.unwrap_or_else(|| REQUEST.to_owned()),
        messages: vec![text.chars().take(2000).collect()],
        output_schema: None,
        middle: None,
        model: Some(model),
        no_local: true,
        deadline: MODEL_TIMEOUT,
        gate: spending::gate(session),
    };
    let mut used = Used::default();
    let completed = completion::run(session.workspace.models.as_ref(), completion, None, &mut used).await;
    used.record(session, "title", completed.is_ok());
    Some(clean(&completed.ok()?.text)).filter(|title| !title.is_empty())
}

/// Asks with the chat's own prompt, so that the server computes the question alone.
async fn extend_prompt(session: &Session, model: Arc<dyn Model>, mut prompt: Prompt) -> Option<String> {
    let own = own_text(session.prompts().chat_title.as_ref());
    let text = own.unwrap_or_else(|| REQUEST_IN_CHAT.to_owned());
    prompt.entries.push(PromptEntry::User { parts: vec![Part::text(text)] });
    // What the chat keeps of its history must not have the question in it.
    (prompt.written, prompt.output_schema, prompt.has_alternative) = (None, None, false);
    let info = model.info();
    let mut used = Used::of(&info);
    let answer = async {
        let call = paid_call::reserve(&spending::gate(session), &info, &prompt).await?;
        let stream = call.stream(model.stream(prompt));
        Ok::<_, Failure>(completion::collect(stream, None, &mut used).await?.text)
    };
    let text = tokio::time::timeout(MODEL_TIMEOUT, answer).await.ok().and_then(Result::ok);
    used.record(session, "title", text.is_some());
    Some(clean(&text?)).filter(|title| !title.is_empty())
}

/// Gives a title to a chat that has none.
pub(crate) fn set(session: &Session, title: String) {
    if title.is_empty() {
        return;
    }
    session.commit_with(|state| {
        if state.settings().title.is_some() {
            return Vec::new();
        }
        let change = SessionSettings { title: Some(title), ..SessionSettings::default() };
        vec![Fact::SessionChanged { change }]
    });
}

/// The first words of the first line that has any.
pub fn shorten(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.trim_matches(['"', '#', '*', '`', ' ']);
    if line.chars().count() <= MAX_LENGTH {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MAX_LENGTH).collect();
    let words = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{words}…")
}

/// A model's title as ECA cleans it: the first line with text, but the second where the first is a heading; no control
/// characters; single spaces; 40 characters. Quotes around it are taken away too.
fn clean(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_heading = first.trim_start_matches('#').starts_with(char::is_whitespace) && first.starts_with('#');
    let line = if is_heading { lines.next().unwrap_or(first) } else { first };
    let plain: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let plain = plain.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = plain.trim_matches(['"', '*', '`', ' ']).chars().take(MAX_MODEL_LENGTH).collect();
    cut.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_cleaned_as_eca_does() {
        for (text, title) in [
            ("Some Cool Title", "Some Cool Title"),
            ("\n\n  \"Fix the parser\"  \n", "Fix the parser"),
            ("## Understand\nRename a module", "Rename a module"),
            ("# Only a heading", "Only a heading"),
            ("#hashtag first\nsecond", "hashtag first"),
            ("A\tb\u{7f}c   d", "A b c d"),
            (" \n", ""),
            (
                "A title that is very much longer than forty characters",
                "A title that is very much longer than fo",
            ),
        ] {
            assert_eq!(clean(text), title, "{text:?}");
        }
    }
}
