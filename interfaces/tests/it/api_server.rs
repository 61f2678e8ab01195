//! `dragoman mcp-server --spec` from outside: the real binary, a client with and without questions, and a small API over HTTP.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::Home;

const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: &str = "s3cr3t-token-of-the-shop";

const SPEC: &str = r#"
openapi: 3.0.3
info: {title: Shop, version: 1.0.0}
servers: [{url: 'https://shop.example.com'}]
security: [{token: []}]
paths:
  /orders:
    get:
      summary: List orders
      parameters:
        - {name: page, in: query, schema: {type: integer, default: 1}}
        - {name: per_page, in: query, schema: {type: integer}}
        - {name: status, in: query, schema: {type: string, enum: [open, paid]}}
      responses:
        '200': {description: Orders, content: {application/json: {schema: {type: object, properties: {data: {type: array, items: {$ref: '#/components/schemas/Order'}}}}}}}
  /orders/{orderId}:
    parameters: [{name: orderId, in: path, required: true, schema: {type: integer}}]
    patch:
      summary: Change an order
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Order'}}}}
      responses: {'200': {description: Changed}}
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
  schemas:
    Order: {type: object, properties: {id: {type: integer}, status: {type: string, enum: [open, paid]}}}
"#;

/// An API that keeps what it was sent. It answers with the request's own headers, as careless ones do.
struct Api {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Api {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut text = Vec::new();
                let mut part = [0; 4096];
                while !is_whole(&text) {
                    match socket.read(&mut part).await {
                        Ok(count) if count > 0 => text.extend_from_slice(&part[..count]),
                        _ => break,
                    }
                }
                let text = String::from_utf8_lossy(&text).into_owned();
                let body = json!({"data": [{"id": 7, "status": "open"}], "echo": text}).to_string();
                kept.lock().expect("no panic").push(text);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

/// Whether a request came with its whole body.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.trim().parse().ok()).unwrap_or(0) <= body.len()
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// What the person answers to a question, and the questions that came.
    answer: &'static str,
    questions: Vec<String>,
}

impl Client {
    async fn start(home: &Home, api: &Api, capabilities: Value, answer: &'static str) -> Self {
        home.write("work/shop.yaml", SPEC);
        let spec = home.workspace().join("shop.yaml");
        let arguments =
            ["mcp-server", "--spec", &spec.to_string_lossy(), "--server", &api.url, "--auth", "SHOP_TOKEN"]
                .map(str::to_owned);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command: Command = home.command(&words).into();
        command.env("SHOP_TOKEN", SECRET).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut client = Self { child, stdin, lines, next_id: 0, answer, questions: Vec::new() };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        client.request("initialize", hello).await;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.expect("stdin");
    }

    /// The response to a request; questions on the way are answered.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = tokio::time::timeout(WAIT_TIMEOUT, self.lines.next_line()).await;
            let line = line.expect("a message in time").expect("stdout").expect("a message");
            assert!(!line.contains(SECRET), "the secret left the program: {line}");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["method"] == "elicitation/create" {
                self.questions.push(message["params"]["message"].as_str().unwrap_or_default().to_owned());
                let result = json!({"action": self.answer, "content": {}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).await;
            } else if message["id"] == json!(id) {
                return message["result"].clone();
            }
        }
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    async fn end(mut self) {
        drop(self.stdin);
        let ended = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        assert!(ended.expect("it ends").expect("a status").success());
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

fn change() -> Value {
    json!({"operation": "PATCH /orders/{orderId}", "arguments": {"orderId": 7, "body": {"status": "paid"}}})
}

#[tokio::test]
async fn two_tools_find_and_call_every_operation() {
    let (home, api) = (Home::new(), Api::start().await);
    let mut client = Client::start(&home, &api, json!({}), "accept").await;
    let tools = client.request("tools/list", json!({})).await;
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(2), "{tools}");
    let found = client.call("search_operations", json!({"query": "list orders"})).await;
    let first = &found["structuredContent"]["operations"][0];
    assert_eq!(first["operation"], "GET /orders", "{found}");
    assert_eq!(first["arguments"]["properties"]["status"]["enum"], json!(["open", "paid"]));
    let dry = json!({"operation": "GET /orders", "arguments": {"status": "open"}, "dry_run": true});
    let shown = client.call("call_operation", dry).await;
    assert!(text(&shown).contains("/orders?status=open"), "{shown}");
    assert!(api.requests().is_empty(), "a dry run sends nothing");
    let answer = client
        .call("call_operation", json!({"operation": "GET /orders", "arguments": {"status": "open"}}))
        .await;
    let told = &answer["structuredContent"];
    assert_eq!((&told["status"], &told["body"]["data"][0]["id"]), (&json!(200), &json!(7)), "{answer}");
    assert_eq!(told["nextPage"], json!({"status": "open", "page": 2}), "{answer}");
    let sent = api.requests().remove(0);
    assert!(sent.starts_with("GET /orders?status=open ") && sent.contains(SECRET), "{sent}");
    let wrong = json!({"operation": "GET /orders", "arguments": {"status": "closed"}});
    let refused = client.call("call_operation", wrong).await;
    assert!(refused["isError"] == true && text(&refused).contains("one of"), "{refused}");
    assert_eq!(api.requests().len(), 1, "what does not fit is not sent");
    client.end().await;
}

#[tokio::test]
async fn a_write_is_sent_only_after_a_yes_to_the_exact_request() {
    let (home, api) = (Home::new(), Api::start().await);
    // A client that cannot ask: nothing is sent.
    let mut client = Client::start(&home, &api, json!({}), "accept").await;
    let refused = client.call("call_operation", change()).await;
    assert!(refused["isError"] == true && text(&refused).contains("PATCH"), "{refused}");
    client.end().await;
    let mut client = Client::start(&home, &api, json!({"elicitation": {}}), "decline").await;
    let refused = client.call("call_operation", change()).await;
    assert!(refused["isError"] == true && text(&refused).contains("Nothing was sent"), "{refused}");
    let question = client.questions.remove(0);
    assert!(question.contains("/orders/7") && question.contains(r#"{"status":"paid"}"#), "{question}");
    client.end().await;
    assert!(api.requests().is_empty(), "{:?}", api.requests());
    let mut client = Client::start(&home, &api, json!({"elicitation": {}}), "accept").await;
    let done = client.call("call_operation", change()).await;
    assert_eq!(done["structuredContent"]["status"], 200, "{done}");
    let sent = api.requests().remove(0);
    assert!(sent.starts_with("PATCH /orders/7 ") && sent.ends_with(r#"{"status":"paid"}"#), "{sent}");
    client.end().await;
}
