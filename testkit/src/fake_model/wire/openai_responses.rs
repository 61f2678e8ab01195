//! OpenAI Responses as its server streams them.

use serde_json::{Value, json};

use super::{Usage, Wire, event};

#[derive(Default)]
pub(super) struct Responses {
    index: u32,
    open: Option<Open>,
    sequence: u32,
}

struct Open {
    kind: &'static str,
    item: Value,
    text: String,
}

impl Responses {
    fn send(&mut self, kind: &str, mut data: Value, out: &mut Vec<u8>) {
        data["type"] = kind.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        event(Some(kind), &data, out);
    }

    fn open(&mut self, kind: &'static str, item: Value, out: &mut Vec<u8>) {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) && kind != "function_call" {
            return;
        }
        self.close(out);
        self.send("response.output_item.added", json!({"output_index": self.index, "item": item}), out);
        self.open = Some(Open { kind, item, text: String::new() });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(mut open) = self.open.take() else { return };
        match open.kind {
            "message" => open.item["content"] = json!([{"type": "output_text", "text": open.text}]),
            "reasoning" => {
                open.item["summary"] = json!([{"type": "summary_text", "text": open.text}]);
                open.item["encrypted_content"] = "ZW5jcnlwdGVk".into();
            }
            _ => open.item["arguments"] = open.text.into(),
        }
        self.send("response.output_item.done", json!({"output_index": self.index, "item": open.item}), out);
        self.index += 1;
    }

    fn delta(&mut self, kind: &str, text: &str, out: &mut Vec<u8>) {
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        let data =
            json!({"item_id": "item_1", "output_index": self.index, "content_index": 0, "delta": text});
        self.send(kind, data, out);
    }
}

impl Wire for Responses {
    fn begin(&mut self, _usage: Usage, out: &mut Vec<u8>) {
        self.send("response.created", json!({"response": {"id": "resp_1", "status": "in_progress"}}), out);
        self.send(
            "response.in_progress",
            json!({"response": {"id": "resp_1", "status": "in_progress"}}),
            out,
        );
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open(
            "message",
            json!({"id": "msg_1", "type": "message", "role": "assistant", "content": []}),
            out,
        );
        self.delta("response.output_text.delta", text, out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open("reasoning", json!({"id": "rs_1", "type": "reasoning", "summary": []}), out);
        self.delta("response.reasoning_summary_text.delta", text, out);
    }

    fn call_begin(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        let item =
            json!({"id": "fc_1", "type": "function_call", "call_id": id, "name": name, "arguments": ""});
        self.open("function_call", item, out);
    }

    fn call_arguments(&mut self, text: &str, out: &mut Vec<u8>) {
        self.delta("response.function_call_arguments.delta", text, out);
    }

    fn call_end(&mut self, out: &mut Vec<u8>) {
        self.close(out);
    }

    fn error(&mut self, kind: &str, message: &str, out: &mut Vec<u8>) {
        let response =
            json!({"id": "resp_1", "status": "failed", "error": {"code": kind, "message": message}});
        self.send("response.failed", json!({"response": response}), out);
    }

    fn end(&mut self, reason: &str, usage: Usage, out: &mut Vec<u8>) {
        self.close(out);
        let input = usage.input + usage.cache_read + usage.cache_write;
        let usage = json!({
            "input_tokens": input, "output_tokens": usage.output, "total_tokens": input + usage.output,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens_details": {"reasoning_tokens": 0},
        });
        let (kind, details) = match reason {
            "max_tokens" => ("response.incomplete", json!({"reason": "max_output_tokens"})),
            "refusal" => ("response.incomplete", json!({"reason": "content_filter"})),
            _ => ("response.completed", Value::Null),
        };
        let response = json!({"id": "resp_1", "usage": usage, "incomplete_details": details});
        self.send(kind, json!({"response": response}), out);
    }
}
