//! The title of a chat: made once, beside the first answer, by a cheap model where one is set, else by a rule.
//!
//! Invariant: never delays the answer, and never replaces a title.

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Completion, SessionSettings};
use domain::event::Fact;

use crate::completion;
use crate::own_text::own_text;
use crate::session::Session;
use crate::spending;

const MAX_LENGTH: usize = 60;
const MODEL_TIMEOUT: Duration = Duration::from_secs(20);

/// The request for a title, unless the settings have another.
pub const REQUEST: &str = "Answer with a title of at most six words for a chat that begins with this message. No quotes, no \
    full stop.";

pub(crate) fn start(session: &Arc<Session>, text: &str, model: &str) {
    if session.state().settings().title.is_some() {
        return;
    }
    // Something prevented the title of a recorded chat.
    if !session.decisions.makes_titles() {
        return;
    }
    let by_rule = shorten(text);
    let may_ask = session.workspace.settings.chat.title;
    let Some(small) = session.workspace.models.small_model(model).filter(|_| may_ask) else {
        set(session, by_rule);
        return;
    };
    let (session, text) = (session.clone(), text.to_owned());
    tokio::spawn(async move {
        let closed = session.closed.clone();
        tokio::select! {
            title = ask_model(&session, small, &text) => set(&session, title.unwrap_or(by_rule)),
            () = closed.cancelled() => {}
        }
    });
}

async fn ask_model(session: &Session, model: String, text: &str) -> Option<String> {
    let own = own_text(session.prompts().chat_title.as_ref());
    let completion = Completion {
        purpose: "title".into(),
        system: own.unwrap_or_else(|| REQUEST.to_owned()),
        messages: vec![text.chars().take(2000).collect()],
        output_schema: None,
        model: Some(model),
        no_local: true,
        deadline: MODEL_TIMEOUT,
        gate: spending::gate(session),
    };
    let mut used = completion::Used::default();
    let completed = completion::run(session.workspace.models.as_ref(), completion, None, &mut used).await;
    used.record(session, "title", completed.is_ok());
    Some(shorten(&completed.ok()?.text)).filter(|title| !title.is_empty())
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
