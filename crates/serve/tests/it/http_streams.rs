//! Editors by plain requests: what is refused, who may read, and how a connection ends.

use std::time::Duration;

use domain::Outcome;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use testkit::fake_engine::Seen;

use crate::editors::{OTHER_TOKEN, Place, TOKEN, WAIT};

/// A client of the test's own, without any logic.
struct Plain {
    http: Client,
    url: String,
}

impl Plain {
    fn new(place: &Place) -> Self {
        tls::install();
        let http = Client::builder().no_proxy().timeout(WAIT).build().unwrap();
        Self { http, url: format!("http://127.0.0.1:{}/acp", place.port) }
    }

    fn request(&self, method: Method, headers: &[(&str, &str)]) -> RequestBuilder {
        let request = self.http.request(method, &self.url).bearer_auth(TOKEN);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Response {
        self.request(Method::POST, headers).json(message).send().await.unwrap()
    }

    /// The id of a new connection.
    async fn connect(&self) -> String {
        let first = call(1, "initialize", json!({"protocolVersion": 1}));
        let answer = self.post(&[], &first).await;
        assert_eq!(answer.status(), 200);
        let id = answer.headers()["acp-connection-id"].to_str().unwrap().to_owned();
        let answer: Value = answer.json().await.unwrap();
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(1), &json!(1)), "{answer}");
        id
    }

    async fn events(&self, headers: &[(&str, &str)]) -> Events {
        let answer = self.request(Method::GET, headers).header("accept", "text/event-stream").send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        Events { answer, text: String::new() }
    }
}

fn call(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

struct Events {
    answer: Response,
    text: String,
}

impl Events {
    /// The next message; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                match data {
                    Some(data) => return serde_json::from_str(&data).ok(),
                    None => continue,
                }
            }
            let piece = tokio::time::timeout(WAIT, self.answer.chunk()).await.expect("in time").unwrap()?;
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the stream goes on");
            if wanted(&message) {
                return message;
            }
        }
    }
}

#[tokio::test]
async fn messages_go_to_the_stream_of_their_session() {
    let mut place = Place::start().await;
    let plain = Plain::new(&place);
    let id = plain.connect().await;
    let own = ("acp-connection-id", id.as_str());
    let mut connection = plain.events(&[own]).await;
    let new = call(2, "session/new", json!({"cwd": "/w", "mcpServers": []}));
    assert_eq!(plain.post(&[own], &new).await.status(), 202);
    let opened = connection.until(|message| message["id"] == 2).await;
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let both = [own, ("acp-session-id", session.as_str())];
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hello"}]});
    let prompt = call(3, "session/prompt", prompt);
    // The header names the session, and the right one.
    assert_eq!(plain.post(&[own], &prompt).await.status(), 400);
    assert_eq!(plain.post(&[own, ("acp-session-id", "other")], &prompt).await.status(), 400);
    assert_eq!(plain.post(&both, &prompt).await.status(), 202);
    let (chat, turn, _) = place.engine.prompt().await;
    place.engine.begin(&chat, turn, 1, "Hello");
    place.engine.say(&chat, turn, 2, "Hi.");
    place.engine.end(&chat, turn, Outcome::Done);
    // What came before somebody read it waits.
    let mut events = plain.events(&both).await;
    let said = events.until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(said.await["params"]["update"]["content"]["text"], "Hi.");
    assert_eq!(events.until(|message| message["id"] == 3).await["result"]["stopReason"], "end_turn");
    // One reader at a time.
    let second =
        plain.request(Method::GET, &both).header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(second.status(), 409);
    // The end of the connection ends its streams and its chats.
    assert_eq!(plain.request(Method::DELETE, &[own]).send().await.unwrap().status(), 202);
    while events.next().await.is_some() {}
    while connection.next().await.is_some() {}
    assert!(matches!(place.engine.next().await, Seen::Detach));
    wait_until_gone(&plain, own).await;
}

/// The list forgets a connection when it has ended.
async fn wait_until_gone(plain: &Plain, own: (&str, &str)) {
    let late = tokio::time::Instant::now() + WAIT;
    while plain.post(&[own], &call(9, "session/list", json!({}))).await.status() != 404 {
        assert!(tokio::time::Instant::now() < late, "the connection is still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_reaches_nobody() {
    let mut place = Place::start().await;
    let plain = Plain::new(&place);
    let id = plain.connect().await;
    let own = ("acp-connection-id", id.as_str());
    let first = call(1, "initialize", json!({"protocolVersion": 1}));
    let list = call(2, "session/list", json!({}));
    for (status, headers, message) in [
        (400, &[own][..], &first),
        (400, &[], &list),
        (404, &[("acp-connection-id", "x")], &list),
        (400, &[own], &json!([list])),
        (400, &[own], &json!("text")),
        (400, &[], &json!({"jsonrpc": "2.0", "method": "initialize"})),
    ] {
        assert_eq!(plain.post(headers, message).await.status(), status, "{message}");
    }
    let send = async |request: RequestBuilder| request.send().await.unwrap().status();
    assert_eq!(send(plain.request(Method::POST, &[own]).body(list.to_string())).await, 415);
    let body = plain.request(Method::POST, &[own, ("content-type", "application/json")]).body("{");
    assert_eq!(send(body).await, 400);
    assert_eq!(send(plain.request(Method::GET, &[own])).await, 426);
    let events =
        |headers: &[(&str, &str)]| plain.request(Method::GET, headers).header("accept", "text/event-stream");
    assert_eq!(send(events(&[])).await, 400);
    assert_eq!(send(events(&[("acp-connection-id", "x")])).await, 404);
    // Without a token, and with that of somebody else.
    let bare = plain.http.post(&plain.url).json(&first);
    assert_eq!(send(bare).await, 401);
    let other = plain.http.post(&plain.url).bearer_auth(OTHER_TOKEN).header(own.0, own.1).json(&list);
    assert_eq!(send(other).await, 404);
    // Nothing of it reached the engine: the first thing it sees is a conversation that is right.
    let mut connection = plain.events(&[own]).await;
    plain.post(&[own], &call(3, "session/new", json!({"cwd": "/w", "mcpServers": []}))).await;
    connection.until(|message| message["id"] == 3).await;
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    // A token that is revoked ends what it has open.
    place.ended.cancel();
    while connection.next().await.is_some() {}
}
