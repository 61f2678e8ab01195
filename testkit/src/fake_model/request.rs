//! A captured request, and questions that tests ask of it in every format.

use serde_json::Value;

/// The API formats, chosen by path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Responses,
    Chat,
    Anthropic,
    Gemini,
    Ollama,
    Bedrock,
}

impl Format {
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        let ends = [
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            // Completions of code, in whatever form a test gives its answers.
            ("/completions", Self::Chat),
            ("/infill", Self::Chat),
            ("/api/generate", Self::Ollama),
            ("/messages", Self::Anthropic),
            (":streamGenerateContent", Self::Gemini),
            ("/api/chat", Self::Ollama),
            ("/converse-stream", Self::Bedrock),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, format)| format)
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
        let in_path = |before: &str, after: &str| {
            let rest = self.path.split_once(before).map_or("", |(_, rest)| rest);
            let end = rest.find(after).unwrap_or(rest.len());
            &self.path[self.path.len() - rest.len()..][..end]
        };
        match self.format {
            Format::Gemini => in_path("/models/", ":"),
            Format::Bedrock => in_path("/model/", "/"),
            _ => self.body["model"].as_str().unwrap_or_default(),
        }
    }

    /// The messages, by whatever name the format has for them.
    pub fn messages(&self) -> &[Value] {
        let list = match self.format {
            Format::Responses => &self.body["input"],
            Format::Gemini => &self.body["contents"],
            _ => &self.body["messages"],
        };
        list.as_array().map_or(&[], Vec::as_slice)
    }

    /// All text of the instructions.
    pub fn system(&self) -> String {
        match self.format {
            Format::Responses => text(&self.body["instructions"]),
            Format::Anthropic | Format::Bedrock => text(&self.body["system"]),
            Format::Gemini => text(&self.body["systemInstruction"]["parts"]),
            Format::Chat | Format::Ollama => self
                .messages()
                .iter()
                .filter(|message| message["role"] == "system")
                .map(|message| text(&message["content"]))
                .collect(),
        }
    }

    /// The names of the offered tools.
    pub fn tools(&self) -> Vec<String> {
        let list = match self.format {
            Format::Gemini => &self.body["tools"][0]["functionDeclarations"],
            Format::Bedrock => &self.body["toolConfig"]["tools"],
            _ => &self.body["tools"],
        };
        let name = |tool: &Value| {
            [&tool["name"], &tool["function"]["name"], &tool["toolSpec"]["name"]]
                .into_iter()
                .find_map(|name| name.as_str().map(str::to_owned))
        };
        list.as_array().into_iter().flatten().filter_map(name).collect()
    }

    /// What the user said last.
    pub fn last_user_text(&self) -> String {
        let mut said = self.messages().iter().rev().filter(|message| message["role"] == "user").map(content);
        said.find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The results of calls at the end of the request, in order: what the model is to go on with.
    pub fn tool_results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for message in self.messages().iter().rev() {
            let mut found = self.results_of(message);
            if found.is_empty() {
                break;
            }
            found.reverse();
            results.extend(found);
        }
        results.reverse();
        results
    }

    fn results_of(&self, message: &Value) -> Vec<String> {
        let parts = message["content"].as_array().or(message["parts"].as_array()).into_iter().flatten();
        match self.format {
            Format::Responses if message["type"] == "function_call_output" => vec![text(&message["output"])],
            Format::Chat | Format::Ollama if message["role"] == "tool" => vec![text(&message["content"])],
            Format::Anthropic => parts
                .filter(|block| block["type"] == "tool_result")
                .map(|block| text(&block["content"]))
                .collect(),
            Format::Gemini => parts
                .filter_map(|part| part["functionResponse"]["response"].as_object())
                .filter_map(|response| response.values().next().map(text))
                .collect(),
            Format::Bedrock => parts
                .filter(|block| block["toolResult"].is_object())
                .map(|block| text(&block["toolResult"]["content"]))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn content(message: &Value) -> String {
    let parts = &message["parts"];
    text(if parts.is_null() { &message["content"] } else { parts })
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
