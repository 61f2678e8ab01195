//! The relay of an editor through a network that loses connections in the middle of everything: nothing is lost or doubled.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::event::Channel;
use domain::item::ItemKind;
use domain::{Fact, ItemId, Outcome, SessionId, TurnId};
use remote::{Editor, Recovery};
use rpc::{Framing, Messages, Transport};
use serde_json::{Value, json};
use testkit::fake_engine::{Seen, item};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::editors::{Place, Shared, TOKEN, WAIT, ask, session_of};

/// As the program has it for ACP.
const RECOVERY: Recovery = Recovery {
    greeting: &["initialize"],
    opens: &["session/new", "session/load"],
    closes: &[],
    key: "sessionId",
    reopen: "session/resume",
    members: &["cwd", "mcpServers"],
};

/// How many connections are cut.
fn wanted_cuts() -> usize {
    let scale = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse::<usize>().ok());
    30 * scale.unwrap_or(1).clamp(1, 100)
}

/// A network between client and server that cuts each connection after some bytes, until it has done so often enough.
struct Network {
    port: u16,
    cuts: Arc<AtomicUsize>,
    server: Arc<AtomicU16>,
    /// Cuts all connections that are open.
    moved: Arc<tokio::sync::Notify>,
}

impl Network {
    async fn start(server: u16, seed: u64, most: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = cuts.clone();
        let server = Arc::new(AtomicU16::new(server));
        let moved = Arc::new(tokio::sync::Notify::new());
        let (to, cut) = (server.clone(), moved.clone());
        tokio::spawn(async move {
            let mut random = seed | 1;
            while let Ok((near, _)) = listener.accept().await {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let far = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst))).await.unwrap();
                // The heads of both sides have some 700 bytes: a few connections end before they have begun.
                let budget = (counted.load(Ordering::SeqCst) < most).then_some(400 + random % 4000);
                let (counted, cut) = (counted.clone(), cut.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = carry(near, far, budget, counted) => {}
                        () = cut.notified() => {}
                    }
                });
            }
        });
        Self { port, cuts, server, moved }
    }

    /// Connections lead to this server from now on.
    fn move_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
        self.moved.notify_waiters();
    }

    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

async fn carry(near: TcpStream, far: TcpStream, budget: Option<u64>, cuts: Arc<AtomicUsize>) {
    let left: Shared<u64> = Arc::new(Mutex::new(budget.unwrap_or(u64::MAX)));
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let (up, down) = (copy(near_in, far_out, left.clone()), copy(far_in, near_out, left.clone()));
    tokio::select! {
        () = up => {}
        () = down => {}
    }
    if *left.lock().unwrap() == 0 {
        cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// Ends with the input, or with the bytes that both directions share.
async fn copy(
    mut input: tokio::net::tcp::OwnedReadHalf,
    mut output: tokio::net::tcp::OwnedWriteHalf,
    left: Shared<u64>,
) {
    let mut buffer = [0; 512];
    loop {
        let Ok(count @ 1..) = input.read(&mut buffer).await else { return };
        let (allowed, is_over) = {
            let mut left = left.lock().unwrap();
            let allowed = (count as u64).min(*left);
            *left -= allowed;
            (allowed as usize, *left == 0)
        };
        if output.write_all(&buffer[..allowed]).await.is_err() || is_over {
            return;
        }
    }
}

/// An editor whose standard streams are in memory.
struct Client {
    messages: Messages,
    last_id: u64,
    relay: tokio::task::JoinHandle<Result<(), domain::Failure>>,
}

impl Client {
    fn start(place: &Place, network: &Network, endpoint: &str, framing: Framing) -> Self {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(near);
        let messages = rpc::messages(framing, 1 << 24, Transport::stream(input, output)).unwrap();
        let (input, output) = tokio::io::split(far);
        let editor = rpc::messages(framing, 1 << 24, Transport::stream(input, output)).unwrap();
        let mut target = place.target(endpoint, TOKEN);
        // The server checks the host that it is reached by.
        target.address.port = network.port;
        let relay = tokio::spawn(async move {
            let (notice, prompt) = (|_: &str, _: Option<&str>| None, "session/prompt");
            let editor = Editor { messages: editor, notice, prompt, recovery: RECOVERY };
            remote::relay(&target, editor).await
        });
        Self { messages, last_id: 0, relay }
    }

    async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})).await;
        self.last_id
    }

    async fn send(&mut self, message: Value) {
        self.messages.outgoing.send(message.to_string()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let text =
            tokio::time::timeout(WAIT, self.messages.incoming.recv()).await.expect("a message in time");
        serde_json::from_str(&text.expect("the relay is there")).unwrap()
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if fits(&message) {
                return (before, message);
            }
            before.push(message);
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let (_, response) = self.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Ends as an editor does: the relay ends with it.
    async fn end(self) {
        drop(self.messages);
        tokio::time::timeout(WAIT, self.relay).await.expect("the relay ends").unwrap().unwrap();
    }
}

/// A long answer in small parts.
fn parts(round: u64) -> Vec<String> {
    (0..60)
        .map(|part| format!("Round {round}, part {part}: größer 🌍 {}\n", "x".repeat((part % 7) * 11)))
        .collect()
}

fn stream(place: &Place, id: &SessionId, turn: TurnId, number: u64, round: u64) -> String {
    let kind = ItemKind::AgentMessage { text: String::new(), interrupted: false, provider: None };
    place.engine.fact(id, Fact::ItemStarted { item: item(number, turn, kind) });
    let mut whole = String::new();
    for part in parts(round) {
        let offset = whole.len() as u64;
        place.engine.delta(id, number, Channel::Text, offset, &part);
        let grew =
            Fact::ItemGrew { item: ItemId(number), channel: Channel::Text, offset, text: part.clone() };
        place.engine.fact(id, grew);
        whole.push_str(&part);
    }
    place.engine.say(id, turn, number, &whole);
    whole
}

fn said(messages: &[Value]) -> String {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// ACP: prompts, approvals and answers while every connection is cut after some hundred bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acp_editor_loses_nothing() {
    let mut place = Place::start().await;
    let most = wanted_cuts();
    let network = Network::start(place.port, 0x5eed, most).await;
    let mut client = Client::start(&place, &network, "acp", Framing::Newline);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let session =
        client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await["sessionId"].clone();
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    let mut round = 0;
    while network.cuts() < most || round < 3 {
        round += 1;
        let words = format!("Prompt {round}");
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]});
        let prompted = client.call("session/prompt", prompt).await;
        // The next thing that the engine sees is this prompt: none before it ran twice.
        let (id, turn, got) = place.engine.prompt().await;
        assert_eq!((got.text, &id), (words.clone(), &session_of(&session)));
        place.engine.begin(&id, turn, 10 * round, &words);
        for fact in ask(turn, 10 * round + 1) {
            place.engine.fact(&id, fact);
        }
        let (_, asked) = client.until(|it| it["method"] == "session/request_permission").await;
        let allowed = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": allowed})).await;
        assert!(matches!(place.engine.next().await, Seen::Answer { .. }));
        let answer = domain::Answer::Allow { remember: false };
        place.engine.fact(&id, Fact::AskSettled { id: domain::AskId(10 * round + 1), answer });
        let whole = stream(&place, &id, turn, 10 * round + 2, round);
        place.engine.end(&id, turn, Outcome::Done);
        let ended = |it: &Value| it["id"] == json!(prompted) && it.get("method").is_none();
        let (seen, response) = client.until(ended).await;
        assert_eq!(response["result"]["stopReason"], "end_turn");
        assert_eq!(said(&seen), whole, "round {round}");
        assert!(!seen.iter().any(|it| it.get("method").is_none()), "each request is answered once");
    }
    client.end().await;
    assert!(matches!(place.engine.next().await, Seen::Detach), "nothing more came");
}

/// The same for ECA.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eca_editor_loses_nothing() {
    let mut place = Place::start().await;
    let most = wanted_cuts();
    let network = Network::start(place.port, 0xeca, most).await;
    let mut client = Client::start(&place, &network, "eca", Framing::Header);
    let editor = json!({"diagnostics": true, "definition": true, "references": true});
    let capabilities = json!({"codeAssistant": {"chat": true, "editor": editor}});
    client.request("initialize", json!({"processId": 1, "capabilities": capabilities})).await;
    let abilities = place.engine.abilities();
    assert!(!abilities.diagnostics && !abilities.definition && !abilities.references, "{abilities:?}");
    client.send(json!({"jsonrpc": "2.0", "method": "initialized", "params": {}})).await;
    let mut round = 0;
    while network.cuts() < most || round < 3 {
        round += 1;
        let words = format!("Prompt {round}");
        client.call("chat/prompt", json!({"chatId": "c", "message": words})).await;
        if round == 1 {
            assert!(matches!(place.engine.next().await, Seen::Open { .. }));
        }
        let (id, turn, got) = place.engine.prompt().await;
        assert_eq!(got.text, words);
        place.engine.begin(&id, turn, 10 * round, &words);
        let whole = stream(&place, &id, turn, 10 * round + 2, round);
        place.engine.end(&id, turn, Outcome::Done);
        let ended = |it: &Value| {
            let content = &it["params"]["content"];
            content["type"] == "progress" && content["state"] == "finished"
        };
        let (seen, _) = client.until(ended).await;
        let contents =
            seen.iter().filter(|it| it["method"] == "chat/contentReceived").map(|it| &it["params"]);
        let texts = contents.filter(|it| it["role"] == "assistant" && it["content"]["type"] == "text");
        let shown: String = texts.filter_map(|it| it["content"]["text"].as_str()).collect();
        assert_eq!(shown, whole, "round {round}");
        let answers = seen.iter().filter(|it| it.get("method").is_none()).count();
        assert!(answers <= 1, "each request is answered once");
    }
    client.end().await;
    assert!(matches!(place.engine.next().await, Seen::Detach), "nothing more came");
}

/// A server that forgot the connection: what waits is answered with an error, the chats are opened again, and what
/// the editor asks next works. An answer to a question of before reaches no question of after.
#[tokio::test]
async fn a_server_that_forgot_the_connection_goes_on_with_the_next_request() {
    let mut place = Place::start_with(std::time::Duration::from_millis(50)).await;
    let network = Network::start(place.port, 1, 0).await;
    let mut client = Client::start(&place, &network, "acp", Framing::Newline);
    client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let session =
        client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await["sessionId"].clone();
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]});
    let prompted = client.call("session/prompt", prompt.clone()).await;
    let (id, turn, _) = place.engine.prompt().await;
    place.engine.begin(&id, turn, 1, "x");
    for fact in ask(turn, 2) {
        place.engine.fact(&id, fact);
    }
    let (_, asked) = client.until(|it| it["method"] == "session/request_permission").await;
    // The network is away until the server has forgotten the connection.
    let dead = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nowhere = dead.local_addr().unwrap().port();
    tokio::spawn(async move { while dead.accept().await.is_ok() {} });
    network.move_to(nowhere);
    while !matches!(place.engine.next().await, Seen::Detach) {}
    network.move_to(place.port);
    let (_, response) = client.until(|it| it["id"] == json!(prompted)).await;
    let told = response["error"]["message"].as_str().unwrap();
    assert!(told.contains("was lost") && told.contains("not known whether"), "{told}");
    while !matches!(place.engine.next().await, Seen::Load { .. }) {}
    for fact in ask(turn, 5) {
        place.engine.fact(&id, fact);
    }
    let (_, again) = client.until(|it| it["method"] == "session/request_permission").await;
    assert_ne!(again["id"], asked["id"]);
    let outcome = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
    let old = json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome("allow_once")});
    client.send(old).await;
    let new = json!({"jsonrpc": "2.0", "id": again["id"], "result": outcome("reject_once")});
    client.send(new).await;
    let answer = loop {
        if let Seen::Answer { answer, .. } = place.engine.next().await {
            break answer;
        }
    };
    assert!(matches!(answer, domain::Answer::Deny { .. }), "{answer:?}");
    place.engine.end(&id, turn, Outcome::Done);
    let prompted = client.call("session/prompt", prompt).await;
    let (_, turn, _) = place.engine.prompt().await;
    place.engine.begin(&id, turn, 7, "x");
    place.engine.end(&id, turn, Outcome::Done);
    let (_, response) = client.until(|it| it["id"] == json!(prompted)).await;
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    client.end().await;
}

/// A token that is not accepted: the first request is answered with the reason.
#[tokio::test]
async fn a_refused_token_is_told_to_the_editor() {
    let place = Place::start().await;
    let (near, far) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(near);
    let mut client = rpc::messages(Framing::Newline, 1 << 24, Transport::stream(input, output)).unwrap();
    let (input, output) = tokio::io::split(far);
    let messages = rpc::messages(Framing::Newline, 1 << 24, Transport::stream(input, output)).unwrap();
    let target = place.target("acp", "secret-that-is-wrong");
    client
        .outgoing
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).to_string())
        .await
        .unwrap();
    let editor = Editor { messages, notice: |_, _| None, prompt: "session/prompt", recovery: RECOVERY };
    let failure = remote::relay(&target, editor).await.unwrap_err();
    let answer = client.incoming.recv().await.unwrap();
    assert!(answer.contains("refuses the connection"), "{answer}");
    assert!(
        !answer.contains("secret-that-is-wrong") && !failure.to_string().contains("secret-that-is-wrong")
    );
}
