//! One chat through all five projections (ECA, the draft protocol, ACP, threads, the terminal): a client that follows
//! live, one that lags, one that connects again in the middle and one that opens the chat afterwards have the same
//! contents in the end.
//!
//! The real `serve` functions and the real screen run over an engine that replays a random script of facts and deltas.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::command::{Catalog, SessionSettings};
use domain::event::{Channel, EventBody};
use domain::host::Grants;
use domain::item::{ItemKind, Part};
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{Event, Fact, ItemDelta, ItemId, Outcome, Recorded, SessionId, TurnId};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};
use terminal::Palette;
use terminal::chat::draw::draw;
use terminal::chat::screen::Screen;
use terminal::chat::theme::Theme;
use testkit::fake_engine::item;
use testkit::{FakeEngine, Seen};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// No test waits longer than this for one message.
const TIMEOUT: Duration = Duration::from_secs(60);
const TURN: TurnId = TurnId(1);
/// So many facts that the queue of a client that does not read overflows.
const GROWTHS: usize = 5000;

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "a test makes few of them")]
enum Step {
    Fact(Fact),
    Delta(ItemDelta),
}

/// A small generator, so that a failure names the seed that repeats it.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    /// Text of characters of one to four bytes, without anything that Markdown or a terminal would change.
    fn text(&mut self, length: usize) -> String {
        (0..length).map(|_| ['a', 'b', 'ü', '€', '😀', 'k'][self.below(6)]).collect()
    }
}

/// The texts of a script, and the steps by which they come about.
struct Script {
    steps: Vec<Step>,
}

impl Script {
    fn new(seed: u64, growths: usize) -> Self {
        let mut random = Random(seed);
        let mut steps = vec![Step::Fact(Fact::TurnStarted { turn: TURN, model: "a/plain".into() })];
        let user = ItemKind::UserMessage { text: "Question".into(), parts: vec![Part::text("Question")] };
        steps.push(Step::Fact(Fact::ItemEnded { item: item(1, TURN, user) }));
        let thought = random.text(30);
        let kind = |text: &str| ItemKind::Reasoning { text: text.into(), millis: 5, provider: None };
        stream(&mut steps, &mut random, 2, Channel::Reasoning, &thought, 6, &kind);
        let answer = random.text(40);
        stream(&mut steps, &mut random, 3, Channel::Text, &answer, 8, &said);
        steps.extend(tool_call(&mut random));
        let long = random.text(growths + 20);
        stream(&mut steps, &mut random, 5, Channel::Text, &long, growths, &said);
        steps.push(Step::Fact(Fact::TurnEnded { turn: TURN, outcome: Outcome::Done }));
        Self { steps }
    }

    /// `live`: the client's connection runs after every step; otherwise it falls behind.
    async fn play(
        &self,
        engine: &FakeEngine,
        session: &SessionId,
        steps: std::ops::Range<usize>,
        live: bool,
    ) {
        for step in &self.steps[steps] {
            match step {
                Step::Fact(fact) => engine.fact(session, fact.clone()),
                Step::Delta(delta) => engine.event(Some(session), EventBody::Delta(delta.clone())),
            }
            if live {
                tokio::task::yield_now().await;
            }
        }
    }

    fn facts(&self) -> Vec<Fact> {
        let facts = self.steps.iter().filter_map(|step| match step {
            Step::Fact(fact) => Some(fact.clone()),
            Step::Delta(_) => None,
        });
        facts.collect()
    }
}

fn said(text: &str) -> ItemKind {
    ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None }
}

/// A text in pieces: each as a delta, most of them later in the journal, some of them twice.
fn stream(
    steps: &mut Vec<Step>,
    random: &mut Random,
    id: u64,
    channel: Channel,
    text: &str,
    pieces: usize,
    kind: &dyn Fn(&str) -> ItemKind,
) {
    let delta = |offset: usize, text: &str| {
        Step::Delta(ItemDelta { item: ItemId(id), channel, offset: offset as u64, text: text.to_owned() })
    };
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let size = characters.len().div_ceil(pieces).max(1);
    let mut journaled = 0;
    for (number, piece) in characters.chunks(size).enumerate() {
        let (start, part) = (piece[0].0, piece.iter().map(|(_, it)| *it).collect::<String>());
        let end = start + part.len();
        if number == 0 {
            steps.push(Step::Fact(Fact::ItemStarted { item: item(id, TURN, kind(&part)) }));
            journaled = end;
        }
        steps.push(delta(start, &part));
        if random.below(8) == 0 {
            steps.push(delta(start, &part));
        }
        if number > 0 && random.below(10) > 0 {
            let text = text[journaled..end].to_owned();
            let offset = journaled as u64;
            steps.push(Step::Fact(Fact::ItemGrew { item: ItemId(id), channel, offset, text }));
            journaled = end;
        }
    }
    steps.push(Step::Fact(Fact::ItemEnded { item: item(id, TURN, kind(text)) }));
}

fn tool_call(random: &mut Random) -> Vec<Step> {
    let (input, output) = (json!({"text": random.text(10)}), random.text(20));
    let call = |state: ToolState, input_text: String, input: Option<Value>, result: Vec<Part>| {
        let call = ToolCall {
            call_id: "c".into(),
            name: "read_file".into(),
            server: "eca".into(),
            origin: Origin::Native,
            input_text,
            input,
            state,
            summary: "Reading".into(),
            details: None,
            manual_approval: false,
            live_output: String::new(),
            result,
            error: false,
            millis: 7,
            locations: Vec::new(),
            provider: None,
        };
        item(4, TURN, ItemKind::ToolCall(Box::new(call)))
    };
    let text = input.to_string();
    let delta = |channel, offset: usize, text: &str| {
        Step::Delta(ItemDelta { item: ItemId(4), channel, offset: offset as u64, text: text.to_owned() })
    };
    let running = call(ToolState::Running, text.clone(), Some(input.clone()), Vec::new());
    let done = call(ToolState::Done, text.clone(), Some(input), vec![Part::text(output.clone())]);
    vec![
        Step::Fact(Fact::ItemStarted { item: call(ToolState::Preparing, String::new(), None, Vec::new()) }),
        delta(Channel::ToolInput, 0, &text[..5]),
        delta(Channel::ToolInput, 5, &text[5..]),
        Step::Fact(Fact::ItemChanged { item: running }),
        delta(Channel::ToolOutput, 0, &output),
        Step::Fact(Fact::ItemEnded { item: done }),
    ]
}

/// What a client shows in the end.
type Contents = BTreeMap<String, String>;

/// How a client comes to its contents.
#[derive(Clone, Copy, Debug)]
enum Way {
    Live,
    Lagging,
    Reconnected,
    Replayed,
}

const WAYS: [Way; 4] = [Way::Live, Way::Lagging, Way::Reconnected, Way::Replayed];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Protocol {
    Eca,
    Draft,
    Acp,
    Threads,
}

/// A connection to one of the `serve` functions.
struct Client {
    protocol: Protocol,
    output: WriteHalf<DuplexStream>,
    input: BufReader<ReadHalf<DuplexStream>>,
}

impl Client {
    fn connect(protocol: Protocol, engine: &FakeEngine, buffer: usize) -> Self {
        let (near, far) = tokio::io::duplex(buffer);
        let (input, output) = tokio::io::split(near);
        let (far_input, far_output) = tokio::io::split(far);
        let (transport, engine) = (rpc::Transport::stream(far_input, far_output), engine.engine());
        match protocol {
            Protocol::Eca | Protocol::Draft => {
                let (parent, _) = tokio::sync::mpsc::unbounded_channel();
                tokio::spawn(proto_eca::serve(
                    engine,
                    transport,
                    proto_eca::ServeOptions { parent, is_remote: false, global_config: None },
                ));
            }
            Protocol::Acp => {
                tokio::spawn(proto_acp::serve(engine, transport));
            }
            Protocol::Threads => {
                let options = proto_threads::ServeOptions {
                    driver: Some(proto_threads::Driver::Editor),
                    workspace: "/w".into(),
                    grants: Grants::READ,
                    quiet: Duration::from_secs(3600),
                };
                tokio::spawn(proto_threads::serve(engine, transport, options));
            }
        }
        Self { protocol, output, input: BufReader::new(input) }
    }

    async fn send(&mut self, message: Value) {
        let mut message = message;
        if self.protocol != Protocol::Threads {
            message["jsonrpc"] = json!("2.0");
        }
        let body = message.to_string();
        let bytes = match self.protocol {
            Protocol::Eca | Protocol::Draft => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
            Protocol::Acp | Protocol::Threads => format!("{body}\n"),
        };
        self.output.write_all(bytes.as_bytes()).await.expect("the server reads");
    }

    async fn receive(&mut self) -> Value {
        tokio::time::timeout(TIMEOUT, self.read()).await.expect("a message in time")
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        let mut length = None;
        loop {
            line.clear();
            assert!(self.input.read_line(&mut line).await.expect("lines") > 0, "the connection is open");
            match (line.trim_end().strip_prefix("Content-Length: "), length) {
                (Some(digits), _) => length = digits.parse().ok(),
                (None, Some(length)) => {
                    let mut body = vec![0; length];
                    self.input.read_exact(&mut body).await.expect("a body");
                    return serde_json::from_slice(&body).expect("JSON");
                }
                (None, None) => return serde_json::from_str(&line).expect("JSON"),
            }
        }
    }

    /// The messages up to the one that fits. Requests of the server are answered.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.receive().await;
            if message.get("method").is_some() && message.get("id").is_some() {
                self.send(json!({"id": message["id"], "result": null})).await;
            }
            let is_last = fits(&message);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Vec<Value> {
        self.send(json!({"id": id, "method": method, "params": params})).await;
        let messages = self.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
        assert!(messages.last().expect("a response").get("error").is_none(), "{messages:?}");
        messages
    }

    async fn initialize(&mut self) {
        match self.protocol {
            Protocol::Eca => drop(self.request(1, "initialize", json!({})).await),
            Protocol::Draft => {
                let capabilities = json!({"codeAssistant": {"chat": true, "doc": false}});
                self.request(1, "initialize", json!({"capabilities": capabilities})).await;
            }
            Protocol::Acp => {
                let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
                self.request(1, "initialize", params).await;
            }
            Protocol::Threads => {}
        }
    }

    /// Sends the prompt of the stored chat `c`, whose session the engine knows.
    async fn prompt(&mut self) {
        let (method, params) = match self.protocol {
            Protocol::Eca | Protocol::Draft => ("chat/prompt", json!({"chatId": "c", "message": "Question"})),
            Protocol::Acp => {
                let load = json!({"sessionId": "c", "cwd": "/w", "mcpServers": []});
                self.request(2, "session/resume", load).await;
                let prompt = json!([{"type": "text", "text": "Question"}]);
                ("session/prompt", json!({"sessionId": "c", "prompt": prompt}))
            }
            Protocol::Threads => {
                let chunks = json!([{"type": "text", "chunk": "Question"}]);
                ("sendMessage", json!({"threadId": "c", "message": {"role": "user", "chunks": chunks}}))
            }
        };
        self.send(json!({"id": 3, "method": method, "params": params})).await;
    }

    /// The last message of a turn.
    fn is_end(protocol: Protocol) -> impl Fn(&Value) -> bool {
        move |it| match protocol {
            Protocol::Eca => it["params"]["content"]["state"] == "finished",
            Protocol::Draft => it["params"]["isComplete"] == true,
            Protocol::Acp | Protocol::Threads => it["id"] == 3 && it.get("method").is_none(),
        }
    }

    /// Opens the stored chat; gives its messages.
    async fn open(&mut self) -> Vec<Value> {
        match self.protocol {
            Protocol::Eca | Protocol::Draft => self.request(4, "chat/open", json!({"chatId": "c"})).await,
            Protocol::Acp => {
                let params = json!({"sessionId": "c", "cwd": "/w", "mcpServers": []});
                self.request(4, "session/load", params).await
            }
            Protocol::Threads => self.request(4, "getThreadEntries", json!({"threadId": "c"})).await,
        }
    }
}

/// Puts the messages of a client together, as the client would.
fn contents(protocol: Protocol, messages: &[Value]) -> Contents {
    let mut contents = Contents::new();
    for message in messages {
        match protocol {
            Protocol::Eca => add_eca(&mut contents, &message["params"]),
            Protocol::Draft => {
                let content = &message["params"]["content"];
                add(&mut contents, "text", content["text"].as_str());
                for block in content["codeBlocks"].as_array().into_iter().flatten() {
                    add(&mut contents, "code", block["code"].as_str());
                }
            }
            Protocol::Acp => add_acp(&mut contents, &message["params"]["update"]),
            Protocol::Threads => {
                let chunk = message["params"]["chunk"]["chunk"].as_str();
                add(&mut contents, "text", chunk);
                let entries = message["result"]["entries"].as_array().into_iter().flatten();
                let said: Vec<&str> = entries
                    .filter(|entry| entry["role"] == "assistant")
                    .filter_map(|entry| entry["chunks"][0]["chunk"].as_str())
                    .collect();
                add(&mut contents, "text", (!said.is_empty()).then(|| said.join("\n\n")).as_deref());
            }
        }
    }
    contents
}

fn add(contents: &mut Contents, key: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        contents.entry(key.to_owned()).or_default().push_str(text);
    }
}

fn add_eca(contents: &mut Contents, params: &Value) {
    let content = &params["content"];
    let (role, id) =
        (params["role"].as_str().unwrap_or_default(), content["id"].as_str().unwrap_or_default());
    match content["type"].as_str() {
        Some("text") => add(contents, role, content["text"].as_str()),
        Some("reasonText") => add(contents, &format!("reason {id}"), content["text"].as_str()),
        Some("toolCallPrepare") => {
            add(contents, &format!("arguments {id}"), content["argumentsText"].as_str());
        }
        Some("toolCalled") => add(contents, &format!("output {id}"), content["outputs"][0]["text"].as_str()),
        _ => {}
    }
}

fn add_acp(contents: &mut Contents, update: &Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    match kind {
        // A client shows its own prompt by itself.
        "agent_message_chunk" | "agent_thought_chunk" => {
            let key = format!("{kind} {}", update["messageId"]);
            add(contents, &key, update["content"]["text"].as_str());
        }
        "tool_call" | "tool_call_update" => {
            for (name, value) in update.as_object().into_iter().flatten() {
                if name != "sessionUpdate" {
                    contents.insert(format!("call {name}"), value.to_string());
                }
            }
        }
        _ => {}
    }
}

/// An engine that knows the chat `c`, before its first turn.
fn engine_with_chat(facts: Vec<Fact>) -> (FakeEngine, SessionId) {
    let engine = FakeEngine::start(Catalog {
        default_model: Some("a/plain".into()),
        behaviors: vec!["agent".into()],
        default_behavior: "agent".into(),
        ..Catalog::default()
    });
    let session = SessionId::new("c");
    engine.store(&session, SessionSettings::default(), "/w", facts);
    (engine, session)
}

async fn await_prompt(engine: &mut FakeEngine) {
    while !matches!(engine.next().await, Seen::Prompt { .. }) {}
}

async fn shown(protocol: Protocol, way: Way, script: &Script) -> Contents {
    let all = script.steps.len();
    match way {
        Way::Live | Way::Lagging => {
            let (mut engine, session) = engine_with_chat(Vec::new());
            let buffer = if matches!(way, Way::Lagging) { 1 << 10 } else { 1 << 22 };
            let mut client = Client::connect(protocol, &engine, buffer);
            client.initialize().await;
            client.prompt().await;
            await_prompt(&mut engine).await;
            script.play(&engine, &session, 0..all, matches!(way, Way::Live)).await;
            let messages = client.until(Client::is_end(protocol)).await;
            contents(protocol, &messages)
        }
        Way::Reconnected => {
            let (mut engine, session) = engine_with_chat(Vec::new());
            let mut first = Client::connect(protocol, &engine, 1 << 22);
            first.initialize().await;
            first.prompt().await;
            await_prompt(&mut engine).await;
            script.play(&engine, &session, 0..all / 2, true).await;
            drop(first);
            while engine.next().await != Seen::Detach {}
            let mut second = Client::connect(protocol, &engine, 1 << 22);
            second.initialize().await;
            let mut messages = if protocol == Protocol::Threads { Vec::new() } else { second.open().await };
            script.play(&engine, &session, all / 2..all, true).await;
            messages.extend(match protocol {
                Protocol::Eca | Protocol::Draft => second.until(Client::is_end(protocol)).await,
                // These protocols tell a client that did not prompt no end of the turn; the last text is known.
                Protocol::Acp => second.until(completes_last_text(script, &messages)).await,
                Protocol::Threads => second.open().await,
            });
            contents(protocol, &messages)
        }
        Way::Replayed => {
            let (engine, _) = engine_with_chat(script.facts());
            let mut client = Client::connect(protocol, &engine, 1 << 22);
            client.initialize().await;
            let messages = client.open().await;
            contents(protocol, &messages)
        }
    }
}

/// True from the message on that completes the script's last text, of which the client has a part.
fn completes_last_text(script: &Script, received: &[Value]) -> impl Fn(&Value) -> bool + use<> {
    let whole = script.steps.iter().rev().find_map(|step| match step {
        Step::Fact(Fact::ItemEnded { item }) => item.channel_text(Channel::Text).map(str::len),
        _ => None,
    });
    let length = |message: &Value| {
        let update = &message["params"]["update"];
        let text = update["content"]["text"].as_str().filter(|_| update["messageId"] == "item-5");
        text.map_or(0, str::len)
    };
    let missing = whole.unwrap_or_default() - received.iter().map(length).sum::<usize>();
    let missing = std::cell::Cell::new(missing);
    move |message| {
        missing.set(missing.get().saturating_sub(length(message)));
        missing.get() == 0
    }
}

#[tokio::test]
async fn every_client_of_every_protocol_ends_with_the_same_contents() {
    for seed in 0..crate::scaled(20) as u64 {
        let script = Script::new(seed, GROWTHS);
        for protocol in [Protocol::Eca, Protocol::Draft, Protocol::Acp, Protocol::Threads] {
            let expected = shown(protocol, Way::Replayed, &script).await;
            let bytes: usize = expected.values().map(String::len).sum();
            assert!(bytes > GROWTHS, "{protocol:?} shows the texts");
            for way in WAYS {
                let contents = shown(protocol, way, &script).await;
                let differs = expected.iter().find(|(key, text)| contents.get(*key) != Some(*text));
                let lengths =
                    differs.map(|(key, text)| (key, text.len(), contents.get(key).map(String::len)));
                assert!(
                    contents == expected,
                    "seed {seed}, {protocol:?}, {way:?}: {lengths:?}, keys {:?}",
                    contents.keys()
                );
            }
        }
    }
}

/// The terminal's screen, tall enough for the whole chat.
fn screen(script: &Script, way: Way, random: &mut Random) -> String {
    let theme = Theme::new(Palette::Plain);
    let mut screen = Screen::new(theme, vec!["/w".into()], SessionSettings::default(), Instant::now(), 0);
    let session = SessionId::new("c");
    screen.session = Some(session.clone());
    let half = script.steps.len() / 2;
    let mut number = 0;
    let mut replayed: Vec<Arc<Recorded>> = Vec::new();
    for (at, step) in script.steps.iter().enumerate() {
        let is_replayed = match way {
            Way::Live | Way::Lagging => false,
            Way::Reconnected => at < half,
            Way::Replayed => true,
        };
        if !is_replayed && !replayed.is_empty() {
            for recorded in domain::replay::visible_facts(std::mem::take(&mut replayed)) {
                screen.handle_event(&Event::fact(session.clone(), recorded));
            }
            screen.finish_replay();
        }
        match step {
            Step::Fact(fact) => {
                number += 1;
                let recorded = Arc::new(Recorded { number, at: 0, fact: fact.clone() });
                if is_replayed {
                    replayed.push(recorded);
                } else {
                    screen.handle_event(&Event::fact(session.clone(), recorded));
                }
            }
            // The queue of a client that lags loses deltas, and a replay has none.
            Step::Delta(_) if is_replayed || (matches!(way, Way::Lagging) && random.below(2) == 0) => {}
            Step::Delta(delta) => screen.handle_event(&Event::delta(session.clone(), delta.clone())),
        }
    }
    for recorded in domain::replay::visible_facts(replayed) {
        screen.handle_event(&Event::fact(session.clone(), recorded));
    }
    screen.finish_replay();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 200));
    draw(&mut screen, &mut buffer);
    buffer.content().iter().map(|cell| cell.symbol()).collect()
}

#[test]
fn the_terminal_ends_with_the_same_screen() {
    for seed in 0..crate::scaled(200) as u64 {
        let script = Script::new(seed, 200);
        let mut random = Random(seed);
        let expected = screen(&script, Way::Replayed, &mut random);
        assert!(expected.contains("Question"));
        for way in WAYS {
            assert_eq!(screen(&script, way, &mut random), expected, "seed {seed}, {way:?}");
        }
    }
}
