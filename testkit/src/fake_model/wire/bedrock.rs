//! Bedrock's Converse stream: AWS frames.

use serde_json::{Value, json};

use super::{Usage, Wire};

#[derive(Default)]
pub(crate) struct Bedrock {
    index: u32,
    open: Option<&'static str>,
    called: bool,
}

impl Bedrock {
    fn open(&mut self, kind: &'static str, out: &mut Vec<u8>) {
        if self.open != Some(kind) || kind == "call" {
            self.close(out);
            self.open = Some(kind);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            if kind == "reasoning" {
                self.delta(json!({"reasoningContent": {"signature": "c2lnbmF0dXJl"}}), out);
            }
            frame("event", "contentBlockStop", &json!({"contentBlockIndex": self.index}), out);
            self.index += 1;
        }
    }

    fn delta(&self, delta: Value, out: &mut Vec<u8>) {
        frame("event", "contentBlockDelta", &json!({"contentBlockIndex": self.index, "delta": delta}), out);
    }
}

impl Wire for Bedrock {
    fn content_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn begin(&mut self, _usage: Usage, out: &mut Vec<u8>) {
        frame("event", "messageStart", &json!({"role": "assistant"}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open("text", out);
        self.delta(json!({"text": text}), out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open("reasoning", out);
        self.delta(json!({"reasoningContent": {"text": text}}), out);
    }

    fn call_begin(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.called = true;
        self.open("call", out);
        let start = json!({"toolUse": {"toolUseId": id, "name": name}});
        frame("event", "contentBlockStart", &json!({"contentBlockIndex": self.index, "start": start}), out);
    }

    fn call_arguments(&mut self, text: &str, out: &mut Vec<u8>) {
        self.delta(json!({"toolUse": {"input": text}}), out);
    }

    fn call_end(&mut self, out: &mut Vec<u8>) {
        self.close(out);
    }

    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>) {
        let kind = if kind.contains("overloaded") { "serviceUnavailableException" } else { kind };
        frame("exception", kind, &json!({"message": message}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        self.close(out);
        let reason = match reason {
            "stop" if self.called => "tool_use",
            "stop" => "end_turn",
            "refusal" => "content_filtered",
            other => other,
        };
        frame("event", "messageStop", &json!({"stopReason": reason}), out);
        let usage = json!({
            "inputTokens": usage.input, "outputTokens": usage.output,
            "cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write,
        });
        frame("event", "metadata", &json!({"usage": usage, "metrics": {"latencyMs": 1}}), out);
    }
}

fn frame(message: &str, kind: &str, payload: &Value, out: &mut Vec<u8>) {
    write_frame(message, kind, &payload.to_string(), out);
}

/// One frame: lengths, checksum, headers, payload, checksum.
pub(crate) fn write_frame(message: &str, kind: &str, payload: &str, out: &mut Vec<u8>) {
    let mut headers = Vec::new();
    let kind_header = if message == "event" { ":event-type" } else { ":exception-type" };
    for (name, value) in
        [(kind_header, kind), (":content-type", "application/json"), (":message-type", message)]
    {
        headers.push(name.len() as u8);
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let start = out.len();
    out.extend_from_slice(&((16 + headers.len() + payload.len()) as u32).to_be_bytes());
    out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    let prelude = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&prelude.to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    let whole = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&whole.to_be_bytes());
}
