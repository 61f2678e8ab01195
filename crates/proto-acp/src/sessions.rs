//! The chats of one connection: what waits in each, and how they are opened, shown and asked about.
//!
//! Invariant: a prompt under way is answered exactly once, by the end of its turn or of the chat on this connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{Catalog, SessionInfo, SlashCommand};
use domain::{Answer, AskId, Command, Event, Failure, Recorded, SessionId, TurnId};
use rpc::Responder;
use tokio::task::AbortHandle;

use crate::asks;
use crate::serve::Server;
use crate::to_wire::{self, Projection};
use crate::wire::{Out, Question, acp, method};

/// A person may take this long to answer.
const QUESTION: Duration = Duration::from_secs(24 * 3600);

/// One chat of this connection.
pub struct Chat {
    pub projection: Projection,
    prompts: HashMap<TurnId, Prompt>,
    /// Requests to the client that a person is to answer.
    asked: HashMap<AskId, AbortHandle>,
}

/// A `session/prompt` that is not answered yet.
struct Prompt {
    responder: Responder,
    /// Looks out for `$/cancel_request`.
    watch: AbortHandle,
    cancelled: bool,
}

type Ended = (Responder, Result<acp::StopReason, Failure>);

impl Chat {
    pub fn new(projection: Projection) -> Self {
        Self { projection, prompts: HashMap::new(), asked: HashMap::new() }
    }

    /// The client asked to stop: whatever comes of it, the turn was cancelled.
    pub fn cancel(&mut self) {
        self.prompts.values_mut().for_each(|prompt| prompt.cancelled = true);
    }

    pub fn ended(&mut self, turn: TurnId, outcome: Result<acp::StopReason, Failure>) -> Option<Ended> {
        let prompt = self.prompts.remove(&turn)?;
        prompt.watch.abort();
        let stopped = prompt.cancelled || prompt.responder.cancellation().is_cancelled();
        let outcome = match outcome {
            Err(_) if stopped => Ok(acp::StopReason::Cancelled),
            outcome => outcome,
        };
        Some((prompt.responder, outcome))
    }

    /// Dropping the request tells the client that nobody waits for it any more.
    pub fn settled(&mut self, ask: AskId) {
        if let Some(asked) = self.asked.remove(&ask) {
            asked.abort();
        }
    }

    /// Everything under way is over; the responders of what was.
    pub fn cancel_all(&mut self) -> Vec<Responder> {
        self.asked.drain().for_each(|(_, asked)| asked.abort());
        self.prompts
            .drain()
            .map(|(_, prompt)| {
                prompt.watch.abort();
                prompt.responder
            })
            .collect()
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

/// A prompt was accepted: its turn's end is its answer.
pub fn accepted(server: &mut Server, session: &SessionId, turn: TurnId, responder: Responder) {
    let (Some(commands), Some(chat)) = (server.engine.commands(), server.chats.get_mut(session)) else {
        return;
    };
    let cancellation = responder.cancellation();
    let stopped = session.clone();
    let watch = tokio::spawn(async move {
        cancellation.cancelled().await;
        let _ = commands.send(Command::Cancel { session: stopped }).await;
    });
    chat.projection.typed(turn);
    chat.prompts.insert(turn, Prompt { responder, watch: watch.abort_handle(), cancelled: false });
}

/// A chat as it begins on this connection.
pub fn begin(server: &mut Server, info: &SessionInfo, catalog: Arc<Catalog>) {
    let projection = Projection::new(info.id.clone(), server.extras, catalog, info.settings.clone());
    server.chats.insert(info.id.clone(), Chat::new(projection));
}

/// What a chat's client is told after it was opened: the commands and what a person should know.
pub fn tell_beginning(server: &mut Server, session: &SessionId, catalog: &Catalog) {
    tell_commands(server, session.clone());
    for notice in &catalog.notices {
        server.tell_notice(notice);
    }
}

/// Shows stored facts as if they happened now, then how things stand; asks what is still open.
pub fn replay(server: &mut Server, info: &SessionInfo, facts: Vec<Arc<Recorded>>) {
    let session = &info.id;
    let newest = facts.last().map_or(info.newest, |last| last.number);
    let mut open: Vec<(AskId, Question)> = Vec::new();
    for recorded in domain::replay::visible_facts(facts) {
        let event = Event::fact(session.clone(), recorded);
        let outs = server.chats.get_mut(session).map(|chat| chat.projection.project(&event));
        for out in outs.unwrap_or_default().into_iter().filter(|out| !to_wire::is_state(out)) {
            match out {
                Out::Ask(id, question) => open.push((id, question)),
                Out::Settled(id) => open.retain(|(asked, _)| *asked != id),
                Out::Ended(..) => open.clear(),
                out => server.say(session, out),
            }
        }
    }
    if let Some(chat) = server.chats.get_mut(session) {
        chat.projection.settings = info.settings.clone();
    }
    server.say(session, to_wire::info(info.settings.title.clone(), info.updated_at));
    if let Some(out) = to_wire::used(&info.usage) {
        server.say(session, out);
    }
    if info.busy {
        for (id, question) in open {
            server.say(session, Out::Ask(id, question));
        }
    }
    server.engine.follow(session.clone(), newest);
}

/// Puts an ask to the client, after everything before it; its answer goes to the engine.
pub fn ask(server: &mut Server, session: &SessionId, id: AskId, question: Question) {
    let (Some(commands), Some(chat)) = (server.engine.commands(), server.chats.get_mut(session)) else {
        return;
    };
    let (turn, outgoing) = (server.client.turn(), server.client.outgoing().clone());
    let session = session.clone();
    let asked = tokio::spawn(async move {
        if turn.await.is_err() {
            return;
        }
        let answer = match question {
            Question::Permission(request) => {
                let request = outgoing.request(method::REQUEST_PERMISSION, &request, QUESTION);
                asks::permission(request.decode().await.ok())
            }
            Question::Elicitation { request, form } => {
                let request = outgoing.request(method::ELICITATION, &request, QUESTION);
                asks::elicitation(request.decode().await.ok(), form)
            }
        };
        let _ = commands.send(Command::Answer { session, ask: id, answer }).await;
    });
    chat.asked.insert(id, asked.abort_handle());
}

pub fn decline(server: &mut Server, session: &SessionId, ask: AskId) {
    let Some(commands) = server.engine.commands() else { return };
    let command = Command::Answer { session: session.clone(), ask, answer: Answer::Cancelled };
    server.engine.later(async move { drop(commands.send(command).await) }, |_, ()| {});
}

/// The slash commands of a chat, as they are now.
pub fn tell_commands(server: &mut Server, session: SessionId) {
    let Some(commands) = server.engine.commands() else { return };
    let asked = session.clone();
    let listed = async move {
        let (session, query) = (Some(asked), String::new());
        commands.call(|reply| Command::SlashCommands { session, query, reply }).await
    };
    server.engine.later(listed, move |server, listed| {
        if let Ok(listed) = listed {
            let available = acp::AvailableCommandsUpdate::new(listed.iter().map(available).collect());
            server.say(&session, Out::Update(acp::SessionUpdate::AvailableCommandsUpdate(available)));
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
