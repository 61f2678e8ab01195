//! The tool that calls a found tool: what the model writes, and what everything else sees of it.
//!
//! Must not know sessions. Invariant: a call that names a tool becomes the call of that tool before anybody sees it.

use std::borrow::Cow;
use std::sync::LazyLock;

use domain::BoxFuture;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Origin, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::own_spec;

/// The name of the carrier, without its server.
pub(crate) const CARRIER: &str = "call_tool";

/// The tool `call_tool`. It never runs: a call that it carries is another tool's, and one that carries nothing ends here.
pub(crate) struct CarrierTool;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let description = "Calls a tool that eca__search_tools has found.".to_owned();
    let input_schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The full name of the tool, as it was found."},
            "arguments": {"type": "object", "description": "Its arguments, as its input_schema says."},
        },
        "required": ["name", "arguments"],
    });
    own_spec(CARRIER, description, input_schema, ToolEffect::Other)
});

impl Tool for CarrierTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn review(&self, _input: &Value, _scope: &Scope) -> Result<Review, String> {
        Err("Give the full name of a found tool as `name` and its arguments as the object `arguments`."
            .to_owned())
    }

    fn run<'a>(&'a self, _call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async { ToolResult::error("This tool only carries calls of others.") })
    }
}

/// The name and the arguments of the tool that a call of the carrier means; `None`: it means no tool.
pub(crate) fn carried_call(text: &str) -> Option<(String, String)> {
    // Read as a map, because a borrowed raw value must not outlive the text.
    let members: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(text).ok()?;
    let name: String = serde_json::from_str(members.get("name")?.get()).ok()?;
    let arguments = members.get("arguments").map_or("{}", |arguments| arguments.get());
    // Some models write the object as a text.
    let arguments = serde_json::from_str::<String>(arguments).unwrap_or_else(|_| arguments.to_owned());
    let is_named = !name.trim().is_empty() && name != format!("eca__{CARRIER}");
    is_named.then(|| (name.trim().to_owned(), arguments))
}

/// How the model is shown an earlier call of a server's tool that it is not offered: as it would call it now.
pub(crate) fn as_carried(call: &ToolCall, input: Value) -> (String, Value) {
    let name = format!("{}__{}", call.server, call.name);
    match call.origin {
        Origin::Mcp => (format!("eca__{CARRIER}"), json!({"name": name, "arguments": input})),
        Origin::Native => (name, input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_unpacked_with_its_arguments_as_they_were_written() {
        for (text, expected) in [
            (
                r#"{"name": "s__t", "arguments": {"b": 1, "a": [2 ]}}"#,
                Some(("s__t", r#"{"b": 1, "a": [2 ]}"#)),
            ),
            (r#"{"arguments": "{\"a\": 1}", "name": " s__t "}"#, Some(("s__t", r#"{"a": 1}"#))),
            (r#"{"name": "s__t"}"#, Some(("s__t", "{}"))),
            (r#"{"name": "s__t", "arguments": 7}"#, Some(("s__t", "7"))),
            (r#"{"name": "eca__call_tool", "arguments": {}}"#, None),
            (r#"{"name": "", "arguments": {}}"#, None),
            (r#"{"arguments": {}}"#, None),
            (r#"{"name": 7}"#, None),
            ("[1]", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
            assert_eq!(carried_call(text), expected, "{text}");
        }
    }
}
