//! An editor that speaks ACP: buffers, a person who answers, terminals; everything it was asked and told is kept.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use serde_json::{Value, json};

use crate::client::Home;
use crate::lines::LineClient;

pub(crate) struct Editor {
    pub client: LineClient,
    pub session: Value,
    /// Unsaved text by path; other files are read from the disk.
    pub buffers: HashMap<String, String>,
    /// What the editor makes of a text that it writes.
    pub formatter: fn(&str) -> String,
    /// What the person chooses, in order; then nothing more is expected.
    pub choices: VecDeque<&'static str>,
    pub forms: VecDeque<Value>,
    /// Methods and parameters of what the agent asked.
    pub asked: Vec<(String, Value)>,
    pub updates: Vec<Value>,
}

/// Everything that a client can offer.
pub(crate) fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "elicitation": {"form": {}},
        "session": {"configOptions": {"boolean": {}}},
    })
}

impl Editor {
    pub(crate) async fn start(home: &Home, config: &Value, capabilities: Value) -> Self {
        let (client, session) = LineClient::acp(home, config, capabilities).await;
        Self::with(client, session)
    }

    pub(crate) fn with(client: LineClient, session: Value) -> Self {
        Self {
            client,
            session,
            buffers: HashMap::new(),
            formatter: str::to_owned,
            choices: VecDeque::new(),
            forms: VecDeque::new(),
            asked: Vec::new(),
            updates: Vec::new(),
        }
    }

    /// The stop reason of a prompt of words.
    pub(crate) async fn say(&mut self, words: &str) -> Value {
        self.prompt(json!([{"type": "text", "text": words}])).await["result"]["stopReason"].clone()
    }

    /// The response to a prompt.
    pub(crate) async fn prompt(&mut self, blocks: Value) -> Value {
        let id = self.begin(blocks).await;
        self.until_response(id).await
    }

    pub(crate) async fn begin(&mut self, blocks: Value) -> u64 {
        self.updates.clear();
        self.client.call("session/prompt", json!({"sessionId": self.session, "prompt": blocks})).await
    }

    pub(crate) async fn until_response(&mut self, id: u64) -> Value {
        self.until(|message| message.get("method").is_none() && message["id"] == json!(id)).await
    }

    /// Answers what is asked until a message comes that fits; that one is not answered.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.client.next().await.expect("the agent is there");
            if fits(&message) {
                return message;
            }
            match (message["method"].as_str(), message.get("id")) {
                (Some("session/update"), _) => self.updates.push(message["params"]["update"].clone()),
                (Some(method), Some(_)) => self.take(&message, method).await,
                _ => {}
            }
        }
    }

    async fn take(&mut self, message: &Value, method: &str) {
        let params = &message["params"];
        self.asked.push((method.to_owned(), params.clone()));
        let path = params["path"].as_str().unwrap_or_default();
        let result = match method {
            "session/request_permission" => {
                let option = self.choices.pop_front().unwrap_or_else(|| panic!("not expected: {message}"));
                json!({"outcome": {"outcome": "selected", "optionId": option}})
            }
            "elicitation/create" => {
                self.forms.pop_front().unwrap_or_else(|| panic!("not expected: {message}"))
            }
            "fs/read_text_file" => match self.buffers.get(path) {
                Some(text) => json!({"content": text}),
                None => match std::fs::read_to_string(path) {
                    Ok(text) => json!({"content": text}),
                    Err(_) => return self.client.refuse(message, -32002).await,
                },
            },
            "fs/write_text_file" => {
                let text = (self.formatter)(params["content"].as_str().expect("text"));
                std::fs::write(path, &text).expect("it is written");
                self.buffers.insert(path.to_owned(), text);
                Value::Null
            }
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 3}),
            "terminal/output" => json!({"output": "from the terminal\n", "truncated": false}),
            "terminal/kill" | "terminal/release" => json!({}),
            other => panic!("nobody expects {other}"),
        };
        self.client.answer(message, result).await;
    }

    pub(crate) fn buffer(&mut self, path: &Path, text: &str) {
        self.buffers.insert(path.to_str().expect("UTF-8").to_owned(), text.to_owned());
    }

    /// How often the agent asked for something.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked.iter().filter(|(asked, _)| asked == method).count()
    }

    /// The text of all updates of a kind.
    pub(crate) fn text(&self, kind: &str) -> String {
        let of_kind = self.updates.iter().filter(|it| it["sessionUpdate"] == kind);
        of_kind.filter_map(|it| it["content"]["text"].as_str()).collect()
    }

    /// The last value of a field of the tool calls.
    pub(crate) fn last(&self, field: &str) -> Value {
        let calls = self.updates.iter().rev().filter(|it| it.get("toolCallId").is_some());
        calls.filter_map(|it| it.get(field)).next().cloned().unwrap_or_default()
    }
}
