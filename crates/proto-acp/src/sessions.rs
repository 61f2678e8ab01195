//! The open sessions of one connection: their pending prompts and asks, their replay, their commands.
//!
//! Invariant: a prompt under way is answered exactly once, by the end of its turn or when the session leaves the connection.

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Catalog, SessionInfo, SlashCommand};
use domain::{Answer, AskId, Command, Event, Fact, Level, Recorded, SessionId, TurnId};
use rpc::Responder;

use crate::asks;
use crate::open_session::{OpenSession, PendingPrompt};
use crate::server::Server;
use crate::to_wire::{self, Projection};
use crate::v2;
use crate::wire::{Effect, Question, acp, method};

/// A person may take this long to answer.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A prompt was accepted: it is answered when its turn ends.
pub(crate) fn accepted(server: &mut Server, session: &SessionId, turn: TurnId, responder: Responder) {
    let (Some(commands), Some(chat)) = (server.engine.commands(), server.sessions.get_mut(session)) else {
        return;
    };
    if server.features.version_two {
        chat.unnamed.push_back(responder);
        return;
    }
    let cancellation = responder.cancellation();
    let stopped = session.clone();
    let watch = tokio::spawn(async move {
        cancellation.cancelled().await;
        let _ = commands.send(Command::Cancel { session: stopped }).await;
    });
    chat.projection.mark_own_turn(turn);
    chat.prompts.insert(turn, PendingPrompt { responder, watch: watch.abort_handle(), cancelled: false });
}

/// Adds a session to this connection.
pub(crate) fn add_session(server: &mut Server, info: &SessionInfo, catalog: Arc<Catalog>) {
    let projection = Projection::new(info.id.clone(), server.features, catalog, info.settings.clone());
    server.sessions.insert(info.id.clone(), OpenSession::new(projection));
}

/// Sends the slash commands and the notices of a session that was opened.
pub(crate) fn send_commands_and_notices(server: &mut Server, session: &SessionId, catalog: &Catalog) {
    send_commands(server, session.clone());
    for notice in &catalog.notices {
        server.show_notice_in(session, notice);
    }
    server.report_servers(session.clone());
}

/// Sends stored facts through the projection, then the current state; repeats asks that are still open.
pub(crate) fn replay(server: &mut Server, info: &SessionInfo, facts: Vec<Arc<Recorded>>) {
    let session = &info.id;
    let newest = facts.last().map_or(info.newest, |last| last.number);
    let mut open: Vec<(AskId, Question)> = Vec::new();
    for recorded in domain::replay::visible_facts(facts) {
        // It spoke of a moment that is over.
        if matches!(&recorded.fact, Fact::Notice { notice } if notice.level == Level::Info) {
            continue;
        }
        let event = Event::fact(session.clone(), recorded);
        let outs = server.sessions.get_mut(session).map(|chat| chat.projection.project(&event));
        for out in outs.unwrap_or_default().into_iter().filter(|out| !to_wire::is_state(out)) {
            match out {
                Effect::Ask(id, question) => open.push((id, question)),
                Effect::Settled(id) => open.retain(|(asked, _)| *asked != id),
                Effect::Ended(..) => open.clear(),
                Effect::Started => {}
                out @ (Effect::Update(_) | Effect::VersionTwo(_) | Effect::Decline(_) | Effect::Lost(_)) => {
                    server.apply_effect(session, out);
                }
            }
        }
    }
    if let Some(chat) = server.sessions.get_mut(session) {
        chat.projection.settings = info.settings.clone();
    }
    server.apply_effect(session, to_wire::info(info.settings.title.clone(), info.updated_at));
    if let Some(out) = to_wire::usage_update(&info.usage) {
        server.apply_effect(session, out);
    }
    if info.busy {
        for (id, question) in open {
            server.apply_effect(session, Effect::Ask(id, question));
        }
    }
    server.engine.follow(session.clone(), newest);
}

/// Repeats the asks that are still open, for a client that has the contents already.
pub(crate) fn ask_again(server: &mut Server, info: &SessionInfo, facts: Vec<Arc<Recorded>>) {
    let session = &info.id;
    for recorded in domain::replay::visible_facts(facts) {
        if info.busy && recorded.number <= info.newest {
            let event = Event::fact(session.clone(), recorded);
            let outs = server.sessions.get_mut(session).map(|chat| chat.projection.project(&event));
            for out in outs.unwrap_or_default() {
                if let Effect::Ask(..) = &out {
                    server.apply_effect(session, out);
                }
            }
        }
    }
}

/// Sends an ask to the client after every earlier message; its answer goes to the engine.
pub(crate) fn ask(server: &mut Server, session: &SessionId, id: AskId, question: Question) {
    let (Some(commands), Some(chat)) = (server.engine.commands(), server.sessions.get_mut(session)) else {
        return;
    };
    let is_version_two = server.features.version_two;
    let (turn, outgoing) = (server.client.flushed(), server.client.outgoing().clone());
    let session = session.clone();
    let asked = tokio::spawn(async move {
        if turn.await.is_err() {
            return;
        }
        let answer = match question {
            Question::Permission(request) => {
                let request = if is_version_two {
                    let request = v2::permission(&serde_json::to_value(&request).unwrap_or_default());
                    outgoing.request(method::REQUEST_PERMISSION, &request, QUESTION_TIMEOUT)
                } else {
                    outgoing.request(method::REQUEST_PERMISSION, &request, QUESTION_TIMEOUT)
                };
                asks::permission(request.decode().await.ok())
            }
            Question::Elicitation { request, answer } => {
                let request = outgoing.request(method::ELICITATION, &request, QUESTION_TIMEOUT);
                asks::elicitation(request.decode().await.ok(), answer)
            }
        };
        let _ = commands.send(Command::answer(session, id, answer)).await;
    });
    chat.asked.insert(id, asked.abort_handle());
}

pub(crate) fn decline(server: &mut Server, session: &SessionId, ask: AskId) {
    let Some(commands) = server.engine.commands() else { return };
    let command = Command::answer(session.clone(), ask, Answer::Cancelled);
    server.engine.later(async move { drop(commands.send(command).await) }, |_, ()| {});
}

/// Sends the current slash commands of a session.
pub(crate) fn send_commands(server: &mut Server, session: SessionId) {
    let Some(commands) = server.engine.commands() else { return };
    let asked = session.clone();
    let listed = async move {
        let (session, query) = (Some(asked), String::new());
        commands.call(|reply| Command::SlashCommands { session, query, reply }).await
    };
    server.engine.later(listed, move |server, listed| {
        if let Ok(listed) = listed {
            let available = acp::AvailableCommandsUpdate::new(listed.iter().map(available).collect());
            server.apply_effect(
                &session,
                Effect::Update(acp::SessionUpdate::AvailableCommandsUpdate(available)),
            );
        }
    });
}

fn available(command: &SlashCommand) -> acp::AvailableCommand {
    let hint: Vec<String> = command
        .arguments
        .iter()
        .map(
            |argument| if argument.required { argument.name.clone() } else { format!("[{}]", argument.name) },
        )
        .collect();
    let input = (!hint.is_empty()).then(|| {
        acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint.join(" ")))
    });
    acp::AvailableCommand::new(command.name.clone(), command.description.clone()).input(input)
}
