//! What the protocol says in its two eras: revisions, metadata of requests, results. Pure.

use rpc::Fault;
use serde::Deserialize;
use serde_json::{Value, json};

/// Revisions with a handshake, newest first.
const HANDSHAKE_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision in which every request speaks for itself.
const STATELESS_REVISION: &str = "2026-07-28";
const UNSUPPORTED_REVISION: i64 = -32022;
/// How long a client may keep the list of tools, which never changes.
const LIST_TTL_MILLIS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Dragoman is a coding assistant that works in the folder it was started in. `ask` answers questions \
     about it and changes nothing, `run_task` does work in it, `search_chats` finds what was said in its earlier chats.";

/// The members that requests of all methods share.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct RequestMembers {
    #[serde(rename = "protocolVersion")]
    pub(crate) requested_revision: Option<String>,
    /// Of the client, in `initialize`.
    pub(crate) capabilities: Value,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<Value>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Meta {
    #[serde(rename = "progressToken")]
    pub(crate) progress_token: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    revision: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    client_capabilities: Option<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Era {
    Handshake,
    Stateless,
}

impl Meta {
    /// The era of a request. `has_handshake`: the connection began with one.
    pub(crate) fn era(&self, has_handshake: bool) -> Result<Era, Fault> {
        match &self.revision {
            None if has_handshake => Ok(Era::Handshake),
            None => Err(Fault::invalid_params(
                "begin with `initialize`, or name the revision and the client's capabilities in `_meta`",
            )),
            Some(revision) if revision != STATELESS_REVISION => {
                let mut fault =
                    Fault::new(UNSUPPORTED_REVISION, "This revision of the protocol is not supported.");
                fault.data = serde_json::value::to_raw_value(
                    &json!({"supported": [STATELESS_REVISION], "requested": revision}),
                )
                .ok();
                Err(fault)
            }
            Some(_) if self.client_capabilities.is_none() => {
                Err(Fault::invalid_params("`_meta` lacks the capabilities of the client"))
            }
            Some(_) => Ok(Era::Stateless),
        }
    }
}

/// The answer to `initialize`.
pub(crate) fn initialized(requested: Option<&str>, instructions: Option<&str>) -> Value {
    let known = HANDSHAKE_REVISIONS.into_iter().find(|revision| Some(*revision) == requested);
    json!({
        "protocolVersion": known.unwrap_or(HANDSHAKE_REVISIONS[0]),
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": instructions.unwrap_or(INSTRUCTIONS),
    })
}

/// The answer to `server/discover`.
pub(crate) fn discovered(instructions: Option<&str>) -> Value {
    let mut revisions = vec![STATELESS_REVISION];
    revisions.extend(HANDSHAKE_REVISIONS);
    json!({
        "supportedVersions": revisions,
        "capabilities": {"tools": {}},
        "serverInfo": server_info(),
        "instructions": instructions.unwrap_or(INSTRUCTIONS),
        "ttlMs": LIST_TTL_MILLIS,
        "cacheScope": "public",
    })
}

pub(crate) fn tool_list(tools: &[Value]) -> Value {
    json!({"tools": tools, "ttlMs": LIST_TTL_MILLIS, "cacheScope": "public"})
}

fn server_info() -> Value {
    json!({"name": "dragoman", "title": "Dragoman", "version": env!("CARGO_PKG_VERSION")})
}

/// A result as its era has it.
pub(crate) fn in_era(mut result: Value, era: Era) -> Value {
    match era {
        Era::Stateless => result["resultType"] = json!("complete"),
        Era::Handshake => {
            if let Some(members) = result.as_object_mut() {
                members.remove("ttlMs");
                members.remove("cacheScope");
            }
        }
    }
    result
}

/// A question to the person at the client: yes or no.
pub(crate) fn question(message: &str) -> Value {
    json!({"message": message, "requestedSchema": {"type": "object", "properties": {}, "required": []}})
}

/// Whether the answer to a question is a yes.
pub(crate) fn is_yes(answer: &Value) -> bool {
    answer["action"] == "accept"
}
