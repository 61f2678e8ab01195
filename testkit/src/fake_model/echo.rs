//! The answer of the fake model without a script: the text of the last user message decides it.
//!
//! | text | answer |
//! |---|---|
//! | `say 20 words` | that many words |
//! | `flood 1000` | that many chunks at full speed |
//! | `think about it` | reasoning, then text |
//! | `call NAME {…}` | a call of a tool; its result is repeated afterwards |
//! | `slow 50` | that many words, one each 100 ms |
//! | `status 429` | that HTTP status, with `retry-after: 1` |
//! | `cut`, `silence`, `overloaded` | a broken, a silent, a failing stream |
//! | anything else | `You said: …` |

use std::time::Duration;

use serde_json::{Value, json};

use super::request::Request;
use super::script::Answer;

pub fn answer(request: &Request) -> Answer {
    let results = request.tool_results();
    if !results.is_empty() {
        return Answer::text(&format!("The tool said: {}", results.join("\n")));
    }
    let text = request.last_user_text();
    let mut words = text.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let count = second.parse::<usize>().ok();
    match (first, count) {
        ("say", Some(count)) => Answer::text(&many_words(count)),
        ("flood", Some(count)) => Answer::flood(count, "word "),
        ("slow", Some(count)) => Answer::text(&many_words(count)).every(Duration::from_millis(100)),
        ("status", Some(status)) => Answer::status(status as u16).header("retry-after", "1"),
        ("think", _) => {
            Answer::new().reasoning("Let me think about this for a moment.").say("I have thought about it.")
        }
        ("call", _) if !second.is_empty() => {
            let arguments = text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok());
            Answer::tool_call("call_1", second, arguments.unwrap_or_else(|| json!({})))
        }
        ("cut", _) => Answer::text("Half of an answer ").cut(),
        ("silence", _) => Answer::text("A few words ").silence(),
        ("overloaded", _) => Answer::new().error("overloaded_error", "Overloaded"),
        _ => Answer::text(&format!("You said: {text}")),
    }
}

/// The usual list of models.
pub(super) fn model_list(names: &[String]) -> Value {
    let data: Vec<_> =
        names.iter().map(|name| json!({ "id": name, "object": "model", "owned_by": "llamacpp" })).collect();
    json!({ "object": "list", "data": data })
}

/// LM Studio's own list of models.
pub(super) fn lmstudio_list(names: &[String]) -> Value {
    let data: Vec<_> =
        names.iter().map(|name| json!({ "id": name, "type": "llm", "max_context_length": 8192 })).collect();
    json!({ "object": "list", "data": data })
}

/// Ollama's list of models.
pub(super) fn ollama_tags(names: &[String]) -> Value {
    let models: Vec<_> = names.iter().map(|name| json!({ "name": name, "model": name, "size": 1 })).collect();
    json!({ "models": models })
}

/// Ollama's description of a model.
pub(super) fn ollama_show() -> Value {
    json!({
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": { "general.architecture": "fake", "fake.context_length": 32768 },
    })
}

fn many_words(count: usize) -> String {
    (1..=count).map(|number| format!("word{number} ")).collect()
}
