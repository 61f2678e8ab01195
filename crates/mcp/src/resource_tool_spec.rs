//! The definition of the tool that reads resources of a server.

use domain::tool::{ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use serde_json::json;

/// The name of the tool, beside the tools of its server.
pub(crate) const READ_TOOL: &str = "read_mcp_resource";

pub(crate) fn tool_spec(server: &str) -> ToolSpec {
    ToolSpec {
        name: READ_TOOL.to_owned(),
        server: server.to_owned(),
        origin: Origin::Mcp,
        description: format!(
            "Reads a resource of the MCP server {server} by its URI. Without a URI it lists the resources and the templates \
             of URIs that can be read."
        ),
        input_schema: json!({"type": "object", "properties": {
            "uri": {"type": "string", "description": "The URI of the resource."},
            "query": {"type": "string", "description": "Lists only what has this text in its name, URI or description."},
        }}),
        effect: ToolEffect::Other,
    }
}
