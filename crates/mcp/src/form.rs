//! `elicitation/create`: a server asks the user something while one of its calls runs.
//!
//! Invariant: it is answered exactly once, and no form outlives the call it belongs to. Without a running call
//! there is no user to ask, and the request is declined.

use std::sync::Arc;

use domain::ask::Choice;
use domain::{Answer, AskKind};
use rpc::{Fault, Params, Responder};
use serde_json::{Map, Value, json};

use crate::calls::{ActiveCall, Calls};
use crate::text::sanitize;
use crate::wire::Elicitation;

const MAX_MESSAGE_LENGTH: usize = 4 << 10;
const MAX_ADDRESS_LENGTH: usize = 2 << 10;
/// The answer of a user who opened an address.
const OPENED: &str = "I have opened it";
const MAX_SCHEMA_BYTES: usize = 32 << 10;

/// Answers at once or from a task of its own. Called within the runtime.
pub(crate) fn handle_elicitation(server: &str, calls: &Calls, params: Params<'_>, responder: Responder) {
    let parsed = params
        .decode()
        .and_then(|elicitation| parse_form(server, elicitation).map_err(Fault::invalid_params));
    let form = match parsed {
        Ok(form) => form,
        Err(fault) => return responder.fail(fault),
    };
    match calls.latest().filter(|call| call.open_form()) {
        Some(call) => drop(tokio::spawn(show_form(call, form, responder))),
        None => responder.succeed(&json!({"action": "decline"})),
    }
}

/// The question of a form, or why there is none.
pub(crate) fn parse_form(server: &str, elicitation: Elicitation) -> Result<AskKind, String> {
    match elicitation.mode.as_deref() {
        None | Some("form") => {}
        Some("url") => return parse_address(server, &elicitation),
        Some(_) => return Err("only forms and addresses are supported".to_owned()),
    }
    let schema = elicitation.requested_schema.ok_or("requestedSchema is missing")?;
    if schema.get().len() > MAX_SCHEMA_BYTES {
        return Err("requestedSchema is too large".to_owned());
    }
    let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
    let message = sanitize(&elicitation.message, MAX_MESSAGE_LENGTH);
    Ok(AskKind::Form { text: format!("The MCP server {server} asks: {message}"), schema })
}

/// A server asks the user to open an address. It is shown whole and never opened by itself.
fn parse_address(server: &str, elicitation: &Elicitation) -> Result<AskKind, String> {
    let url = elicitation.url.as_deref().unwrap_or_default();
    let is_web = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
    if !is_web || url.len() > MAX_ADDRESS_LENGTH || url.contains(char::is_control) {
        return Err("the address is no http:// or https:// address".to_owned());
    }
    let message = sanitize(&elicitation.message, MAX_MESSAGE_LENGTH);
    let choice = |label: &str| Choice { label: label.to_owned(), description: None };
    Ok(AskKind::Question {
        text: format!("The MCP server {server} asks you to open this address: {url}\n{message}"),
        options: vec![choice(OPENED), choice("Decline")],
        freeform: false,
        url: Some(url.to_owned()),
    })
}

async fn show_form(call: Arc<ActiveCall>, form: AskKind, responder: Responder) {
    let cancelled = json!({"action": "cancel"});
    let answer = tokio::select! {
        answer = ask_user(&call, form) => answer,
        () = responder.cancelled() => cancelled,
    };
    call.close_form();
    responder.succeed(&answer);
}

/// Shows an open form of a call and closes it; the answer is as the protocol has it.
pub(crate) async fn ask_user(call: &ActiveCall, form: AskKind) -> Value {
    let schema = match &form {
        AskKind::Form { schema, .. } => schema.clone(),
        AskKind::Approval { .. } | AskKind::Question { .. } => Value::Null,
    };
    let answer = tokio::select! {
        answer = call.context.ask(form) => answer,
        () = call.finished.cancelled() => Answer::Cancelled,
    };
    call.close_form();
    match answer {
        Answer::Form { data: Value::Object(data) } => {
            json!({"action": "accept", "content": complete(&schema, data)})
        }
        Answer::Text { text } if text == OPENED => json!({"action": "accept"}),
        Answer::Cancelled => json!({"action": "cancel"}),
        Answer::Allow { .. } | Answer::Deny { .. } | Answer::Text { .. } | Answer::Form { .. } => {
            json!({"action": "decline"})
        }
    }
}

/// The answer as the schema wants it: in the order of its fields, with their defaults where the user gave nothing, with
/// the values of choices in place of their shown names, and a list where several can be chosen.
fn complete(schema: &Value, mut given: Map<String, Value>) -> Map<String, Value> {
    let mut content = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let value = given.shift_remove(name).filter(|value| !value.is_null());
        if let Some(value) = value.or_else(|| field.get("default").cloned()) {
            content.insert(name.clone(), choice_value(field, value));
        }
    }
    // Members that the schema does not name are the user's, and stay.
    content.extend(given);
    content
}

fn choice_value(field: &Value, value: Value) -> Value {
    if field["type"] == "array" {
        let values = match value {
            Value::Array(values) => values,
            one @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                vec![one]
            }
        };
        return values.into_iter().map(|value| choice_value(&field["items"], value)).collect();
    }
    let Some(shown) = value.as_str() else { return value };
    if field["enum"].as_array().is_some_and(|values| values.contains(&value)) {
        return value;
    }
    let named = field["enumNames"].as_array().and_then(|names| {
        let at = names.iter().position(|name| name == shown)?;
        field["enum"].get(at).cloned()
    });
    let titled = || {
        let options = field["oneOf"].as_array().or(field["anyOf"].as_array())?;
        options.iter().find(|option| option["title"] == shown).and_then(|option| option.get("const").cloned())
    };
    named.or_else(titled).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_whole_and_only_if_it_is_one() {
        let asked = |url: &str| {
            let elicitation = json!({"mode": "url", "message": "Sign in", "url": url});
            parse_form("web", serde_json::from_value(elicitation).unwrap())
        };
        let Ok(AskKind::Question { text, url, .. }) = asked("https://id.example.com/a?b=c#d") else {
            panic!("a question")
        };
        assert_eq!(url.as_deref(), Some("https://id.example.com/a?b=c#d"));
        assert!(text.contains("https://id.example.com/a?b=c#d") && text.contains("Sign in"), "{text}");
        for other in ["", "file:///etc/passwd", "javascript:alert(1)", "https://h/\u{1b}[2J"] {
            assert!(asked(other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_answer_has_the_order_defaults_and_values_of_its_schema() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"},
            "age": {"type": "integer", "default": 7},
            "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]}},
            "note": {"type": "string"},
        }});
        let given = json!({"tags": "Second", "extra": 1, "size": "Large", "color": "Green", "age": null});
        let Value::Object(given) = given else { panic!("an object") };
        let content = Value::Object(complete(&schema, given));
        assert_eq!(
            content.to_string(),
            r#"{"name":"Ada","age":7,"color":"g","size":"l","tags":["b"],"extra":1}"#
        );
        let given = json!({"color": "r", "tags": ["First", "b"]});
        let Value::Object(given) = given else { panic!("an object") };
        let content = complete(&schema, given);
        assert_eq!((&content["color"], &content["tags"]), (&json!("r"), &json!(["a", "b"])));
    }
}
