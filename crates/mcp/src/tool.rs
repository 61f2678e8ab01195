//! One tool of a server as the engine sees it.
//!
//! A server's hints are not believed where believing could hurt: a call is never `harmless` and never declared as `Reads`, so
//! that it is always asked by default and never runs beside others. The read-only hint does one thing: without it the
//! plan behavior refuses the call; with it the user is asked there as everywhere.

use std::sync::Arc;

use domain::tool::{Invocation, Review, Scope, Tool, ToolResult, ToolSpec};
use domain::{BoxFuture, Part};
use process::sandbox::stopped::{self, Stopped};
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
        if !client.is_http() && self.state.options.sandbox.is_some() {
            result.parts.extend(stopped_by_sandbox(&result).map(Part::text));
        }
        result.parts.extend(self.look_at_workspace().await.map(Part::text));
        result
    }

    /// What was left in the workspace that git would obey, since the server started or since the last look.
    async fn look_at_workspace(&self) -> Option<String> {
        let sandbox = self.state.options.sandbox.clone()?;
        tokio::task::spawn_blocking(move || sandbox.look().sentence()).await.ok().flatten()
    }
}

/// Why a call of a confined server failed, where its words show that the sandbox is the reason.
fn stopped_by_sandbox(result: &ToolResult) -> Option<String> {
    let texts = result.parts.iter().filter(|_| result.error).filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    let (stopped, _) = texts.filter_map(stopped::find).find(|(stopped, _)| {
        // Files may lack or forbid something without a sandbox, too.
        matches!(stopped, Stopped::ReadOnly | Stopped::Socket)
    })?;
    let reason = match stopped {
        Stopped::ReadOnly => "only the workspace is writable there, without its git directories",
        Stopped::Socket | Stopped::Network | Stopped::Hidden | Stopped::Module => stopped.sentence(),
    };
    Some(format!(
        "The sandbox of the server may be the reason: {reason}. A grant in `grants` of its entry may help, such as \
         `git-write` for a server that commits: see `dragoman docs sandbox`."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_sandbox_stopped_says_so() {
        let lock = "fatal: Unable to create '/w/.git/index.lock': Read-only file system";
        let text = stopped_by_sandbox(&ToolResult::error(lock)).expect("a reason");
        assert!(text.contains("`git-write`") && text.contains("sandbox"), "{text}");
        assert_eq!(stopped_by_sandbox(&ToolResult::error("No changes staged for commit.")), None);
        let quoted = ToolResult { error: false, ..ToolResult::error(lock) };
        assert_eq!(stopped_by_sandbox(&quoted), None, "a call that worked may speak of it");
    }
}
