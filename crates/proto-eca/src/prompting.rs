//! `chat/prompt`: opens the chat where that is needed, sends the prompt, and reports failures as contents.

use domain::command::{SessionSettings, TurnLimits, UserPrompt, known_behavior};
use domain::{Command, Failure, SessionId};

use crate::dialect::DRAFT;
use crate::dialect_interface::Prompted;
use crate::from_wire;
use crate::lifecycle;
use crate::queries;
use crate::reply::Reply;
use crate::server::Server;
use crate::session_facts;
use crate::sessions;
use crate::wire::ChatKey;
use crate::wire::requests::{Prompt, PromptParams};

pub(crate) async fn prompt(server: &mut Server, params: PromptParams, reply: Reply<Prompt>) {
    if params.context.is_some() && params.contexts.is_none() {
        lifecycle::switch_dialect(server, &DRAFT).await;
    }
    let is_new = !matches!(&params.chat_id, Some(key) if *key != ChatKey::Text(String::new()));
    let session = server.session_for_prompt(params.chat_id.as_ref());
    let mut change = change(server, &params);
    if let Some(mut kept) = server.unopened.remove(&session) {
        kept.apply(&change);
        change = kept;
    }
    // Checked before a chat is opened for the prompt, which would be left behind.
    if let Err(failure) = check(server, &params, &change) {
        let prompted = Prompted { session, is_new, outcome: Err(failure) };
        return server.dialect.answer_prompt(server, prompted, reply);
    }
    if params.message.trim() == "/fork" && server.has_session(&session) {
        return sessions::fork_by_command(server, session, reply).await;
    }
    let contexts = params.contexts.or(params.context).unwrap_or_default();
    let prompt = UserPrompt {
        text: params.message,
        parts: Vec::new(),
        contexts: from_wire::contexts(contexts),
        change: change.clone(),
        limits: TurnLimits::default(),
    };
    if !server.has_session(&session) {
        open(server, session.clone(), change.clone()).await;
    }
    server.set_model(&session, change.model.as_deref());
    let chat = session.clone();
    server
        .engine
        .call(
            |reply| Command::Prompt { session, prompt, reply },
            move |server, outcome| {
                let is_accepted = outcome.is_ok();
                server.dialect.answer_prompt(
                    server,
                    Prompted { session: chat.clone(), is_new, outcome },
                    reply,
                );
                if is_accepted {
                    queries::announce_memory(server, &chat);
                }
            },
        )
        .await;
}

/// The settings of the chat that the prompt changes.
pub(crate) fn change(server: &Server, params: &PromptParams) -> SessionSettings {
    let model = params.model.clone();
    SessionSettings {
        model: model.and_then(|name| server.dialect.model(&server.catalog, name)),
        behavior: from_wire::behavior(params.behavior.clone(), params.agent.clone()),
        variant: params.variant.clone(),
        trust: params.trust,
        title: None,
    }
}

fn check(server: &Server, params: &PromptParams, change: &SessionSettings) -> Result<(), Failure> {
    let has_contexts = params.contexts.iter().chain(&params.context).any(|contexts| !contexts.is_empty());
    if params.message.trim().is_empty() && !has_contexts {
        return Err(Failure::user("The prompt is empty.").hint("Send a message, or contexts to look at."));
    }
    let known = &server.catalog.behaviors;
    match change.behavior.as_deref().filter(|_| !known.is_empty()) {
        Some(name) => known_behavior(name, known),
        None => Ok(()),
    }
}

/// Not awaited: the prompt follows at once, and the engine takes both in order.
async fn open(server: &mut Server, session: SessionId, settings: SessionSettings) {
    let (id, opened) = (Some(session.clone()), session.clone());
    server
        .engine
        .call(
            |reply| Command::Open { id, workspace: None, settings, servers: Vec::new(), reply },
            move |server, info| match info {
                Ok(info) => {
                    server.set_model(&opened, info.settings.model.as_deref());
                    server.follow(opened, info.newest);
                    session_facts::tell_of_holder(server, &info);
                }
                // The next prompt opens it again.
                Err(_) => server.remove_session(&opened),
            },
        )
        .await;
    server.add_session(&session);
}
