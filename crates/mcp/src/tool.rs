//! One tool of a server as the engine sees it.
//!
//! A server's hints are not believed where believing could hurt: a call is never `harmless` and never declared as `Reads`, so
//! that it is always asked by default and never runs beside others. The read-only hint does one thing: without it the
//! plan behavior refuses the call; with it the user is asked there as everywhere.

use std::sync::Arc;

use domain::tool::{Invocation, Review, Scope, Tool, ToolResult, ToolSpec};
use domain::{BoxFuture, Part};
use serde_json::Value;

use crate::calling;
use crate::calls::CallError;
use crate::content;
use crate::definitions::ToolDefinition;
use crate::server_state::ServerState;

pub(crate) struct McpTool {
    pub state: Arc<ServerState>,
    pub definition: Arc<ToolDefinition>,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let ToolSpec { name, server, .. } = &self.definition.spec;
        if !input.is_object() {
            return Err(format!("The arguments of {name} must be a JSON object."));
        }
        Ok(Review {
            summary: format!("Calling {name} of the MCP server {server}"),
            harmless: false,
            changes: !self.definition.read_only_hint,
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(self.call_server(call))
    }
}

impl McpTool {
    async fn call_server(&self, invocation: Invocation) -> ToolResult {
        let Invocation { input, cancel, context, .. } = invocation;
        let client = match self.state.ready_client_for(&self.definition, &cancel).await {
            Ok(client) => client,
            Err(failure) => return ToolResult::error(failure.to_string()),
        };
        let deadline = self.state.options.call_timeout;
        let tool = (self.definition.wire_name.as_str(), self.definition.runs_as_task);
        let called = calling::call(&client, tool, &input, context, &cancel, deadline).await;
        let mut result = match called {
            Ok(result) => content::from_call(result),
            Err(CallError::Stopped) => ToolResult::error("The call was stopped before the server answered."),
            Err(CallError::Failed(reason)) => {
                ToolResult::error(self.state.request_failure(&client, &reason).to_string())
            }
        };
        result.parts.extend(self.look_at_workspace().await.map(Part::text));
        result
    }

    /// What was left in the workspace that git would obey, since the server started or since the last look.
    async fn look_at_workspace(&self) -> Option<String> {
        let sandbox = self.state.options.sandbox.clone()?;
        tokio::task::spawn_blocking(move || sandbox.look().sentence()).await.ok().flatten()
    }
}
