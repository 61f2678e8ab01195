//! The web page as a window of a chat: `dragoman serve` over HTTP, as the page uses it, without a browser.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::client::Home;

const WAIT: Duration = Duration::from_secs(60);

pub(crate) struct WebWindow {
    _child: Child,
    port: u16,
    cookie: String,
    secret: String,
    events: BufReader<TcpStream>,
    /// The messages so far: `user …`, `agent …`, by item.
    shown: Vec<(String, String)>,
}

impl WebWindow {
    /// `None` in a program without the page, which `make` builds.
    pub(crate) async fn open(home: &Home, config: &Value, chat: &str) -> Option<Self> {
        let mut command = home.command(&["serve", "--no-open", "--json"]);
        command.env("DRAGOMAN_CONFIG", config.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let mut child = command.kill_on_drop(true).spawn().expect("it starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        tokio::time::timeout(WAIT, stdout.read_line(&mut line)).await.expect("in time").expect("a line");
        if line.is_empty() {
            let mut told = String::new();
            let _ = child.stderr.take().expect("stderr").read_to_string(&mut told).await;
            assert!(told.contains("without the page") || told.contains("has no `serve`"), "{told}");
            return None;
        }
        let told: Value = serde_json::from_str(&line).expect("JSON");
        let port = u16::try_from(told["port"].as_u64().expect("a port")).expect("a port");
        let token = told["url"].as_str().and_then(|url| url.split("#token=").nth(1)).expect("a token");
        let answer = exchange(port, "POST", "/session", "", &json!({"token": token})).await;
        let head = answer.to_ascii_lowercase();
        let from = head.find("set-cookie: ").expect("a cookie") + "set-cookie: ".len();
        let cookie = answer[from..].split(';').next().unwrap_or_default().to_owned();
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let secret =
            serde_json::from_str::<Value>(body).expect("JSON")["secret"].as_str().expect("text").to_owned();
        let proof = format!("Cookie: {cookie}\r\nX-Dragoman-Page: {secret}\r\n");
        let path = format!("/api/chats/{chat}/events");
        let stream = request(port, "GET", &path, &proof, None).await;
        Some(Self { _child: child, port, cookie, secret, events: BufReader::new(stream), shown: Vec::new() })
    }

    pub(crate) async fn prompt(&mut self, chat: &str, text: &str) {
        let proof = format!("Cookie: {}\r\nX-Dragoman-Page: {}\r\n", self.cookie, self.secret);
        let path = format!("/api/chats/{chat}/prompt");
        let answer = exchange(self.port, "POST", &path, &proof, &json!({"text": text})).await;
        assert!(answer.contains(" 202 "), "{answer}");
    }

    /// Reads until this is the end of the last message.
    pub(crate) async fn until_ended(&mut self, text: &str) {
        while !self.shown.last().is_some_and(|(_, last)| last.ends_with(text)) {
            let (name, data) = self.next().await;
            self.apply(&name, &data);
        }
    }

    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.iter().map(|(_, text)| text.clone()).collect()
    }

    async fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(WAIT, self.events.read_line(&mut line));
            assert!(read.await.expect("an event in time").expect("a line") > 0, "the stream has ended");
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim_end().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (name, serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    fn apply(&mut self, name: &str, data: &Value) {
        if name == "snapshot" {
            self.shown.clear();
            for entry in data["entries"].as_array().expect("a list") {
                self.apply(entry["event"].as_str().unwrap_or_default(), &entry["data"]);
            }
        }
        let item = data["item"].as_str().unwrap_or_default();
        let text = data["text"].as_str().unwrap_or_default();
        let known = self.shown.iter_mut().find(|(id, _)| id == item);
        match (name, data["type"].as_str(), known) {
            ("item", Some(role @ ("user" | "agent")), known) => {
                let text = format!("{role} {text}");
                match known {
                    Some((_, known)) => *known = text,
                    None => self.shown.push((item.to_owned(), text)),
                }
            }
            ("grow", _, Some((_, known))) if data["channel"] == "text" => known.push_str(text),
            _ => {}
        }
    }
}

/// Version 1.0, so that the body ends with the connection and has no chunks.
async fn request(port: u16, method: &str, path: &str, proof: &str, body: Option<&Value>) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let body = body.map(Value::to_string);
    let length = body.as_ref().map_or_else(String::new, |body| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    });
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n{proof}{length}\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("it reads");
    stream.write_all(body.unwrap_or_default().as_bytes()).await.expect("it reads");
    stream
}

async fn exchange(port: u16, method: &str, path: &str, proof: &str, body: &Value) -> String {
    let mut stream = request(port, method, path, proof, Some(body)).await;
    let mut answer = String::new();
    tokio::time::timeout(WAIT, stream.read_to_string(&mut answer)).await.expect("in time").expect("text");
    answer
}
