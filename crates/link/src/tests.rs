//! Both sides of a link over a pipe in memory, with an engine that the test plays.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{
    Accepted, AcceptedStatus, Command, Context, FlagChange, RollbackScope, SessionInfo, SessionSettings,
    TurnLimits, UserPrompt,
};
use domain::event::{EventBody, Fact, SessionUsage};
use domain::host::Position;
use domain::link::{Engine, Envelope, FrontendPort};
use domain::queue::Received;
use domain::tool::Resource;
use domain::{
    Abilities, Answer, AskId, Event, Failure, ItemDelta, ItemId, Part, Recorded, RemoteChat, SessionId,
    TurnId,
};
use tokio::sync::mpsc;

use crate::holder::{self, Admission};
use crate::window::{self, AttachRequest};

const SECRET: &str = "the secret";
/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn session() -> SessionId {
    SessionId::new("chat")
}

fn info(held_by: Option<&str>) -> SessionInfo {
    SessionInfo {
        id: session(),
        workspace: Vec::new(),
        settings: SessionSettings::default(),
        usage: SessionUsage::default(),
        newest: 0,
        busy: false,
        held_by: held_by.map(str::to_owned),
        attached_to: None,
        created_at: 0,
        updated_at: 0,
        items: 0,
        last_compaction: None,
    }
}

/// The holder's engine, as the test plays it.
struct Played {
    commands: mpsc::Receiver<Envelope>,
    port: Option<FrontendPort>,
}

impl Played {
    async fn next(&mut self) -> Command {
        let next = tokio::time::timeout(LONG, self.commands.recv()).await.expect("a command in time");
        next.expect("an open link").command
    }

    /// Answers the two commands with which a window begins.
    async fn join(&mut self, held_by: Option<&str>) -> Abilities {
        let Command::Attach { port } = self.next().await else { panic!("the first command attaches") };
        let abilities = port.abilities.clone();
        self.port = Some(port);
        let Command::Load { session: loaded, reply, .. } = self.next().await else { panic!("then it loads") };
        assert_eq!(loaded, session());
        reply.send(Ok(info(held_by))).expect("somebody waits");
        abilities
    }

    fn push(&self, body: EventBody) {
        let port = self.port.as_ref().expect("a window is there");
        port.events.push(Event { session: Some(session()), body });
    }
}

/// Starts both sides; the window shows this secret.
fn connect(
    secret: &str,
    refusal: Option<Failure>,
) -> (Played, tokio::task::JoinHandle<Result<RemoteChat, Failure>>) {
    let (engine, commands): (Engine, _) = domain::link::engine();
    let (near, far) = tokio::io::duplex(1 << 12);
    let ((near_reader, near_writer), (far_reader, far_writer)) =
        (tokio::io::split(near), tokio::io::split(far));
    tokio::spawn(async move {
        let admission = Admission { secret: SECRET, refusal, name: "the holder", program: "dragoman 1" };
        let _ = holder::serve(near_reader, near_writer, engine, admission).await;
    });
    let secret = secret.to_owned();
    let attaching = tokio::spawn(async move {
        let abilities =
            Abilities { client: "test".to_owned(), approvals: true, terminal: true, ..Abilities::default() };
        let session = session();
        let request =
            AttachRequest { secret, session: &session, abilities, name: "a window", program: "dragoman 1" };
        window::attach(far_reader, far_writer, request).await
    });
    (Played { commands, port: None }, attaching)
}

async fn attached() -> (Played, RemoteChat) {
    let (mut engine, attaching) = connect(SECRET, None);
    let abilities = engine.join(None).await;
    assert!(abilities.approvals && abilities.remote && !abilities.terminal, "{abilities:?}");
    let chat = attaching.await.expect("no panic").expect("it is let in");
    assert_eq!(chat.holder, "the holder");
    (engine, chat)
}

#[tokio::test]
async fn a_window_without_the_secret_or_with_a_refusal_reaches_no_engine() {
    let (mut engine, attaching) = connect("another secret", None);
    let failure = attaching.await.expect("no panic").err().expect("it is refused");
    assert!(failure.message.contains("secret"), "{failure}");
    assert!(engine.commands.recv().await.is_none(), "the engine heard nothing");
    let refusal = Failure::user("Not from there.").hint("Ask.");
    let (mut engine, attaching) = connect(SECRET, Some(refusal.clone()));
    assert_eq!(attaching.await.expect("no panic").err(), Some(refusal));
    assert!(engine.commands.recv().await.is_none(), "the engine heard nothing");
}

#[tokio::test]
async fn a_chat_that_another_process_holds_is_not_handed_on() {
    let (mut engine, attaching) = connect(SECRET, None);
    engine.join(Some("a third process")).await;
    let failure = attaching.await.expect("no panic").err().expect("it is refused");
    assert!(failure.message.contains("no longer holds"), "{failure}");
    assert!(matches!(engine.next().await, Command::Detach));
}

/// Every field of a prompt, but for what stays in the process that sends it.
fn prompt() -> UserPrompt {
    let image: Arc<str> = "aGk=".into();
    let path = PathBuf::from("/work/ä.rs");
    let at = |line| Position { line, character: 2 };
    let resource = Resource {
        server: "files".to_owned(),
        uri: "a://b".to_owned(),
        name: "b".to_owned(),
        description: "It is b.".to_owned(),
        mime: "text/plain".to_owned(),
    };
    UserPrompt {
        text: "Do \"it\".\n".to_owned(),
        parts: vec![Part::text("ä"), Part::Image { mime: "image/png".to_owned(), data: image.clone() }],
        contexts: vec![
            Context::File { path: path.clone(), lines: Some((1, 9)) },
            Context::Directory { path: path.clone() },
            Context::Web { url: "https://example.com".to_owned() },
            Context::RepoMap,
            Context::Cursor { path, start: at(1), end: at(3) },
            Context::McpResource(resource),
            Context::Code { content: "x".to_owned(), language: "rs".to_owned(), description: None },
            Context::Text { name: "n".to_owned(), text: "t".to_owned() },
            Context::Image { mime: "image/png".to_owned(), data: image },
        ],
        change: SessionSettings {
            model: Some("a/b".to_owned()),
            trust: Some(true),
            ..SessionSettings::default()
        },
        limits: TurnLimits {
            max_steps: Some(3),
            max_cost: Some(0.5),
            output_schema: Some(serde_json::json!({"type": "object"})),
            failover: vec!["c/d".to_owned()],
            listed_resources: true,
            until: Some("make test".to_owned()),
            ..TurnLimits::default()
        },
    }
}

#[tokio::test]
async fn a_prompt_arrives_as_it_was_sent_and_its_reply_comes_back() {
    let (mut engine, chat) = attached().await;
    let commands = chat.link.commands.clone();
    let call = |reply| Command::Prompt { session: session(), prompt: prompt(), reply };
    let sending = tokio::spawn(async move { commands.call(call).await });
    let Command::Prompt { session: of, prompt: sent, reply } = engine.next().await else {
        panic!("a prompt")
    };
    assert_eq!((of, sent), (session(), prompt()));
    let accepted = Accepted { turn: TurnId(7), model: "a/b".to_owned(), status: AcceptedStatus::Prompting };
    reply.send(Ok(accepted.clone())).expect("somebody waits");
    assert_eq!(sending.await.expect("no panic").expect("accepted"), accepted);
}

#[tokio::test]
async fn answers_and_failures_keep_every_word() {
    let (mut engine, chat) = attached().await;
    for answer in [
        Answer::Allow { remember: true },
        Answer::Deny { remember: false, reason: Some("no".to_owned()) },
        Answer::Text { text: "so".to_owned() },
        Answer::Form { data: serde_json::json!({"a": [1]}) },
        Answer::Cancelled,
    ] {
        let (commands, given) = (chat.link.commands.clone(), answer.clone());
        let call = move |reply| Command::Answer { session: session(), ask: AskId(4), answer: given, reply };
        let sending = tokio::spawn(async move { commands.call(call).await });
        let Command::Answer { ask, answer: got, reply, .. } = engine.next().await else {
            panic!("an answer")
        };
        assert_eq!((ask, &got), (AskId(4), &answer));
        reply.send(Ok(got)).expect("somebody waits");
        assert_eq!(sending.await.expect("no panic").expect("settled"), answer);
    }
    let failure =
        Failure { retry_after: Some(Duration::from_millis(1500)), ..Failure::taken("Later.").hint("Wait.") };
    let commands = chat.link.commands.clone();
    let call = |reply| Command::Steer { session: session(), text: None, reply };
    let sending = tokio::spawn(async move { commands.call(call).await });
    let Command::Steer { text: None, reply, .. } = engine.next().await else { panic!("a steering") };
    reply.send(Err(failure.clone())).expect("somebody waits");
    assert_eq!(sending.await.expect("no panic").err(), Some(failure));
}

#[tokio::test]
async fn the_other_commands_arrive_in_their_order() {
    let (mut engine, chat) = attached().await;
    let commands = chat.link.commands.clone();
    let (flagged, _a) = domain::command::reply();
    let (rolled, _b) = domain::command::reply();
    let change = FlagChange::Add { after: ItemId(3), text: "here".to_owned() };
    commands
        .send(Command::Flag { session: session(), change: change.clone(), reply: flagged })
        .await
        .expect("sent");
    let scope = RollbackScope::Files;
    commands
        .send(Command::Rollback { session: session(), from: Some(ItemId(2)), scope, reply: rolled })
        .await
        .expect("sent");
    commands.send(Command::Cancel { session: session() }).await.expect("sent");
    let Command::Flag { change: got, .. } = engine.next().await else { panic!("a flag") };
    assert_eq!(got, change);
    let Command::Rollback { from, scope: got, .. } = engine.next().await else { panic!("a rollback") };
    assert_eq!((from, got), (Some(ItemId(2)), scope));
    assert!(matches!(engine.next().await, Command::Cancel { .. }));
}

#[tokio::test]
async fn events_arrive_in_their_order_and_a_gap_is_told() {
    let (engine, mut chat) = attached().await;
    let fact = Fact::TurnStarted { turn: TurnId(1), model: "a/b".to_owned() };
    let recorded = Arc::new(Recorded { number: 5, at: 9, fact });
    let delta =
        ItemDelta {
            item: ItemId(1), channel: domain::event::Channel::Text, offset: 0, text: "ä".to_owned()
        };
    let lost = Failure::taken("It went away.");
    let bodies = [
        EventBody::Fact(recorded),
        EventBody::Delta(delta),
        EventBody::Progress { text: "Reading".to_owned() },
        EventBody::Lost { failure: lost },
    ];
    for body in &bodies {
        engine.push(body.clone());
    }
    for body in bodies {
        let received = tokio::time::timeout(LONG, chat.link.events.recv()).await.expect("an event in time");
        let Received::Event(event) = received else { panic!("an event") };
        assert_eq!(event, Event { session: Some(session()), body });
    }
    engine.port.as_ref().expect("a window").events.lag();
    let received = tokio::time::timeout(LONG, chat.link.events.recv()).await.expect("an event in time");
    assert!(matches!(received, Received::Lagged));
}

#[tokio::test]
async fn the_end_of_the_holder_fails_what_waits_and_closes_the_events() {
    let (mut engine, mut chat) = attached().await;
    let commands = chat.link.commands.clone();
    let call = |reply| Command::Steer { session: session(), text: Some("x".to_owned()), reply };
    let sending = tokio::spawn(async move { commands.call(call).await });
    let Command::Steer { reply, .. } = engine.next().await else { panic!("a steering") };
    // The chat leaves the process without an answer.
    engine.port.take().expect("a window").events.close();
    let received = tokio::time::timeout(LONG, chat.link.events.recv()).await.expect("an end in time");
    assert!(matches!(received, Received::Closed));
    let failure = sending.await.expect("no panic").expect_err("nobody answers");
    assert!(failure.message.contains("ended before it answered"), "{failure}");
    drop(reply);
}
