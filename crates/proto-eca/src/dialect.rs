//! The differences between the published protocol and the draft protocol (2025), behind one trait.
//!
//! Owns nothing of a connection. Invariant: no other file asks which dialect a client speaks.

use domain::command::{AcceptedStatus, Catalog};
use domain::{Abilities, FailureKind};

use crate::dialect_interface::{Dialect, Projection, Prompted};
use crate::draft::Draft;
use crate::from_wire;
use crate::pending_logins;
use crate::reply::Reply;
use crate::server::Server;
use crate::to_wire::{self, PublishedProjection};
use crate::wire::requests::{InitializeParams, Prompt, PromptResult};

pub(crate) static PUBLISHED: Published = Published;
pub(crate) static DRAFT: Draft = Draft;

/// The draft's capabilities have members that no later client sends.
pub(crate) fn of_client(params: &InitializeParams) -> &'static dyn Dialect<Server> {
    let assistant = params.capabilities.as_ref().and_then(|all| all.code_assistant.as_ref());
    let is_draft = assistant.is_some_and(|it| it.doc.is_some() || it.edit.is_some() || it.fix.is_some());
    if is_draft { &DRAFT } else { &PUBLISHED }
}

/// The published protocol with the additions of today's clients.
pub(crate) struct Published;

impl Dialect<Server> for Published {
    fn name(&self) -> &'static str {
        "published"
    }

    fn new_projection(&self) -> Box<dyn Projection> {
        Box::new(PublishedProjection::default())
    }

    fn adapt(&self, abilities: &mut Abilities) {
        abilities.approvals = true;
        abilities.subagents = true;
    }

    fn knows(&self, _notification: &str) -> bool {
        true
    }

    fn model(&self, catalog: &Catalog, name: String) -> Option<String> {
        Some(from_wire::model(catalog, name)).filter(|name| !name.is_empty())
    }

    fn answer_prompt(&self, server: &mut Server, prompted: Prompted, reply: Reply<Prompt>) {
        let Prompted { session, is_new, outcome } = prompted;
        let (status, failure) = match outcome {
            Ok(accepted) if accepted.status == AcceptedStatus::Prompting => {
                return pending_logins::respond(server, session, accepted, reply, is_new);
            }
            Ok(accepted) => (accepted.status, None),
            Err(failure) if failure.kind == FailureKind::Auth => (AcceptedStatus::Login, Some(failure)),
            Err(failure) => (AcceptedStatus::Error, Some(failure)),
        };
        let status = match status {
            AcceptedStatus::Prompting => "prompting",
            AcceptedStatus::Login => "login",
            AcceptedStatus::Error => "error",
        };
        let (chat_id, model) = (server.chat_key(&session), server.model_of(&session));
        server.respond(reply, Ok(PromptResult::Published { chat_id: chat_id.clone(), model, status }));
        // An error response leaves a client spinning: failures are contents. The refused prompt has no turn of its own.
        if let Some(failure) = failure {
            let chat = chat_id.as_id();
            server.send(to_wire::failed(chat, &failure));
        }
    }
}
