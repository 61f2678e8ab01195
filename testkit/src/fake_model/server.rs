//! A small HTTP/1.1 server: reads whole requests, writes chunked streams, notices clients that go away.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::request::{Format, Request};
use super::script::{Answer, Step};
use super::wire::{self, Wire};
use super::{FakeModelState, echo, locked};

pub(super) async fn serve(listener: TcpListener, state: Arc<FakeModelState>) {
    loop {
        if let Ok((socket, _)) = listener.accept().await {
            let state = state.clone();
            *locked(&state.connections) += 1;
            tokio::spawn(async move {
                let _ = socket.set_nodelay(true);
                let _ = Connection::new(socket, state).run().await;
            });
        }
    }
}

struct Connection {
    input: OwnedReadHalf,
    output: OwnedWriteHalf,
    buffer: Vec<u8>,
    state: Arc<FakeModelState>,
}

/// The head of a request.
struct Head {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

/// How an answer ended.
enum Fate {
    Whole,
    Broken,
}

impl Connection {
    fn new(socket: TcpStream, state: Arc<FakeModelState>) -> Self {
        let (input, output) = socket.into_split();
        Self { input, output, buffer: Vec::new(), state }
    }

    async fn run(mut self) -> io::Result<()> {
        while let Some(head) = self.head().await? {
            let body = self.body(&head).await?;
            match self.respond(head, body).await? {
                Fate::Whole => {}
                Fate::Broken => return Ok(()),
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.input.read_buf(&mut self.buffer).await
    }

    async fn head(&mut self) -> io::Result<Option<Head>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.fill().await? == 0 {
                return Ok(None);
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let text = String::from_utf8_lossy(&head);
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Ok(Some(Head { method: method.to_owned(), path: path.to_owned(), headers }))
    }

    async fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        let length = head.headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0);
        while self.buffer.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn respond(&mut self, head: Head, body: Vec<u8>) -> io::Result<Fate> {
        let Some(format) = Format::of_path(&head.path).filter(|_| head.method == "POST") else {
            return self.list(&head).await;
        };
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let Head { method, path, headers } = head;
        let request = Request { format, method, path, headers, body };
        let answer = self.state.answer(&request);
        if let Some(status) = answer.status {
            let body =
                answer.body.clone().unwrap_or_else(|| wire::error_body(status).to_string().into_bytes());
            return self.plain(status, &answer.headers, &body).await;
        }
        let fate = self.stream(answer, wire::wire(&request)).await;
        if fate.is_err() {
            self.state.hung_up();
        }
        fate
    }

    /// The lists of models that clients ask for.
    async fn list(&mut self, head: &Head) -> io::Result<Fate> {
        let models = locked(&self.state.models).clone();
        let path = head.path.split('?').next().unwrap_or_default();
        if head.method == "HEAD" {
            // A body would be taken for the next answer.
            return self.plain(404, &[], b"").await;
        }
        if path.ends_with("/api/v0/models") {
            return self.plain(200, &[], echo::lmstudio_list(&models).to_string().as_bytes()).await;
        }
        if head.method == "GET" && path.ends_with("/models") {
            return self.plain(200, &[], echo::model_list(&models).to_string().as_bytes()).await;
        }
        if path.ends_with("/api/tags") {
            return self.plain(200, &[], echo::ollama_tags(&models).to_string().as_bytes()).await;
        }
        if path.ends_with("/api/show") {
            return self.plain(200, &[], echo::ollama_show().to_string().as_bytes()).await;
        }
        let body = format!("{{\"error\":{{\"message\":\"The fake model has no {} {path}\"}}}}", head.method);
        self.plain(404, &[], body.as_bytes()).await
    }

    async fn plain(&mut self, status: u16, headers: &[(String, String)], body: &[u8]) -> io::Result<Fate> {
        let mut out = format!("HTTP/1.1 {status} Fake\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name == "content-type") {
            out.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        out.extend_from_slice(body);
        self.output.write_all(&out).await?;
        Ok(Fate::Whole)
    }

    async fn stream(&mut self, answer: Answer, mut wire: Box<dyn Wire>) -> io::Result<Fate> {
        let mut head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n",
            wire.content_type()
        );
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.output.write_all(head.as_bytes()).await?;
        let usage = answer.usage.unwrap_or_default();
        let mut out = Vec::new();
        let raw = matches!(answer.steps.first(), Some(Step::Raw(_)));
        if !raw {
            wire.begin(usage, &mut out);
        }
        let mut reason = "stop".to_owned();
        for step in &answer.steps {
            if let Step::Stop(why) = step {
                reason.clone_from(why);
            }
            if let Some(fate) = self.step(step, &answer, wire.as_mut(), &mut out).await? {
                return Ok(fate);
            }
        }
        if !raw {
            wire.end(&reason, usage, &mut out);
        }
        self.send(&mut out, answer.split).await?;
        self.output.write_all(b"0\r\n\r\n").await?;
        Ok(Fate::Whole)
    }

    /// Does one step; a fate ends the answer.
    async fn step(
        &mut self,
        step: &Step,
        answer: &Answer,
        wire: &mut dyn Wire,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<Fate>> {
        match step {
            Step::Text(chunks) => {
                for chunk in chunks {
                    wire.text(chunk, out);
                    self.paced(out, answer).await?;
                }
            }
            Step::Reasoning(chunks) => {
                for chunk in chunks {
                    wire.reasoning(chunk, out);
                    self.paced(out, answer).await?;
                }
            }
            Step::Call { id, name, arguments } => {
                wire.call_begin(id, name, out);
                for piece in arguments {
                    wire.call_arguments(piece, out);
                    self.paced(out, answer).await?;
                }
                wire.call_end(out);
            }
            Step::Flood { count, text } => self.flood(*count, text, wire, out).await?,
            Step::Stamps(count) => {
                for _ in 0..*count {
                    wire.text(&format!("<{}>", super::clock()), out);
                    self.paced(out, answer).await?;
                }
            }
            Step::Delay(pause) => {
                self.send(out, answer.split).await?;
                self.unless_gone(tokio::time::sleep(*pause)).await?;
            }
            Step::Gate(gate) => {
                self.send(out, answer.split).await?;
                let gate = gate.clone();
                self.unless_gone(async move { gate.pass().await }).await?;
            }
            Step::Error { kind, message } => {
                wire.error(kind, message, out);
                self.send(out, answer.split).await?;
                self.output.write_all(b"0\r\n\r\n").await?;
                return Ok(Some(Fate::Whole));
            }
            Step::Raw(bytes) => {
                out.extend_from_slice(bytes);
                self.send(out, answer.split).await?;
            }
            Step::Silence => {
                self.send(out, answer.split).await?;
                self.unless_gone(std::future::pending::<()>()).await?;
            }
            Step::Cut => {
                self.send(out, answer.split).await?;
                return Ok(Some(Fate::Broken));
            }
            Step::Stop(_) => {}
        }
        Ok(None)
    }

    async fn paced(&mut self, out: &mut Vec<u8>, answer: &Answer) -> io::Result<()> {
        self.send(out, answer.split).await?;
        match answer.every {
            Some(pause) => self.unless_gone(tokio::time::sleep(pause)).await,
            None => Ok(()),
        }
    }

    /// Each chunk is an HTTP chunk of its own, as real servers send them, but written by the hundred.
    async fn flood(
        &mut self,
        count: usize,
        text: &str,
        wire: &mut dyn Wire,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        wire.text(text, out);
        self.send(out, None).await?;
        let mut event = Vec::new();
        wire.text(text, &mut event);
        let mut chunk = format!("{:x}\r\n", event.len()).into_bytes();
        chunk.extend_from_slice(&event);
        chunk.extend_from_slice(b"\r\n");
        let batch = chunk.repeat(256);
        let mut left = count.saturating_sub(1);
        while left > 0 {
            let now = left.min(256);
            self.output.write_all(&batch[..now * chunk.len()]).await?;
            left -= now;
        }
        Ok(())
    }

    /// Writes what is ready as one HTTP chunk, or as many small ones.
    async fn send(&mut self, out: &mut Vec<u8>, split: Option<usize>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        for piece in out.chunks(split.unwrap_or(out.len())) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.output.write_all(&chunk).await?;
            if split.is_some() {
                tokio::task::yield_now().await;
            }
        }
        out.clear();
        Ok(())
    }

    /// Waits, but not for a client that went away.
    async fn unless_gone(&mut self, wait: impl Future<Output = ()>) -> io::Result<()> {
        tokio::select! {
            () = wait => Ok(()),
            read = self.input.read_buf(&mut self.buffer) => match read {
                Ok(0) | Err(_) => Err(io::ErrorKind::ConnectionReset.into()),
                // A client that sends more is only early; a long enough pause keeps the answer slow.
                Ok(_) => { tokio::time::sleep(Duration::from_millis(1)).await; Ok(()) }
            },
        }
    }
}
