//! What a relay remembers of a conversation, to go on with it at a server that knows nothing of it.
//!
//! It must not know a protocol: `Recovery` names the methods. Invariants: what is kept is bounded; an answer of the editor
//! reaches only the server that asked.

use std::collections::HashMap;

use rpc::{Carried, Id};
use serde_json::{Map, Value, json};

/// The ids of the relay's own requests, and of requests of servers after the first one.
const OWN: &str = "dragoman-relay-";
const MOST_CHATS: usize = 64;
/// Requests whose answer names a chat.
const MOST_OPENING: usize = 64;

/// How a conversation begins again.
#[derive(Clone, Copy)]
pub struct Recovery {
    /// The messages that begin a conversation; they are sent again as they were.
    pub greeting: &'static [&'static str],
    /// The requests that name a chat which the editor then has, in their parameters or in their answer.
    pub opens: &'static [&'static str],
    pub closes: &'static [&'static str],
    /// The member that names a chat.
    pub key: &'static str,
    /// The request that opens such a chat again, and the members it needs of the one that opened it.
    pub reopen: &'static str,
    pub members: &'static [&'static str],
}

pub(crate) struct Memory {
    recovery: Recovery,
    greeting: Vec<(String, Value)>,
    /// Parameters that open each chat again; the newest is the last.
    chats: Vec<(String, Value)>,
    opening: HashMap<Id, Value>,
    /// How many servers have forgotten the conversation.
    restarts: u32,
}

impl Memory {
    pub(crate) fn new(recovery: Recovery) -> Self {
        let (greeting, chats) = (Vec::new(), Vec::new());
        Self { recovery, greeting, chats, opening: HashMap::new(), restarts: 0 }
    }

    /// What goes on to the server of a message of the editor.
    pub(crate) fn note_from_editor(&mut self, text: String) -> Option<String> {
        match Carried::of(&text) {
            Carried::Request { id, method, .. } => self.note_request(&text, id, method),
            Carried::Notification { method } if self.recovery.greeting.contains(&method.as_str()) => {
                self.keep_greeting(&text, method);
            }
            Carried::Response { id } if self.restarts > 0 => {
                // The answer to a server that is gone could be taken for one to another question.
                let id = serde_json::from_str::<String>(id.as_json()).ok()?;
                let asked = id.strip_prefix(&self.prefix())?;
                let mut message: Value = serde_json::from_str(&text).ok()?;
                message["id"] = serde_json::from_str(asked).ok()?;
                return Some(message.to_string());
            }
            Carried::Notification { .. } | Carried::Response { .. } | Carried::Other => {}
        }
        Some(text)
    }

    /// What goes on to the editor of a message of the server.
    pub(crate) fn note_from_server(&mut self, text: String) -> Option<String> {
        match Carried::of(&text) {
            Carried::Response { id } if id.as_json().trim_matches('"').starts_with(OWN) => {
                let answer = serde_json::from_str::<Value>(&text).unwrap_or_default();
                if let Some(reason) = answer["error"]["message"].as_str() {
                    tracing::warn!("The conversation could not be begun again as it was: {reason}");
                }
                None
            }
            Carried::Response { id } => {
                if let Some(params) = self.opening.remove(&id)
                    && let Ok(message) = serde_json::from_str::<Value>(&text)
                    && let Some(chat) = message["result"][self.recovery.key].as_str()
                {
                    self.keep_chat(chat.to_owned(), params);
                }
                Some(text)
            }
            Carried::Request { id, .. } if self.restarts > 0 => {
                let mut message: Value = serde_json::from_str(&text).ok()?;
                message["id"] = json!(format!("{}{}", self.prefix(), id.as_json()));
                Some(message.to_string())
            }
            Carried::Request { .. } | Carried::Notification { .. } | Carried::Other => Some(text),
        }
    }

    /// The messages that begin the conversation at another server.
    pub(crate) fn begin_again(&self) -> Vec<String> {
        let mut messages = Vec::new();
        for (at, (_, message)) in self.greeting.iter().enumerate() {
            let mut message = message.clone();
            if message.get("id").is_some() {
                message["id"] = json!(format!("{OWN}greeting-{at}"));
            }
            messages.push(message.to_string());
        }
        for (at, (chat, params)) in self.chats.iter().enumerate() {
            let mut params = params.clone();
            params[self.recovery.key] = json!(chat);
            let id = format!("{OWN}chat-{at}");
            let message =
                json!({"jsonrpc": "2.0", "id": id, "method": self.recovery.reopen, "params": params});
            messages.push(message.to_string());
        }
        messages
    }

    /// From now on everything comes from another server.
    pub(crate) fn note_restart(&mut self) {
        self.restarts += 1;
        self.opening.clear();
    }

    fn prefix(&self) -> String {
        format!("{OWN}{}-", self.restarts)
    }

    fn note_request(&mut self, text: &str, id: Id, method: String) {
        let Recovery { greeting, opens, closes, key, members, .. } = self.recovery;
        let method = method.as_str();
        if greeting.contains(&method) {
            return self.keep_greeting(text, method.to_owned());
        }
        let (is_opening, is_closing) = (opens.contains(&method), closes.contains(&method));
        if !is_opening && !is_closing {
            return;
        }
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let params = &message["params"];
        let chat = params[key].as_str().map(str::to_owned);
        if is_closing {
            return self.chats.retain(|(known, _)| Some(known) != chat.as_ref());
        }
        let kept = members.iter().filter_map(|name| Some(((*name).to_owned(), params.get(*name)?.clone())));
        let kept = Value::Object(kept.collect::<Map<_, _>>());
        if self.opening.len() < MOST_OPENING {
            self.opening.insert(id, kept.clone());
        }
        if let Some(chat) = chat {
            self.keep_chat(chat, kept);
        }
    }

    fn keep_greeting(&mut self, text: &str, method: String) {
        let Ok(message) = serde_json::from_str(text) else { return };
        self.greeting.retain(|(known, _)| *known != method);
        self.greeting.push((method, message));
    }

    fn keep_chat(&mut self, chat: String, params: Value) {
        self.chats.retain(|(known, _)| *known != chat);
        self.chats.push((chat, params));
        if self.chats.len() > MOST_CHATS {
            self.chats.remove(0);
        }
    }
}
