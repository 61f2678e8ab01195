//! Version 2 of the protocol (draft) as a translation: requests become those of version 1, responses and updates of version
//! 1 become those of version 2. Pure.
//!
//! Knows no engine and no session. Invariants: a message of version 2 never has a member that only version 1 knows; what
//! version 2 has no word for is left out, not renamed.

use domain::ItemId;
use domain::tool_call::{ToolCall, ToolState};
use serde_json::{Map, Value, json};

use crate::tool_calls::is_own;
use crate::wire::{acp, method};

/// The number that a client asks for.
pub(crate) const VERSION: u64 = 2;
/// Methods that version 1 does not have.
pub(crate) const CANCEL_TOOL_CALL: &str = "tool_call/cancel";
pub(crate) const CANCEL_TERMINAL: &str = "terminal/cancel";

/// The request of version 1 that a request of version 2 stands for; `None`: version 2 has no such method.
pub(crate) fn request(name: &str, mut params: Value) -> Option<(&'static str, Value)> {
    let name = match name {
        "auth/login" => method::AUTHENTICATE,
        "auth/logout" => method::LOGOUT,
        "session/resume" => match params.get("replayFrom").is_some_and(|from| !from.is_null()) {
            true => method::SESSION_LOAD,
            false => method::SESSION_RESUME,
        },
        "session/new" => method::SESSION_NEW,
        "session/fork" => method::SESSION_FORK,
        "session/list" => method::SESSION_LIST,
        "session/close" => method::SESSION_CLOSE,
        "session/delete" => method::SESSION_DELETE,
        "session/prompt" => method::SESSION_PROMPT,
        "session/set_config_option" => method::SESSION_SET_CONFIG_OPTION,
        method::SESSION_SET_TITLE => method::SESSION_SET_TITLE,
        method::SESSION_STATUS => method::SESSION_STATUS,
        method::AUTH_STATUS => method::AUTH_STATUS,
        _ => return None,
    };
    if let Some(members) = params.as_object_mut() {
        // A chosen value has no type in version 1.
        if members.get("type").is_some_and(|kind| kind == "id") {
            members.remove("type");
        }
        for server in members.get_mut("mcpServers").and_then(Value::as_array_mut).into_iter().flatten() {
            complete_server(server);
        }
    }
    Some((name, params))
}

/// Lists that version 2 lets a client leave out.
fn complete_server(server: &mut Value) {
    let Some(members) = server.as_object_mut() else { return };
    let lists: &[&str] = if members.contains_key("url") { &["headers"] } else { &["args", "env"] };
    for list in lists {
        members.entry(*list).or_insert_with(|| json!([]));
    }
    if members.get("type").is_some_and(|kind| kind == "stdio") {
        members.remove("type");
    }
}

/// The parameters of `initialize` in version 1. Files and terminals are no longer the client's.
pub(crate) fn initialize_params(params: &Value) -> Value {
    let capabilities = &params["capabilities"];
    let mut ours = Map::new();
    if capabilities["elicitation"].is_object() {
        ours.insert("elicitation".into(), capabilities["elicitation"].clone());
    }
    ours.insert("auth".into(), json!({"terminal": capabilities["auth"]["terminal"].is_object()}));
    // All of this belongs to version 2.
    ours.insert("session".into(), json!({"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}));
    if capabilities["_meta"].is_object() {
        ours.insert("_meta".into(), capabilities["_meta"].clone());
    }
    json!({"protocolVersion": 1, "clientInfo": params["info"], "clientCapabilities": ours})
}

/// The response to `initialize`, from that of version 1.
pub(crate) fn initialize_response(response: &Value) -> Value {
    let methods = response["authMethods"].as_array().into_iter().flatten().map(|known| {
        let mut known = known.clone();
        if let Some(members) = known.as_object_mut() {
            let id = members.remove("id").unwrap_or_default();
            members.insert("methodId".into(), id);
            members.entry("type").or_insert_with(|| json!("agent"));
        }
        known
    });
    let mut capabilities = json!({
        "session": {
            "prompt": {"image": {}, "embeddedContext": {}},
            "mcp": {"stdio": {}, "http": {}},
            "delete": {},
            "additionalDirectories": {},
            "fork": {},
        },
        "auth": {},
    });
    let (theirs, ours) = (&response["agentCapabilities"], &mut capabilities);
    // Of clients that ask for what is unstable.
    for name in ["title", "status"] {
        if theirs["sessionCapabilities"][name].is_object() {
            ours["session"][name] = json!({});
        }
    }
    if theirs["auth"]["status"].is_object() {
        ours["auth"]["status"] = json!({});
    }
    json!({
        "protocolVersion": VERSION,
        "info": response["agentInfo"],
        "capabilities": capabilities,
        "authMethods": methods.collect::<Vec<_>>(),
    })
}

/// Any other response, from that of version 1.
pub(crate) fn response(mut response: Value) -> Value {
    if let Some(members) = response.as_object_mut() {
        // A prompt that never became a message: the session has left the connection.
        if members.contains_key("stopReason") {
            return json!({"messageId": "none"});
        }
        members.remove("modes");
        if let Some(options) = members.get_mut("configOptions") {
            rename_options(options);
        }
    }
    response
}

fn rename_options(options: &mut Value) {
    for option in options.as_array_mut().into_iter().flatten() {
        if let Some(members) = option.as_object_mut()
            && let Some(id) = members.remove("id")
        {
            members.insert("configId".into(), id);
        }
    }
}

/// An update, from that of version 1; `None` where version 2 has none like it.
pub(crate) fn update(mut update: Value) -> Option<Value> {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    let members = update.as_object_mut()?;
    match kind.as_str() {
        // Modes are options.
        "current_mode_update" => return None,
        "tool_call" | "tool_call_update" => {
            members.insert("sessionUpdate".into(), json!("tool_call_update"));
            rewrite_contents(members);
        }
        "plan" => {
            let entries = members.remove("entries").unwrap_or_default();
            let plan = json!({"type": "items", "planId": "tasks", "entries": entries});
            return Some(json!({"sessionUpdate": "plan_update", "plan": plan}));
        }
        "available_commands_update" => {
            let commands = members.get_mut("availableCommands").and_then(Value::as_array_mut);
            commands.into_iter().flatten().for_each(type_command);
        }
        "config_option_update" => {
            if let Some(options) = members.get_mut("configOptions") {
                rename_options(options);
            }
        }
        _ => {}
    }
    Some(update)
}

fn type_command(command: &mut Value) {
    let Some(members) = command.as_object_mut() else { return };
    members.insert("type".into(), json!("command"));
    if let Some(input) = members.get_mut("input").and_then(Value::as_object_mut) {
        input.insert("type".into(), json!("text"));
    }
}

/// Differences are patches in version 2.
fn rewrite_contents(call: &mut Map<String, Value>) {
    for content in call.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if content["type"] == "diff" {
            let operation = if content["oldText"].is_null() { "add" } else { "modify" };
            let change = json!({"operation": operation, "path": content["path"], "fileType": "text"});
            let mut diff = json!({"type": "diff", "changes": [change]});
            if let Some(patch) = content["_meta"]["patch"].as_str() {
                diff["patch"] = json!({"format": "git_patch", "text": patch});
            }
            *content = diff;
        }
    }
}

/// A question about a call, from that of version 1.
pub(crate) fn permission(request: &Value) -> Value {
    let mut call = request["toolCall"].clone();
    if let Some(members) = call.as_object_mut() {
        rewrite_contents(members);
    }
    let title = call["title"].as_str().filter(|title| !title.is_empty()).unwrap_or("Run this tool?");
    json!({
        "sessionId": request["sessionId"],
        "title": title,
        "subject": {"type": "tool_call", "toolCall": call},
        "options": request["options"],
    })
}

/// A message as a whole: of the user, or of the model where it has not streamed.
pub(crate) fn message(kind: &str, id: ItemId, content: Vec<acp::ContentBlock>) -> Value {
    json!({"sessionUpdate": kind, "messageId": id.to_string(), "content": content})
}

/// What version 1 has no word for in the state of a call: whether it can be canceled, and that it was.
pub(crate) fn call_state(id: ItemId, call: &ToolCall) -> Option<Value> {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id.to_string()});
    match &call.state {
        ToolState::Running if is_own(call) => update["capabilities"] = json!({"cancel": {}}),
        ToolState::Stopped { .. } => {
            update["status"] = json!("cancelled");
            update["capabilities"] = Value::Null;
        }
        ToolState::Done if is_own(call) => update["capabilities"] = Value::Null,
        ToolState::Done
        | ToolState::Running
        | ToolState::Preparing
        | ToolState::Waiting { .. }
        | ToolState::Rejected { .. } => return None,
    }
    Some(update)
}

/// What a session does now.
pub(crate) enum State {
    Running,
    RequiresAction,
    /// With why the turn ended, where one did.
    Idle(Option<Value>),
}

pub(crate) fn state(state: State) -> Value {
    let name = match &state {
        State::Running => "running",
        State::RequiresAction => "requires_action",
        State::Idle(_) => "idle",
    };
    let mut update = json!({"sessionUpdate": "state_update", "state": name});
    if let (State::Idle(Some(Value::Object(end))), Some(members)) = (state, update.as_object_mut()) {
        members.extend(end);
    }
    update
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_version_two_become_those_of_version_one() {
        let resumed = |params: Value| request("session/resume", params).unwrap().0;
        assert_eq!(resumed(json!({"sessionId": "s", "cwd": "/w"})), "session/resume");
        assert_eq!(
            resumed(json!({"sessionId": "s", "cwd": "/w", "replayFrom": {"type": "start"}})),
            "session/load"
        );
        let servers = json!([{"type": "stdio", "name": "a", "command": "/a"}, {"type": "http", "name": "b", "url": "u"}]);
        let (_, params) = request("session/new", json!({"cwd": "/w", "mcpServers": servers})).unwrap();
        let expected = json!([{"name": "a", "command": "/a", "args": [], "env": []},
            {"type": "http", "name": "b", "url": "u", "headers": []}]);
        assert_eq!(params["mcpServers"], expected);
        let set = json!({"sessionId": "s", "configId": "mode", "type": "id", "value": "plan"});
        let (_, params) = request("session/set_config_option", set).unwrap();
        assert_eq!(params, json!({"sessionId": "s", "configId": "mode", "value": "plan"}));
        for gone in ["authenticate", "session/load", "session/set_mode", "x"] {
            assert_eq!(request(gone, json!({})), None, "{gone}");
        }
    }

    #[test]
    fn updates_of_version_one_become_those_of_version_two() {
        for (one, two) in [
            (json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}), None),
            (
                json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "content": [
                    {"type": "diff", "path": "/a", "oldText": null, "newText": "x", "_meta": {"patch": "p"}},
                    {"type": "diff", "path": "/b", "oldText": "o", "newText": "x"}]}),
                Some(
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "t", "content": [
                    {"type": "diff", "changes": [{"operation": "add", "path": "/a", "fileType": "text"}],
                        "patch": {"format": "git_patch", "text": "p"}},
                    {"type": "diff", "changes": [{"operation": "modify", "path": "/b", "fileType": "text"}]}]}),
                ),
            ),
            (
                json!({"sessionUpdate": "plan", "entries": [1]}),
                Some(
                    json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "tasks", "entries": [1]}}),
                ),
            ),
            (
                json!({"sessionUpdate": "available_commands_update",
                    "availableCommands": [{"name": "a", "description": "d", "input": {"hint": "h"}}]}),
                Some(json!({"sessionUpdate": "available_commands_update", "availableCommands":
                    [{"type": "command", "name": "a", "description": "d", "input": {"type": "text", "hint": "h"}}]})),
            ),
        ] {
            assert_eq!(update(one.clone()), two, "{one}");
        }
        assert_eq!(state(State::Idle(Some(json!({"stopReason": "end_turn"}))))["stopReason"], "end_turn");
    }
}
