//! Ollama's own chat: JSON lines.

use serde_json::{Value, json};

use super::{Usage, Wire};

#[derive(Default)]
pub(super) struct Ollama {
    call: Option<(String, String)>,
}

impl Ollama {
    fn send(&self, line: Value, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{line}\n").as_bytes());
    }

    fn message(&self, mut message: Value, out: &mut Vec<u8>) {
        message["role"] = "assistant".into();
        self.send(json!({"model": "fake-model", "message": message, "done": false}), out);
    }
}

impl Wire for Ollama {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn begin(&mut self, _usage: Usage, _out: &mut Vec<u8>) {}

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.message(json!({"content": text}), out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.message(json!({"content": "", "thinking": text}), out);
    }

    fn call_begin(&mut self, _id: &str, name: &str, _out: &mut Vec<u8>) {
        self.call = Some((name.to_owned(), String::new()));
    }

    fn call_arguments(&mut self, text: &str, _out: &mut Vec<u8>) {
        if let Some((_, arguments)) = &mut self.call {
            arguments.push_str(text);
        }
    }

    fn call_end(&mut self, out: &mut Vec<u8>) {
        let Some((name, arguments)) = self.call.take() else { return };
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or(json!({}));
        let call = json!({"function": {"name": name, "arguments": arguments}});
        self.message(json!({"content": "", "tool_calls": [call]}), out);
    }

    fn error(&mut self, _kind: &str, message: &str, out: &mut Vec<u8>) {
        self.send(json!({"error": message}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        let reason = if reason == "max_tokens" { "length" } else { "stop" };
        self.send(
            json!({
                "model": "fake-model", "message": {"role": "assistant", "content": ""}, "done": true,
                "done_reason": reason, "eval_count": usage.output,
                "prompt_eval_count": usage.input + usage.cache_read + usage.cache_write,
            }),
            out,
        );
    }
}
