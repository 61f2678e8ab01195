//! The floor of the benchmarks: the least a program can do between an editor and a model. It answers `initialize`,
//! and for a prompt it opens one connection to the model, reads the stream and writes each text as one message.
//! No journal, no settings, no tools; plain threads and blocking IO.

#![allow(clippy::disallowed_methods, reason = "a program of its own, for measurements")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

fn main() {
    let model = std::env::var("MODEL").expect("MODEL=host:port");
    let mut input = BufReader::new(std::io::stdin().lock());
    while let Some(message) = read(&mut input) {
        let id = field(&message, "\"id\":").unwrap_or("0").to_owned();
        if message.contains("\"initialize\"") {
            write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"chatWelcomeMessage\":\"\"}}}}"));
        } else if message.contains("\"chat/prompt\"") {
            write(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"chatId\":\"c\",\"model\":\"m\",\"status\":\"prompting\"}}}}"
            ));
            let prompt = text_field(&message, "\"message\":\"").unwrap_or_default();
            // As many requests as a chat with that many rounds of tool calls makes.
            let rounds = prompt.strip_prefix("tools ").and_then(|it| it.parse().ok()).unwrap_or(0);
            for _ in 0..=rounds {
                stream(&model, prompt);
            }
            write(
                "{\"jsonrpc\":\"2.0\",\"method\":\"chat/contentReceived\",\"params\":{\"chatId\":\"c\",\"role\":\"system\",\"content\":{\"type\":\"progress\",\"state\":\"finished\"}}}",
            );
        }
    }
}

fn stream(model: &str, prompt: &str) {
    let mut socket = TcpStream::connect(model).expect("the model");
    socket.set_nodelay(true).expect("no delay");
    let body = format!(
        "{{\"model\":\"m1\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{prompt}\"}}]}}"
    );
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {model}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).expect("the request");
    let mut reader = BufReader::with_capacity(64 << 10, socket);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.contains("[DONE]") {
            return;
        }
        if let Some(text) = text_field(&line, "\"content\":\"").filter(|text| !text.is_empty()) {
            write(&format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"chat/contentReceived\",\"params\":{{\"chatId\":\"c\",\"role\":\"assistant\",\"content\":{{\"type\":\"text\",\"text\":\"{}\"}}}}}}",
                text
            ));
        }
        line.clear();
    }
}

fn read(input: &mut impl BufRead) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            header => length = header.strip_prefix("Content-Length: ")?.parse().ok()?,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

fn write(body: &str) {
    let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut out = std::io::stdout().lock();
    out.write_all(message.as_bytes()).expect("stdout");
    out.flush().expect("stdout");
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = &text[text.find(name)? + name.len()..];
    Some(rest[..rest.find([',', '}'])?].trim())
}

/// The text behind `name`, where it has no escapes.
fn text_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = &text[text.find(name)? + name.len()..];
    Some(&rest[..rest.find('"')?])
}
