//! A captured request, and questions that tests ask of it in every format.

use serde_json::Value;

/// The API formats, chosen by path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Responses,
    Chat,
    Anthropic,
}

impl Format {
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else {
            None
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub format: Format,
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The messages, by whatever name the format has for them.
    pub fn messages(&self) -> &[Value] {
        let list = match self.format {
            Format::Responses => &self.body["input"],
            Format::Chat | Format::Anthropic => &self.body["messages"],
        };
        list.as_array().map_or(&[], Vec::as_slice)
    }

    /// All text of the instructions.
    pub fn system(&self) -> String {
        match self.format {
            Format::Responses => text(&self.body["instructions"]),
            Format::Anthropic => text(&self.body["system"]),
            Format::Chat => self
                .messages()
                .iter()
                .filter(|message| message["role"] == "system")
                .map(|message| text(&message["content"]))
                .collect(),
        }
    }

    /// The names of the offered tools.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools
            .filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()))
            .map(str::to_owned)
            .collect()
    }

    /// What the user said last.
    pub fn last_user_text(&self) -> String {
        let said = |message: &&Value| message["role"] == "user" && !text(&message["content"]).is_empty();
        self.messages().iter().rev().find(said).map(|message| text(&message["content"])).unwrap_or_default()
    }

    /// The results of calls at the end of the request, in order: what the model is to go on with.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for message in self.messages().iter().rev() {
            match self.format {
                Format::Responses if message["type"] == "function_call_output" => {
                    results.push(text(&message["output"]));
                }
                Format::Chat if message["role"] == "tool" => results.push(text(&message["content"])),
                Format::Anthropic if message["role"] == "user" => {
                    let blocks = message["content"].as_array().into_iter().flatten();
                    let mut found: Vec<_> = blocks
                        .filter(|block| block["type"] == "tool_result")
                        .map(|block| text(&block["content"]))
                        .collect();
                    if found.is_empty() {
                        break;
                    }
                    found.reverse();
                    results.extend(found);
                }
                _ => break,
            }
        }
        results.reverse();
        results
    }
}

/// All text of a content: a string, or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
