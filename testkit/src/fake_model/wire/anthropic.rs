//! Anthropic Messages as its server streams them.

use serde_json::{Value, json};

use super::{Usage, Wire, event};

#[derive(Default)]
pub(super) struct Anthropic {
    /// As the request names it.
    model: Value,
    index: u32,
    open: Option<&'static str>,
    called: bool,
}

impl Anthropic {
    /// Answers as the model that the request names.
    pub(super) fn of(model: Value) -> Self {
        Self { model, ..Self::default() }
    }

    fn send(&self, data: Value, out: &mut Vec<u8>) {
        event(data["type"].as_str(), &data, out);
    }

    fn open(&mut self, kind: &'static str, block: Value, out: &mut Vec<u8>) {
        if self.open == Some(kind) && kind != "tool_use" {
            return;
        }
        self.close(out);
        self.open = Some(kind);
        self.send(json!({"type": "content_block_start", "index": self.index, "content_block": block}), out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            if kind == "thinking" {
                self.delta(json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"}), out);
            }
            self.send(json!({"type": "content_block_stop", "index": self.index}), out);
            self.index += 1;
        }
    }

    fn delta(&self, delta: Value, out: &mut Vec<u8>) {
        self.send(json!({"type": "content_block_delta", "index": self.index, "delta": delta}), out);
    }
}

impl Wire for Anthropic {
    fn begin(&mut self, usage: Usage, out: &mut Vec<u8>) {
        let usage = json!({
            "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write, "output_tokens": 1,
        });
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.send(json!({"type": "message_start", "message": message}), out);
        self.send(json!({"type": "ping"}), out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open("text", json!({"type": "text", "text": ""}), out);
        self.delta(json!({"type": "text_delta", "text": text}), out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open("thinking", json!({"type": "thinking", "thinking": "", "signature": ""}), out);
        self.delta(json!({"type": "thinking_delta", "thinking": text}), out);
    }

    fn call_begin(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.called = true;
        self.open("tool_use", json!({"type": "tool_use", "id": id, "name": name, "input": {}}), out);
        self.delta(json!({"type": "input_json_delta", "partial_json": ""}), out);
    }

    fn call_arguments(&mut self, text: &str, out: &mut Vec<u8>) {
        self.delta(json!({"type": "input_json_delta", "partial_json": text}), out);
    }

    fn call_end(&mut self, out: &mut Vec<u8>) {
        self.close(out);
    }

    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>) {
        self.send(json!({"type": "error", "error": {"type": kind, "message": message}}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        self.close(out);
        let reason = match reason {
            "stop" if self.called => "tool_use",
            "stop" => "end_turn",
            other => other,
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.send(
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}}),
            out,
        );
        self.send(json!({"type": "message_stop"}), out);
    }
}
