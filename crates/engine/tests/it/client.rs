//! A front-end that a test drives: it sends commands and collects the facts of its chat.

use std::time::Duration;

use domain::command::{Accepted, RollbackScope, SessionInfo, SessionSettings, UserPrompt};
use domain::event::EventBody;
use domain::item::{Item, ItemKind, Part};
use domain::link::Commands;
use domain::model::PromptEntry;
use domain::tool_call::ToolCall;
use domain::{
    Abilities, Answer, Ask, AskId, Command, Event, Fact, Failure, Follower, ItemId, Outcome, Reply, SessionId,
};
use engine::State;

use crate::bench::Bench;

/// On the paused clock this passes at once where nothing is left to happen.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) struct Client {
    pub commands: Commands,
    pub session: SessionId,
    follower: Follower,
    /// Every event of the chat so far.
    pub events: Vec<Event>,
}

/// Someone who can answer everything.
pub(crate) fn person() -> Abilities {
    Abilities { approvals: true, questions: true, client: "test".into(), ..Abilities::default() }
}

impl Bench {
    /// A front-end with a new chat.
    pub(crate) async fn client(&self) -> Client {
        self.client_with(person()).await
    }

    pub(crate) async fn client_with(&self, abilities: Abilities) -> Client {
        let mut client = self.attach(abilities).await;
        client.open().await.unwrap();
        client
    }

    /// A front-end on a chat that exists.
    pub(crate) async fn join(&self, session: &SessionId) -> Client {
        let mut client = self.attach(person()).await;
        client.session = session.clone();
        let info = client.load().await.unwrap();
        client.follower.follow(session.clone(), info.newest);
        client
    }

    pub(crate) async fn attach(&self, abilities: Abilities) -> Client {
        let link = self.engine.attach(abilities).await.unwrap();
        let follower = Follower::new(link.commands.clone(), link.events);
        // Host calls of a turn fail at once: nobody receives them.
        drop(link.host);
        Client { commands: link.commands, session: SessionId::new("none"), follower, events: Vec::new() }
    }
}

impl Client {
    pub(crate) async fn open(&mut self) -> Result<SessionInfo, Failure> {
        let info = self
            .call(|_, reply| Command::Open {
                id: None,
                workspace: None,
                settings: SessionSettings::default(),
                servers: Vec::new(),
                reply,
            })
            .await?;
        self.session = info.id.clone();
        self.follower.follow(info.id.clone(), 0);
        Ok(info)
    }

    /// Follows a chat that was opened.
    pub(crate) fn follow(&mut self, info: &SessionInfo) {
        self.session = info.id.clone();
        self.follower.follow(info.id.clone(), 0);
    }

    pub(crate) async fn load(&self) -> Result<SessionInfo, Failure> {
        self.call(|session, reply| Command::Load { session, servers: Vec::new(), reply }).await
    }

    /// Sends the command that `make` builds for this chat and waits for its reply.
    pub(crate) async fn call<T>(
        &self,
        make: impl FnOnce(SessionId, Reply<T>) -> Command,
    ) -> Result<T, Failure> {
        let session = self.session.clone();
        let call = self.commands.call(move |reply| make(session, reply));
        tokio::time::timeout(LIMIT, call).await.expect("a reply in time")
    }

    pub(crate) async fn send(&self, command: Command) {
        self.commands.send(command).await.unwrap();
    }

    pub(crate) async fn prompt(&self, text: &str) -> Result<Accepted, Failure> {
        self.prompt_with(UserPrompt { text: text.to_owned(), ..UserPrompt::default() }).await
    }

    pub(crate) async fn prompt_with(&self, prompt: UserPrompt) -> Result<Accepted, Failure> {
        self.call(|session, reply| Command::Prompt { session, prompt, reply }).await
    }

    /// A prompt and the turn it causes, to its end.
    pub(crate) async fn run(&mut self, text: &str) -> Outcome {
        self.run_with(UserPrompt { text: text.to_owned(), ..UserPrompt::default() }).await
    }

    pub(crate) async fn run_with(&mut self, prompt: UserPrompt) -> Outcome {
        self.prompt_with(prompt).await.unwrap();
        self.turn_end().await
    }

    pub(crate) async fn configure(&self, change: SessionSettings) -> Result<SessionSettings, Failure> {
        self.call(|session, reply| Command::Configure { session: Some(session), change, reply }).await
    }

    pub(crate) async fn steer(&self, text: Option<&str>) -> Result<(), Failure> {
        let text = text.map(str::to_owned);
        self.call(|session, reply| Command::Steer { session, text, reply }).await
    }

    pub(crate) async fn rollback(&self, from: Option<ItemId>) -> Result<(), Failure> {
        let scope = RollbackScope::Messages;
        self.call(|session, reply| Command::Rollback { session, from, scope, reply }).await
    }

    pub(crate) async fn close(&self) -> Result<(), Failure> {
        self.call(|session, reply| Command::Close { session, reply }).await
    }

    pub(crate) async fn cancel(&self) {
        self.send(Command::Cancel { session: self.session.clone() }).await;
    }

    pub(crate) async fn cancel_call(&self, call: ItemId) -> Result<(), Failure> {
        self.call(|session, reply| Command::CancelCall { session, call, reply }).await
    }

    pub(crate) async fn answer(&self, ask: AskId, answer: Answer) {
        self.send(Command::answer(self.session.clone(), ask, answer)).await;
    }

    /// The next event; fails where nothing is left to happen.
    pub(crate) async fn next(&mut self) -> EventBody {
        let event = tokio::time::timeout(LIMIT, self.follower.next()).await;
        let event = event.expect("an event in time").expect("the engine is there");
        self.events.push(event.clone());
        event.body
    }

    /// True where no event comes in a long time.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(LIMIT, self.follower.next()).await.is_err()
    }

    /// Reads on until an event fits.
    pub(crate) async fn until<T>(&mut self, fits: impl Fn(&EventBody) -> Option<T>) -> T {
        loop {
            if let Some(found) = fits(&self.next().await) {
                return found;
            }
        }
    }

    pub(crate) async fn until_fact<T>(&mut self, fits: impl Fn(&Fact) -> Option<T>) -> T {
        self.until(|body| match body {
            EventBody::Fact(recorded) => fits(&recorded.fact),
            _ => None,
        })
        .await
    }

    pub(crate) async fn turn_end(&mut self) -> Outcome {
        self.until_fact(|fact| match fact {
            Fact::TurnEnded { outcome, .. } => Some(outcome.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn next_ask(&mut self) -> Ask {
        self.until_fact(|fact| match fact {
            Fact::AskRaised { ask } => Some(ask.clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn until_progress(&mut self, wanted: &str) {
        self.until(|body| matches!(body, EventBody::Progress { text } if text == wanted).then_some(())).await;
    }

    /// Text that the chat shows beside the model's, in order.
    pub(crate) fn system_texts(&self) -> Vec<String> {
        let facts = self.events.iter().filter_map(|event| match &event.body {
            EventBody::Fact(recorded) => Some(&recorded.fact),
            _ => None,
        });
        facts
            .filter_map(|fact| match fact {
                Fact::ItemEnded { item: Item { kind: ItemKind::SystemText { text }, .. } } => {
                    Some(text.clone())
                }
                _ => None,
            })
            .collect()
    }
}

/// The messages of a chat, one line each: `user …`, `agent …`, `call name state`.
pub(crate) fn lines(state: &State) -> Vec<String> {
    state.items().iter().map(line).collect()
}

fn line(item: &Item) -> String {
    match &item.kind {
        ItemKind::UserMessage { text, .. } => format!("user {text}"),
        ItemKind::AgentMessage { text, interrupted: false, .. } => format!("agent {text}"),
        ItemKind::AgentMessage { text, .. } => format!("interrupted {text}"),
        ItemKind::ToolCall(call) => format!("call {} {:?}", call.name, call.state),
        ItemKind::Compaction { summary, .. } => format!("compaction {summary}"),
        ItemKind::Command { text } => format!("command {text}"),
        ItemKind::SystemText { text } => format!("system {text}"),
        ItemKind::Note(note) => format!("note {}", note.text),
        other => format!("{other:?}"),
    }
}

pub(crate) fn calls(state: &State) -> Vec<ToolCall> {
    let calls = state.items().iter().filter_map(|item| match &item.kind {
        ItemKind::ToolCall(call) => Some((**call).clone()),
        _ => None,
    });
    calls.collect()
}

/// What a prompt said to the model, as texts: `user …`, `agent …`, `call …`, `result …`, `image …`.
pub(crate) fn sent(entries: &[PromptEntry]) -> Vec<String> {
    let mut all = Vec::new();
    for entry in entries {
        match entry {
            PromptEntry::User { parts } => {
                all.extend(parts.iter().map(|part| format!("user {}", shown(part))))
            }
            PromptEntry::Agent { text, .. } => all.push(format!("agent {text}")),
            PromptEntry::Reasoning { text, .. } => all.push(format!("reasoning {text}")),
            PromptEntry::Call { name, .. } => all.push(format!("call {name}")),
            PromptEntry::Result { parts, .. } => {
                all.extend(parts.iter().map(|part| format!("result {}", shown(part))));
            }
        }
    }
    all
}

fn shown(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        Part::Image { data, .. } => format!("image {data}"),
    }
}

impl Bench {
    /// What the last call to a model was sent.
    pub(crate) fn last_sent(&self) -> Vec<String> {
        let prompts = self.models.prompts();
        sent(&prompts.last().expect("a call to the model").1.entries)
    }
}
