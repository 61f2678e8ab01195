//! Paths that name an action in place of a thing: `/users.list`, `/accounts/get`, `#Action=CreateUser`.
//!
//! Owns the reading of such names: the thing they are about and what they do with it. Knows no schema.

use super::words::{singular, split};
use crate::spec::Endpoint;

/// What a call does with the thing it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    List,
    Get,
    Create,
    Edit,
    Delete,
    Other,
}

const LIST: [&str; 5] = ["list", "search", "query", "find", "all"];
const GET: [&str; 10] =
    ["get", "read", "show", "info", "retrieve", "describe", "fetch", "view", "inspect", "json"];
const CREATE: [&str; 7] = ["create", "add", "new", "insert", "register", "invite", "issue"];
const EDIT: [&str; 7] = ["update", "edit", "modify", "change", "rename", "patch", "save"];
const DELETE: [&str; 5] = ["delete", "remove", "destroy", "purge", "erase"];
const OTHER: [&str; 43] = [
    "put",
    "set",
    "attach",
    "detach",
    "enable",
    "disable",
    "start",
    "stop",
    "cancel",
    "send",
    "resend",
    "reset",
    "tag",
    "untag",
    "generate",
    "upload",
    "download",
    "import",
    "export",
    "open",
    "close",
    "archive",
    "unarchive",
    "join",
    "leave",
    "kick",
    "sync",
    "refresh",
    "rotate",
    "verify",
    "validate",
    "check",
    "test",
    "simulate",
    "batch",
    "deactivate",
    "activate",
    "assign",
    "unassign",
    "revoke",
    "exchange",
    "post",
    "fire",
];

/// The action of a word, if it is one.
pub(super) fn action(word: &str) -> Option<Action> {
    let word = word.to_lowercase();
    let word = word.as_str();
    let table = [
        (Action::List, &LIST[..]),
        (Action::Get, &GET[..]),
        (Action::Create, &CREATE[..]),
        (Action::Edit, &EDIT[..]),
        (Action::Delete, &DELETE[..]),
        (Action::Other, &OTHER[..]),
    ];
    table.into_iter().find(|(_, words)| words.contains(&word)).map(|(action, _)| action)
}

/// Whether a path names an action that changes something, whatever the method: `/#Action=CreateUser`.
pub(super) fn writes(path: &str) -> bool {
    let name = fragment_action(path).and_then(|name| split(name).first().cloned());
    name.and_then(|word| action(&word)).is_some_and(|action| !matches!(action, Action::List | Action::Get))
}

/// The thing that a call is about, in the singular and lower case, and its action. What is done with a part of the thing, as
/// in `keys.addPermissions`, is another action.
pub(super) fn subject(endpoint: &Endpoint, path: &[&str]) -> Option<(String, Action)> {
    dotted(path).or_else(|| verb_at_end(path)).or_else(|| by_name(endpoint, path))
}

/// `users.list`, `chat.postMessage`, `admin.apps.approved.list`
fn dotted(path: &[&str]) -> Option<(String, Action)> {
    let last = path.last().filter(|last| !last.contains('{'))?;
    let (thing, verb) = last.rsplit_once('.')?;
    let words = split(verb);
    let first = words.first().cloned().unwrap_or_default();
    let is_plain = !thing.is_empty() && verb.chars().all(|c| c.is_ascii_alphanumeric());
    let rest = singular(&words.get(1..).unwrap_or_default().concat().to_lowercase());
    let name = named(thing);
    let is_whole = rest.is_empty() || name.rsplit(' ').next() == Some(rest.as_str());
    let action = action(&first).filter(|_| is_whole).unwrap_or(Action::Other);
    is_plain.then_some((name, action))
}

/// `/accounts/get`, `/item/public_token/create`
fn verb_at_end(path: &[&str]) -> Option<(String, Action)> {
    let (last, before) = path.split_last()?;
    let first = before.first().filter(|first| !first.contains('{'))?;
    let action = action(last)?;
    let is_whole = before.iter().skip(1).all(|part| part.contains('{'));
    Some((named(first), if is_whole { action } else { Action::Other }))
}

/// `GET_CreateUser`, `ListUsers`: where the path itself says nothing.
fn by_name(endpoint: &Endpoint, path: &[&str]) -> Option<(String, Action)> {
    if path.len() > 1 {
        return None;
    }
    let id = endpoint.operation_id.as_deref().or_else(|| fragment_action(&endpoint.path))?;
    let mut words = split(id);
    let is_method = |word: &String| {
        ["get", "post", "put", "delete", "patch"].contains(&word.to_lowercase().as_str()) && word.len() > 2
    };
    if words.len() > 2 && words.first().is_some_and(is_method) && action(&words[1]).is_some() {
        words.remove(0);
    }
    let action = action(words.first()?)?;
    let thing = words.get(1..3.min(words.len()))?.concat();
    let action = if words.len() > 3 { Action::Other } else { action };
    (!thing.is_empty()).then(|| (named(&thing), action))
}

fn fragment_action(path: &str) -> Option<&str> {
    let (_, action) = path.split_once("Action=")?;
    action.split('&').next()
}

pub(super) fn named(text: &str) -> String {
    singular(&split(text).join(" ").to_lowercase())
}
