//! Editors over WebSocket: conversations, and everything that is refused. `cuts.rs` has lost connections.

use std::sync::Arc;
use std::time::Duration;

use domain::ask::{Answer, Ask, AskKind};
use domain::command::Catalog;
use domain::item::{ItemKind, Part};
use domain::tool_call::Origin;
use domain::{
    AskId, BoxFuture, CancellationToken, Fact, ItemId, Outcome, SessionId, ToolCall, ToolState, TurnId,
};
use futures_util::{SinkExt as _, StreamExt as _};
use remote::{Address, ConnectError, Opened, Stream, Target};
use rpc::{Framing, Transport};
use serde_json::{Value, json};
use serve::{Endpoint, Entrance, Sockets};
use testkit::FakeEngine;
use testkit::fake_engine::{Seen, item};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use web::{ApiError, Host, Site};

pub(crate) const WAIT: Duration = Duration::from_secs(120);
pub(crate) const TOKEN: &str = "token-of-anna";
pub(crate) const OTHER_TOKEN: &str = "token-of-ben";

/// A served engine for editors.
pub(crate) struct Place {
    pub(crate) engine: FakeEngine,
    pub(crate) port: u16,
    /// Ends what the first token has open.
    pub(crate) ended: CancellationToken,
}

fn eca(engine: domain::link::Engine, transport: Transport) -> BoxFuture<'static, std::io::Result<()>> {
    let (parent, _) = tokio::sync::mpsc::unbounded_channel();
    Box::pin(proto_eca::serve(
        engine,
        transport,
        proto_eca::ServeOptions { parent, is_remote: true, global_config: None },
    ))
}

impl Place {
    pub(crate) async fn start() -> Self {
        Self::start_with(remote::LONGEST_OUTAGE).await
    }

    pub(crate) async fn start_with(kept: Duration) -> Self {
        let catalog = Catalog {
            behaviors: vec!["agent".into()],
            default_model: Some("a/plain".into()),
            default_behavior: "agent".into(),
            ..Catalog::default()
        };
        let engine = FakeEngine::start(catalog);
        let (served, ended) = (engine.engine(), CancellationToken::new());
        let revoked = ended.clone();
        let admit = move |token: String| -> BoxFuture<'static, Result<Entrance, ApiError>> {
            let (engine, ended) = (served.clone(), revoked.clone());
            Box::pin(async move {
                match token.as_str() {
                    TOKEN => Ok(Entrance { caller: "anna".into(), engine, ended }),
                    OTHER_TOKEN => {
                        Ok(Entrance { caller: "ben".into(), engine, ended: CancellationToken::new() })
                    }
                    _ => Err(ApiError::unauthorized("This token is not known.")),
                }
            })
        };
        let sockets = Sockets::new(Box::new(admit), kept);
        let host = Host::bind(None).await.unwrap();
        let port = host.bound().port();
        let endpoints = [
            Endpoint {
                path: "/acp",
                framing: Framing::Newline,
                serve: |engine, transport| Box::pin(proto_acp::serve_remote(engine, transport)),
                has_http: true,
            },
            Endpoint { path: "/eca", framing: Framing::Header, serve: eca, has_http: false },
        ];
        let site = Site {
            name: "chats",
            version: "1",
            assets: &[],
            frame_script: None,
            api: web::no_routes(),
            open: sockets.routes(&endpoints),
            is_client: |path| matches!(path, "/acp" | "/eca"),
            body_limit: serve::body_limit,
        };
        tokio::spawn(host.serve(site, serve::is_open, std::future::pending()));
        Self { engine, port, ended }
    }

    pub(crate) fn target(&self, endpoint: &str, token: &str) -> Target {
        let address = Address::parse(&format!("http://127.0.0.1:{}", self.port), endpoint).unwrap();
        Target { address, tls: None, token: token.to_owned(), program: "test".to_owned() }
    }

    /// Sends a head as it is and gives the first line of the answer.
    async fn head(&self, head: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(2).any(|pair| pair == b"\r\n") {
            let read = tokio::time::timeout(WAIT, stream.read_buf(&mut answer)).await.expect("in time");
            if read.unwrap_or(0) == 0 {
                break;
            }
        }
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }
}

/// A client of the remote transport that is not ours: it cannot resume.
struct Plain {
    socket: WebSocketStream<Box<dyn Stream>>,
    last_id: u64,
}

impl Plain {
    async fn connect(place: &Place) -> Self {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", place.port)).await.unwrap();
        stream.write_all(good_head(place.port).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let end = loop {
            if let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") {
                break end + 4;
            }
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(head.contains("acp-connection-id: "), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "nothing is compressed: {head}");
        let stream: Box<dyn Stream> = Box::new(stream);
        let rest = answer[end..].to_vec();
        let socket = WebSocketStream::from_partially_read(stream, rest, Role::Client, None).await;
        Self { socket, last_id: 0 }
    }

    async fn send(&mut self, value: &Value) {
        self.socket.send(Message::Text(value.to_string().into())).await.unwrap();
    }

    /// The next message; `None`: the server has ended the connection.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(WAIT, self.socket.next()).await.expect("a message in time") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the server is there");
            if fits(&message) {
                return message;
            }
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})).await;
        self.last_id
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.call(method, params).await;
        let response = self.until(|it| it["id"] == json!(id) && it.get("method").is_none()).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }
}

fn good_head(port: u16) -> String {
    format!(
        "GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    )
}

fn waiting_call(ask: AskId) -> ToolCall {
    ToolCall {
        call_id: "1".into(),
        name: "write_file".into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: Some(json!({"path": "/w/a"})),
        state: ToolState::Waiting { ask },
        summary: "Writing a".into(),
        details: None,
        manual_approval: true,
        live_output: String::new(),
        result: vec![Part::text("ok")],
        error: false,
        millis: 3,
        locations: Vec::new(),
        provider: None,
    }
}

/// The facts of a call that waits for a person; its item and its question have this number.
pub(crate) fn ask(turn: TurnId, number: u64) -> [Fact; 2] {
    let kind = AskKind::Approval { reason: "r".into(), keys: Vec::new() };
    let ask = Ask { id: AskId(number), turn, item: Some(ItemId(number)), kind };
    let call = ItemKind::ToolCall(Box::new(waiting_call(AskId(number))));
    [Fact::ItemStarted { item: item(number, turn, call) }, Fact::AskRaised { ask }]
}

/// From `initialize` to the end of a turn with an approval, as any client of the remote transport has it.
#[tokio::test]
async fn a_conversation_with_an_approval() {
    let mut place = Place::start().await;
    let mut client = Plain::connect(&place).await;
    let offered = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "auth": {"terminal": true}});
    let result =
        client.request("initialize", json!({"protocolVersion": 1, "clientCapabilities": offered})).await;
    assert_eq!(result["protocolVersion"], 1);
    // The files and terminals of the workspace are where the server is, and so are its logins.
    assert!(!result.to_string().contains("--login"), "{result}");
    let abilities = place.engine.abilities();
    assert!(!abilities.read_text && !abilities.write_text && !abilities.terminal, "{abilities:?}");
    let session =
        client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await["sessionId"].clone();
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hello"}]});
    let prompted = client.call("session/prompt", prompt).await;
    let (id, turn, _) = place.engine.prompt().await;
    place.engine.begin(&id, turn, 1, "Hello");
    for fact in ask(turn, 2) {
        place.engine.fact(&id, fact);
    }
    let asked = client.until(|it| it["method"] == "session/request_permission").await;
    let allowed = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": allowed})).await;
    let Seen::Answer { answer, .. } = place.engine.next().await else { panic!("an answer is expected") };
    assert_eq!(answer, Answer::Allow { remember: false });
    place.engine.say(&id, turn, 3, "Grüße 🌍");
    let said = client.until(|it| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk").await;
    assert_eq!(said["params"]["update"]["content"]["text"], "Grüße 🌍");
    place.engine.end(&id, turn, Outcome::Done);
    let response = client.until(|it| it["id"] == json!(prompted) && it.get("method").is_none()).await;
    assert_eq!(response["result"]["stopReason"], "end_turn");
    // The end of the connection is the end of its front-end.
    drop(client);
    assert!(matches!(place.engine.next().await, Seen::Detach));
}

/// A head that is not right in every point reaches no protocol.
#[tokio::test]
async fn heads_that_are_refused() {
    let mut place = Place::start().await;
    let good = good_head(place.port);
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let port = place.port;
    let change = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    let host = format!("Host: 127.0.0.1:{port}");
    let cases = [
        ("401", change(&format!("{authorization}\r\n"), "")),
        ("401", change(&authorization, "Authorization: Bearer wrong")),
        ("401", change(&authorization, "Authorization: Bearer ")),
        ("401", change(&authorization, &format!("Authorization: Basic {TOKEN}"))),
        ("401", change(&authorization, &format!("Authorization: {TOKEN}"))),
        ("401", change(&authorization, &format!("{authorization}\r\n{authorization}"))),
        ("401", change(&authorization, &format!("Authorization: Bearer {}", "x".repeat(600)))),
        ("401", change(&format!("{authorization}\r\n"), &format!("Cookie: token={TOKEN}\r\n"))),
        (
            "401",
            change("GET /acp ", &format!("GET /acp?token={TOKEN} "))
                .replace(&format!("{authorization}\r\n"), ""),
        ),
        ("401", change(&format!("{authorization}\r\n"), &format!("Sec-WebSocket-Protocol: {TOKEN}\r\n"))),
        ("403", change(&authorization, &format!("{authorization}\r\nOrigin: https://example.com"))),
        ("403", change(&authorization, &format!("{authorization}\r\nOrigin: null"))),
        ("403", change(&authorization, &format!("{authorization}\r\nOrigin: http://localhost:{port}"))),
        ("403", change(&authorization, &format!("{authorization}\r\nSec-Fetch-Site: cross-site"))),
        ("403", change(&authorization, &format!("{authorization}\r\nSec-Fetch-Site: none"))),
        ("421", change(&host, "Host: example.com")),
        ("421", change(&host, &format!("Host: localhost:{port}"))),
        ("421", change(&host, "Host: 127.0.0.1")),
        ("400", change(&host, &format!("{host}\r\nHost: example.com"))),
        ("401", change("GET /acp ", "GET /acp/x ")),
        ("401", change("GET /acp ", "GET /acpx ")),
        ("404", change("GET /acp ", "GET //acp ")),
        ("404", change("GET /acp ", "GET /%61cp ")),
        ("404", change("GET /acp ", "GET /x/../acp ")),
        ("415", change("GET /acp ", "PUT /acp ")),
        ("400", change("GET /acp ", "DELETE /acp ")),
        ("426", change("Upgrade: websocket", "Upgrade: h2c")),
        ("426", change("Connection: keep-alive, Upgrade", "Connection: close")),
        ("426", change("Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8")),
        ("400", change("dGhlIHNhbXBsZSBub25jZQ==", "dGhl")),
        ("400", change("dGhlIHNhbXBsZSBub25jZQ==", "")),
        ("400", change(&authorization, &format!("{authorization}\r\nDragoman-Resume: many"))),
        ("400", change(&authorization, &format!("{authorization}\r\nDragoman-Resume: -1"))),
        ("404", change(&authorization, &format!("{authorization}\r\nAcp-Connection-Id: x"))),
        (
            "404",
            change(&authorization, &format!("{authorization}\r\nAcp-Connection-Id: x\r\nDragoman-Resume: 0")),
        ),
        ("400", change(&authorization, &format!("{authorization}\r\nContent-Length: 5"))),
    ];
    for (status, head) in cases {
        let answer = place.head(&head).await;
        assert!(answer.contains(&format!(" {status} ")), "{status}: {answer}\n{head}");
    }
    // Nothing of it reached the engine: the first thing it sees is a conversation that is right.
    let mut client = Plain::connect(&place).await;
    client.request("initialize", json!({"protocolVersion": 1})).await;
    client.request("session/new", json!({"cwd": "/w", "mcpServers": []})).await;
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
}

fn frame(is_final: bool, opcode: OpCode, bytes: Vec<u8>) -> Message {
    let header = FrameHeader { is_final, opcode, mask: Some([1, 2, 3, 4]), ..FrameHeader::default() };
    Message::Frame(Frame::from_payload(header, Bytes::from(bytes)))
}

/// Frames that no client of the protocol sends: the connection ends, or nothing happens.
#[tokio::test]
async fn frames_that_are_refused() {
    let mut place = Place::start().await;
    let text = OpCode::Data(Data::Text);
    let endless: Vec<Message> = std::iter::once(frame(false, text, vec![b' '; 1 << 20]))
        .chain((0..20).map(|_| frame(false, OpCode::Data(Data::Continue), vec![b' '; 1 << 20])))
        .collect();
    let unfinished = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}});
    let cases: Vec<(&str, Vec<Message>)> = vec![
        ("invalid UTF-8", vec![frame(true, text, vec![0xff, 0xfe, b'{'])]),
        ("a message that is too large", vec![frame(true, text, vec![b' '; 17 << 20])]),
        ("fragments without end", endless),
        ("a fragment of nothing", vec![frame(true, OpCode::Data(Data::Continue), b"{}".to_vec())]),
        ("two messages in one", vec![frame(false, text, b"{".to_vec()), frame(true, text, b"}".to_vec())]),
        ("a reserved kind", vec![frame(true, OpCode::Data(Data::Reserved(5)), b"{}".to_vec())]),
        (
            "a long ping",
            vec![frame(
                true,
                OpCode::Control(tokio_tungstenite::tungstenite::protocol::frame::coding::Control::Ping),
                vec![b'x'; 126],
            )],
        ),
    ];
    for (name, frames) in cases {
        let mut client = Plain::connect(&place).await;
        client.request("initialize", json!({"protocolVersion": 1})).await;
        for frame in frames {
            // The server may have ended the connection already.
            if client.socket.send(frame).await.is_err() {
                break;
            }
        }
        assert!(client.next().await.is_none(), "{name}: the connection ends");
        assert!(matches!(place.engine.next().await, Seen::Detach), "{name}: and nothing else happens");
    }
    // A message whose end never comes is not read, and binary messages are ignored, whatever they hold.
    let mut client = Plain::connect(&place).await;
    client.request("initialize", json!({"protocolVersion": 1})).await;
    let bytes = unfinished.to_string().into_bytes();
    client.socket.send(Message::Binary(bytes.clone().into())).await.unwrap();
    client.socket.send(Message::Ping("received=99".into())).await.unwrap();
    client.request("session/list", json!({})).await;
    client.socket.send(frame(false, text, bytes)).await.unwrap();
    drop(client);
    assert!(matches!(place.engine.next().await, Seen::Detach));
    // Broken JSON is answered and ends nothing.
    let mut client = Plain::connect(&place).await;
    client.socket.send(Message::Text("{]\n}".into())).await.unwrap();
    assert_eq!(client.next().await.unwrap()["error"]["code"], -32700);
    client.request("initialize", json!({"protocolVersion": 1})).await;
}

/// A count that cannot be, another caller's connection, another path: none is resumed.
#[tokio::test]
async fn connections_of_others_are_not_resumed() {
    let place = Place::start().await;
    let target = place.target("acp", TOKEN);
    let Opened { id: Some(id), peer_received: Some(0), stream, .. } = target.connect(None).await.unwrap()
    else {
        panic!("a connection that can be resumed")
    };
    let lost = |result| matches!(result, Err(ConnectError::Lost));
    assert!(lost(place.target("acp", OTHER_TOKEN).connect(Some((&id, 0))).await));
    assert!(lost(place.target("eca", TOKEN).connect(Some((&id, 0))).await));
    assert!(lost(target.connect(Some(("unknown", 0))).await));
    assert!(matches!(
        place.target("acp", "wrong").connect(Some((&id, 0))).await,
        Err(ConnectError::Refused(_))
    ));
    drop(stream);
    // The owner can; a count of messages that were never sent ends the connection for good.
    let again = target.connect(Some((&id, 0))).await.unwrap();
    assert_eq!(again.peer_received, Some(0));
    let mut wrong = target.connect(Some((&id, 7))).await.unwrap();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(WAIT, wrong.stream.read_to_end(&mut bytes)).await.expect("it ends");
    assert!(read.is_err() || !bytes.windows(9).any(|it| it == b"\"jsonrpc\""));
    let gone = async {
        while target.connect(Some((&id, 0))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.expect("the connection is forgotten");
}

/// A token that is revoked: both protocols end with the reason, also where nothing is connected at that moment.
#[tokio::test]
async fn a_revoked_token_ends_the_connection_with_a_reason() {
    let mut place = Place::start().await;
    let mut client = Plain::connect(&place).await;
    client.request("initialize", json!({"protocolVersion": 1})).await;
    let target = place.target("eca", TOKEN);
    let opened = target.connect(None).await.unwrap();
    let mut other =
        WebSocketStream::from_partially_read(opened.stream, opened.already_read, Role::Client, None).await;
    place.ended.cancel();
    for socket in [&mut client.socket, &mut other] {
        let reason = loop {
            match tokio::time::timeout(WAIT, socket.next()).await.expect("it ends") {
                Some(Ok(Message::Close(frame))) => break frame.unwrap(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(u16::from(reason.code), 1008);
        assert_eq!(reason.reason.as_str(), serve::ENDED);
    }
    assert!(matches!(place.engine.next().await, Seen::Detach));
    let id = opened.id.unwrap();
    let gone = async {
        while target.connect(Some((&id, 0))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.expect("it cannot be resumed");
}

/// A lost connection is kept for a bounded time, and so is the number of connections.
#[tokio::test]
async fn what_is_kept_is_bounded() {
    let mut place = Place::start_with(Duration::from_millis(50)).await;
    let target = place.target("acp", TOKEN);
    let opened = target.connect(None).await.unwrap();
    let id = opened.id.clone().unwrap();
    let mut socket =
        WebSocketStream::from_partially_read(opened.stream, opened.already_read, Role::Client, None).await;
    let initialize =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    socket.send(Message::Text(initialize.to_string().into())).await.unwrap();
    socket.next().await.unwrap().unwrap();
    drop(socket);
    assert!(matches!(place.engine.next().await, Seen::Detach), "it ends without its client");
    let gone = async {
        while target.connect(Some((&id, 1))).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.expect("the connection is forgotten");
    let mut open = Vec::new();
    let refused = loop {
        match target.connect(None).await {
            Ok(opened) => open.push(opened),
            Err(error) => break error,
        }
    };
    assert_eq!(open.len(), 16);
    assert!(matches!(&refused, ConnectError::Unreachable(told) if told.contains("Too many")), "{refused:?}");
    // Others are not kept out by it.
    place.target("acp", OTHER_TOKEN).connect(None).await.unwrap();
}

pub(crate) type Shared<T> = Arc<std::sync::Mutex<T>>;

pub(crate) fn session_of(value: &Value) -> SessionId {
    SessionId::new(value.as_str().unwrap())
}
