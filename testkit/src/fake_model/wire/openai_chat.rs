//! Chat Completions as OpenAI and compatible servers stream them.

use serde_json::{Value, json};

use super::{Usage, Wire, event};

#[derive(Default)]
pub(super) struct Chat {
    calls: u32,
}

impl Chat {
    fn send(&self, delta: Value, reason: Option<&str>, out: &mut Vec<u8>) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        event(
            None,
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}),
            out,
        );
    }
}

impl Wire for Chat {
    fn begin(&mut self, _usage: Usage, out: &mut Vec<u8>) {
        self.send(json!({"role": "assistant", "content": ""}), None, out);
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.send(json!({"content": text}), None, out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.send(json!({"reasoning_content": text}), None, out);
    }

    fn call_begin(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        let function = json!({"name": name, "arguments": ""});
        let call = json!({"index": self.calls, "id": id, "type": "function", "function": function});
        self.send(json!({"tool_calls": [call]}), None, out);
    }

    fn call_arguments(&mut self, text: &str, out: &mut Vec<u8>) {
        let call = json!({"index": self.calls, "function": {"arguments": text}});
        self.send(json!({"tool_calls": [call]}), None, out);
    }

    fn call_end(&mut self, _out: &mut Vec<u8>) {
        self.calls += 1;
    }

    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>) {
        event(None, &json!({"error": {"type": kind, "message": message}}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        let reason = match reason {
            "stop" if self.calls > 0 => "tool_calls",
            "max_tokens" => "length",
            "refusal" => "content_filter",
            other => other,
        };
        self.send(json!({}), Some(reason), out);
        let prompt = usage.input + usage.cache_read + usage.cache_write;
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        });
        event(None, &json!({"id": "chatcmpl-1", "choices": [], "usage": usage}), out);
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}
