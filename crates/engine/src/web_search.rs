//! A web search with the search tool of a model's provider: one call of the model, without our tools and without history.
//!
//! Must not know providers. Invariants: it ends by its deadline; the words alone leave the chat; what it costs is recorded
//! as the chat's.

use std::time::Duration;

use domain::command::TurnLimits;
use domain::item::Part;
use domain::model::{Prompt, PromptEntry};
use domain::tool::WebAnswer;
use domain::{Failure, FailureKind};

use crate::completion::{Used, collect};
use crate::paid_call;
use crate::session::Session;
use crate::spending;

/// The purpose of these calls in the usage of a chat.
pub const PURPOSE: &str = "search";

const TIMEOUT: Duration = Duration::from_secs(120);
const SYSTEM: &str = "Search the web for the words of the user and report what you found: the facts, each with the page it comes \
    from. Do not answer from memory. Be brief.";

pub(crate) async fn run(session: &Session, model: &str, words: &str) -> Result<WebAnswer, Failure> {
    let spent = session.state().usage().session_cost.unwrap_or(0.0);
    spending::check_caps(session, &TurnLimits::default(), spent).await?;
    let mut used = Used::default();
    let searched = tokio::time::timeout(TIMEOUT, ask(session, model, words, &mut used)).await;
    used.record(session, PURPOSE, matches!(searched, Ok(Ok(_))));
    searched.unwrap_or_else(|_| {
        let message = format!("The search took longer than {} seconds.", TIMEOUT.as_secs());
        Err(Failure::new(FailureKind::Provider, message))
    })
}

async fn ask(session: &Session, model: &str, words: &str, used: &mut Used) -> Result<WebAnswer, Failure> {
    let model = session.workspace.models.find(model)?;
    let prompt = Prompt {
        session: Some(session.id.clone()),
        system: vec![SYSTEM.into()],
        entries: vec![PromptEntry::User { parts: vec![Part::text(words)] }],
        web_search: true,
        ..Prompt::default()
    };
    let info = model.info();
    let call = paid_call::reserve(&spending::gate(session), &info, &prompt).await?;
    *used = Used::of(&info);
    collect(call.stream(model.stream(prompt)), None, used).await
}
