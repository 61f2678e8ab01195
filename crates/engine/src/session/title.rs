//! The title of a chat: made once, beside the first answer, by a cheap model where one is set, else by a rule.

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Completed, Completion, SessionSettings};
use domain::event::Fact;

use crate::completion;
use crate::session::Session;
use crate::spending;
use crate::turn::instructions;

const LONGEST: usize = 60;
const PATIENCE: Duration = Duration::from_secs(20);

/// How a title is asked for, unless the settings say it otherwise.
const REQUEST: &str = "Answer with a title of at most six words for a chat that begins with this message. No quotes, no \
    full stop.";

/// Never delays the answer.
pub fn start(session: &Arc<Session>, text: &str, model: &str) {
    if session.state().settings.title.is_some() {
        return;
    }
    let rule = by_rule(text);
    let may_ask = session.workspace.settings.chat.title;
    let Some(small) = session.workspace.models.small_model(model).filter(|_| may_ask) else {
        name(session, rule);
        return;
    };
    let behavior = session.state().settings.behavior.clone().unwrap_or_default();
    let own = instructions::own_text(session.workspace.settings.prompts(&behavior).chat_title.as_ref());
    let (session, text) = (session.clone(), text.to_owned());
    tokio::spawn(async move {
        let completion = Completion {
            purpose: "title".into(),
            system: own.unwrap_or_else(|| REQUEST.to_owned()),
            messages: vec![text.chars().take(2000).collect()],
            output_schema: None,
            model: Some(small),
            no_local: true,
            deadline: PATIENCE,
        };
        let made = completion::run(session.workspace.models.as_ref(), completion, None).await;
        if let Ok(Completed { model, tokens, cost, .. }) = &made {
            spending::beside(&session, "title", model, *tokens, *cost);
        }
        let title = made.map(|completed| by_rule(&completed.text)).ok().filter(|title| !title.is_empty());
        name(&session, title.unwrap_or(rule));
    });
}

/// A title for a chat that has none.
pub fn name(session: &Session, title: String) {
    if title.is_empty() || session.state().settings.title.is_some() {
        return;
    }
    let change = SessionSettings { title: Some(title), ..SessionSettings::default() };
    session.state().settings.apply(&change);
    session.journal.note(Fact::SessionChanged { change });
}

/// The first words of the first line that has any.
pub fn by_rule(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line = line.trim_matches(['"', '#', '*', '`', ' ']);
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{whole}…")
}
