//! An API as a tool: finding operations by words, the arguments that each takes, and the exact request of a call.
//!
//! Pure: sending is the caller's. Owns the form of arguments: one object with a member for each parameter, and `body`.
//! Invariant: a request is built only from arguments that fit the specification; a part of a path is never empty.

mod arguments;
mod encode;
mod request;

pub use arguments::{example, schema};
pub use request::{Credential, Request, request};

use crate::plan::words::{singular, split};
use crate::plan::{Input, InputPlace, Operation, Plan};
use serde_json::{Value, json};

/// The name of the body among the arguments.
pub const BODY: &str = "body";
const MAX_NOTE: usize = 240;

/// The operation with this signature, or with this title where only one has it.
pub fn find(plan: &Plan, name: &str) -> Option<usize> {
    let name = name.trim();
    let by_signature = plan.operations.iter().position(|operation| operation.signature == name);
    let same = |operation: &Operation| operation.title.eq_ignore_ascii_case(name);
    let mut titled =
        (0..).zip(&plan.operations).filter(|(_, operation)| same(operation)).map(|(index, _)| index);
    by_signature.or_else(|| titled.next().filter(|_| titled.next().is_none()))
}

/// The operations that fit the words best, best first. Without words: the first ones.
pub fn search(plan: &Plan, query: &str, limit: usize) -> Vec<usize> {
    let words: Vec<String> = plain(query);
    let mut found: Vec<(usize, usize)> = (0..)
        .zip(&plan.operations)
        .map(|(index, operation)| (score(plan, index, operation, &words), index))
        .filter(|(score, _)| *score > 0 || words.is_empty())
        .collect();
    found.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
    found.into_iter().map(|(_, index)| index).take(limit).collect()
}

fn score(plan: &Plan, index: usize, operation: &Operation, words: &[String]) -> usize {
    let resource = plan.resources.iter().find(|resource| resource.operations.contains(&index));
    let titles =
        resource.map_or_else(String::new, |resource| format!("{} {}", resource.title, resource.singular));
    let fields = [
        (6, plain(&operation.title)),
        (5, plain(&operation.path)),
        (4, plain(&operation.signature)),
        (4, plain(&titles)),
        (1, plain(&operation.note)),
    ];
    let verbs: &[&str] = match operation.method.as_str() {
        "GET" => &["get", "list", "read", "show", "find", "fetch"],
        "POST" => &["create", "add", "new", "post", "make"],
        "DELETE" => &["delete", "remove"],
        _ => &["update", "edit", "change", "set", "put", "patch"],
    };
    words
        .iter()
        .map(|word| {
            let by_field =
                fields.iter().filter(|(_, has)| has.contains(word)).map(|(weight, _)| weight).sum::<usize>();
            by_field + usize::from(verbs.contains(&word.as_str())) * 3
        })
        .sum()
}

fn plain(text: &str) -> Vec<String> {
    split(text).iter().map(|word| singular(&word.to_lowercase())).filter(|word| word.len() > 1).collect()
}

/// What a caller needs to know to call an operation.
pub fn describe(plan: &Plan, index: usize) -> Value {
    let Some(operation) = plan.operations.get(index) else { return Value::Null };
    let mut told = json!({
        "operation": operation.signature,
        "title": operation.title,
        "changesData": operation.writes,
        "arguments": schema(plan, operation),
    });
    if !operation.note.is_empty() {
        told["description"] = json!(crate::plan::words::line(&operation.note, MAX_NOTE));
    }
    if operation.destroys {
        told["destroysData"] = json!(true);
    }
    if operation.deprecated {
        told["deprecated"] = json!(true);
    }
    told
}

/// The name of an input among the arguments: its own, with its place where two have the same.
pub(crate) fn argument_name(operation: &Operation, input: &Input) -> String {
    let same = operation.inputs.iter().filter(|other| other.name == input.name).count();
    if same < 2 && input.name != BODY {
        return input.name.clone();
    }
    let place = match input.place {
        InputPlace::Query => "query",
        InputPlace::Path => "path",
        InputPlace::Header => "header",
        InputPlace::Cookie => "cookie",
        InputPlace::Variable => "variable",
    };
    format!("{place}:{}", input.name)
}
