//! A form as a row of questions, because the protocol knows questions alone: one for each field, in their order.
//!
//! Invariant: an answer that does not fit its field is asked again, three times at most; a cancelled question cancels the form.

use domain::Answer;
use serde_json::{Map, Value};

use crate::wire::notifications::QuestionOption;

/// More fields are not asked for one by one.
const MAX_FIELDS: usize = 20;
const MAX_ATTEMPTS: usize = 3;
const SKIP: &str = "(leave it out)";

/// Asks each field; `asking` sends one question and gives the text of its answer.
pub(crate) async fn ask<F>(
    text: &str,
    schema: &Value,
    asking: impl Fn(String, Vec<QuestionOption>, bool) -> F,
) -> Answer
where
    F: Future<Output = Option<String>>,
{
    let Some(fields) = schema["properties"].as_object().filter(|fields| fields.len() <= MAX_FIELDS) else {
        return Answer::Cancelled;
    };
    if fields.is_empty() {
        let options = vec![option("Accept"), option("Decline")];
        let accepted = asking(text.to_owned(), options, false).await;
        return match accepted.as_deref() {
            Some("Accept") => Answer::Form { data: Value::Object(Map::new()) },
            _ => Answer::Cancelled,
        };
    }
    let mut data = Map::new();
    for (name, field) in fields {
        let is_required = schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
        let mut problem = String::new();
        let mut attempts = 0;
        let value = loop {
            let question = format!("{text}\n{}{problem}", describe(name, field));
            let options = options(field, is_required);
            let Some(answer) = asking(question, options, !is_closed(field)).await else {
                return Answer::Cancelled;
            };
            attempts += 1;
            match read(field, is_required, &answer) {
                Ok(value) => break value,
                Err(_) if attempts == MAX_ATTEMPTS => return Answer::Cancelled,
                Err(wrong) => problem = format!("\n{wrong}"),
            }
        };
        if let Some(value) = value {
            data.insert(name.clone(), value);
        }
    }
    Answer::Form { data: Value::Object(data) }
}

fn option(label: &str) -> QuestionOption {
    QuestionOption { label: label.to_owned(), description: None }
}

fn describe(name: &str, field: &Value) -> String {
    let title = field["title"].as_str().unwrap_or(name);
    let description = field["description"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
    let default = match &field["default"] {
        Value::Null => String::new(),
        Value::String(text) => format!(" (default: {text})"),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            format!(" (default: {other})")
        }
    };
    let several = if field["type"] == "array" { " (several, separated by commas)" } else { "" };
    format!("{title}{description}{several}{default}")
}

/// The shown names of a field's choices; empty where any text is possible.
fn choices(field: &Value) -> Vec<String> {
    let source = if field["type"] == "array" { &field["items"] } else { field };
    let texts = |value: &Value| {
        let texts = value.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        Some(texts.collect::<Vec<_>>())
    };
    let titled = source["oneOf"].as_array().or(source["anyOf"].as_array());
    let titles = titled.map(|all| {
        let title = |it: &Value| it["title"].as_str().or(it["const"].as_str()).map(str::to_owned);
        all.iter().filter_map(title).collect()
    });
    titles.or_else(|| texts(&source["enumNames"])).or_else(|| texts(&source["enum"])).unwrap_or_default()
}

fn options(field: &Value, is_required: bool) -> Vec<QuestionOption> {
    let mut labels = if field["type"] == "boolean" {
        vec!["yes".to_owned(), "no".to_owned()]
    } else if field["type"] == "array" {
        // Several can be chosen, so they are typed.
        Vec::new()
    } else {
        choices(field)
    };
    if !is_required {
        labels.push(SKIP.to_owned());
    }
    labels.iter().map(|label| option(label)).collect()
}

/// Only one of the choices is an answer.
fn is_closed(field: &Value) -> bool {
    field["type"] == "boolean" || field["type"] != "array" && !choices(field).is_empty()
}

/// The value of an answer; `None`: the field is left out, so that its default holds.
fn read(field: &Value, is_required: bool, answer: &str) -> Result<Option<Value>, String> {
    let answer = answer.trim();
    if answer == SKIP || answer.is_empty() && (!is_required || !field["default"].is_null()) {
        return Ok(None);
    }
    let value = match field["type"].as_str() {
        Some("boolean") => match answer.to_lowercase().as_str() {
            "yes" | "true" | "y" => Value::Bool(true),
            "no" | "false" | "n" => Value::Bool(false),
            _ => return Err("Answer yes or no.".to_owned()),
        },
        Some("integer") => answer.parse::<i64>().map_err(|_| "This is no whole number.".to_owned())?.into(),
        Some("number") => answer.parse::<f64>().map_err(|_| "This is no number.".to_owned())?.into(),
        Some("array") => answer
            .split(',')
            .map(|part| known(field, part.trim()))
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array)?,
        _ => known(field, answer)?,
    };
    Ok(Some(value))
}

fn known(field: &Value, answer: &str) -> Result<Value, String> {
    let choices = choices(field);
    if choices.is_empty() || choices.iter().any(|choice| choice == answer) {
        return Ok(answer.into());
    }
    Err(format!("Choose from {}.", choices.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Mutex;

    async fn asked(schema: Value, answers: &[Option<&str>]) -> (Answer, Vec<String>) {
        let (answers, questions) = (Mutex::new(answers.iter()), Mutex::new(Vec::new()));
        let answer = ask("Who?", &schema, |question, _, _| {
            questions.lock().unwrap().push(question);
            let answer = answers.lock().unwrap().next().copied().flatten().map(str::to_owned);
            async move { answer }
        })
        .await;
        (answer, questions.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_form_is_asked_field_by_field() {
        let schema = json!({"required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name"},
            "age": {"type": "integer", "default": 7},
            "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "sure": {"type": "boolean"},
        }});
        let answers = [Some("Ada"), Some("seven"), Some(SKIP), Some("Green"), Some("a, b"), Some("yes")];
        let (answer, questions) = asked(schema.clone(), &answers).await;
        let data = json!({"name": "Ada", "color": "Green", "tags": ["a", "b"], "sure": true});
        assert_eq!(answer, Answer::Form { data });
        assert_eq!(questions.len(), 6);
        assert!(questions[2].contains("no whole number"), "{questions:?}");
        let (answer, _) = asked(schema.clone(), &[Some("Ada"), None]).await;
        assert_eq!(answer, Answer::Cancelled);
        let (answer, questions) =
            asked(schema, &[Some("Ada"), Some("x"), Some("x"), Some("x"), Some("x")]).await;
        assert_eq!((answer, questions.len()), (Answer::Cancelled, 4));
    }
}
