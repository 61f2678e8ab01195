//! `/btw`: a question beside the chat. The model is sent the history with it; the chat shows both and never sends them again.

use std::sync::Arc;
use std::time::Duration;

use domain::Failure;
use domain::command::TurnLimits;
use domain::item::Part;
use domain::model::{Prompt, PromptEntry};

use crate::completion::{Used, collect};
use crate::paid_call;
use crate::session::Session;
use crate::spending;
use crate::turn::{prompt, start};

/// The purpose of these calls in the usage of a chat.
pub const PURPOSE: &str = "btw";

const TIMEOUT: Duration = Duration::from_secs(120);
const REQUEST: &str = "A question beside this conversation. Answer it briefly from what you know and from the conversation, and call \
    no tools:";

pub(super) async fn answer(
    session: &Session,
    system_prompt: &[Arc<str>],
    question: &str,
) -> Result<String, Failure> {
    if question.trim().is_empty() {
        return Err(
            Failure::user("There is no question.").hint("Type it behind the command: `/btw what is …`.")
        );
    }
    let spent = session.state().usage().session_cost.unwrap_or(0.0);
    spending::check_caps(session, &TurnLimits::default(), spent).await?;
    let model = start::choose_model(session)?;
    let mut entries = prompt::entries(&session.state(), false);
    entries.push(PromptEntry::User { parts: vec![Part::text(format!("{REQUEST}\n\n{question}"))] });
    let prompt = Prompt {
        session: Some(session.id.clone()),
        system: system_prompt.to_vec(),
        entries,
        ..Prompt::default()
    };
    let info = model.info();
    let call = paid_call::reserve(&spending::gate(session), &info, &prompt).await?;
    let mut used = Used::of(&info);
    let answer = collect(call.stream(model.stream(prompt)), None, &mut used);
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    used.record(session, PURPOSE, matches!(answer, Ok(Ok(_))));
    let late =
        |_| Failure::provider(format!("The model gave no whole answer within {} s.", TIMEOUT.as_secs()));
    Ok(answer.map_err(late)??.text)
}
