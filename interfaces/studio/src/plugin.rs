//! One MCP server of the user as a plugin, its tools, and the interface by which the program runs it.

use domain::{BoxFuture, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The MCP servers of the user.
pub trait PluginHost: Send + Sync {
    fn names(&self) -> Vec<String>;
    /// Starts a server, asks what it has, and ends it.
    fn try_out(&self, name: String) -> BoxFuture<'static, TriedPlugin>;
    /// Starts a server, calls one of its tools, and ends it.
    fn call(
        &self,
        name: String,
        tool: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<PluginAnswer, Failure>>;
    fn add(&self, name: &str, entry: &Value) -> Result<(), Failure>;
    fn remove(&self, name: &str) -> Result<(), Failure>;
}

/// What came of trying a server.
pub struct TriedPlugin {
    pub version: Option<String>,
    pub tools: Vec<PluginTool>,
    /// Why it does not run.
    pub fault: Option<String>,
}

/// A tool of a server, as the server describes it.
#[derive(Debug, Clone)]
pub struct PluginTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// What a tool answered.
pub struct PluginAnswer {
    pub text: String,
    pub is_error: bool,
}

/// A tool that was used for a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolUse {
    pub plugin: String,
    pub tool: String,
}

#[derive(Clone)]
pub(crate) struct Plugin {
    pub name: String,
    pub state: &'static str,
    pub version: Option<String>,
    pub message: Option<String>,
    pub tools: Vec<PluginTool>,
}

impl Plugin {
    pub(crate) fn untried(name: String) -> Self {
        let message = Some("It was not tried yet.".to_owned());
        Self { name, state: "installed", version: None, message, tools: Vec::new() }
    }

    /// The tools that a wish may ask for: those of a server that was tried and runs.
    pub(crate) fn offered_tools(&self) -> Vec<Value> {
        let offer = |tool: &PluginTool| {
            json!({
                "server": self.name, "name": tool.name, "description": tool.description,
                "inputSchema": tool.input_schema,
            })
        };
        if self.state == "installed" { self.tools.iter().map(offer).collect() } else { Vec::new() }
    }

    /// Whether it is there; a server that was not tried is believed to have its tools still.
    pub(crate) fn has_tool(&self, used: &ToolUse) -> bool {
        let is_listed = self.tools.is_empty() || self.tools.iter().any(|tool| tool.name == used.tool);
        self.name == used.plugin && is_listed
    }

    pub(crate) fn shown(&self, used_by: &[Value]) -> Value {
        json!({
            "name": self.name,
            "version": self.version,
            "state": self.state,
            "message": self.message,
            "tools": self.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            "usedBy": used_by,
        })
    }
}
