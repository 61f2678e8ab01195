//! The title of a chat: made once, beside the first answer, by a cheap model where one is set, else by a rule.

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Completed, Completion, SessionSettings};
use domain::event::Fact;

use crate::completion;
use crate::session::SessionContext;
use crate::spending;

const LONGEST: usize = 60;
const PATIENCE: Duration = Duration::from_secs(20);

/// Never delays the answer.
pub fn start(shared: &Arc<SessionContext>, text: &str, model: &str) {
    if shared.state().settings.title.is_some() {
        return;
    }
    let rule = by_rule(text);
    let may_ask = shared.surroundings.settings.chat.title;
    let Some(small) = shared.surroundings.models.small_model(model).filter(|_| may_ask) else {
        name(shared, rule);
        return;
    };
    let (shared, text) = (shared.clone(), text.to_owned());
    tokio::spawn(async move {
        let completion = Completion {
            purpose: "title".into(),
            system: "Answer with a title of at most six words for a chat that begins with this message. \
                     No quotes, no full stop."
                .into(),
            messages: vec![text.chars().take(2000).collect()],
            output_schema: None,
            model: Some(small),
            no_local: true,
            deadline: PATIENCE,
        };
        let made = completion::run(shared.surroundings.models.as_ref(), completion, None).await;
        if let Ok(Completed { model, tokens, cost, .. }) = &made {
            spending::beside(&shared, "title", model, *tokens, *cost);
        }
        let title = made.map(|completed| by_rule(&completed.text)).ok().filter(|title| !title.is_empty());
        name(&shared, title.unwrap_or(rule));
    });
}

/// A title for a chat that has none.
pub fn name(shared: &SessionContext, title: String) {
    if title.is_empty() || shared.state().settings.title.is_some() {
        return;
    }
    let change = SessionSettings { title: Some(title), ..SessionSettings::default() };
    shared.state().settings.apply(&change);
    shared.journal.note(Fact::SessionChanged { change });
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
