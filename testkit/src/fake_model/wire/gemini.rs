//! Gemini as Google's server streams it: whole parts, signatures on calls.

use serde_json::{Value, json};

use super::{Usage, Wire, event};

#[derive(Default)]
pub(super) struct Gemini {
    call: Option<(String, String, String)>,
    calls: u32,
}

impl Gemini {
    fn part(&self, part: Value, out: &mut Vec<u8>) {
        event(
            None,
            &json!({"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]}),
            out,
        );
    }
}

impl Wire for Gemini {
    fn begin(&mut self, _usage: Usage, _out: &mut Vec<u8>) {}

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.part(json!({"text": text}), out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.part(json!({"text": text, "thought": true}), out);
    }

    fn call_begin(&mut self, id: &str, name: &str, _out: &mut Vec<u8>) {
        self.call = Some((id.to_owned(), name.to_owned(), String::new()));
    }

    fn call_arguments(&mut self, text: &str, _out: &mut Vec<u8>) {
        if let Some((_, _, arguments)) = &mut self.call {
            arguments.push_str(text);
        }
    }

    fn call_end(&mut self, out: &mut Vec<u8>) {
        let Some((id, name, arguments)) = self.call.take() else { return };
        let args: Value = serde_json::from_str(&arguments).unwrap_or(json!({}));
        let mut part = json!({"functionCall": {"id": id, "name": name, "args": args}});
        if self.calls == 0 {
            part["thoughtSignature"] = "c2lnbmF0dXJl".into();
        }
        self.calls += 1;
        self.part(part, out);
    }

    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>) {
        let status = if kind.contains("overloaded") { "UNAVAILABLE" } else { kind };
        event(None, &json!({"error": {"code": 503, "message": message, "status": status}}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        let reason = match reason {
            "max_tokens" => "MAX_TOKENS",
            "refusal" => "SAFETY",
            _ => "STOP",
        };
        let usage = json!({
            "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
        });
        let candidate =
            json!({"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason});
        event(None, &json!({"candidates": [candidate], "usageMetadata": usage}), out);
    }
}
