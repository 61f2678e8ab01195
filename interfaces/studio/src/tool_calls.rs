//! Calls of plugins' tools that a wish needs: offered to the child, shown on the page, made after a click, one at a time.
//!
//! Invariants: no call is made without a click for this very call; a confirmation is never remembered; a call that nobody
//! answers is denied; what a tool answers is data for the child and runs nothing here.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use web::ApiError;

use crate::changes::cli_error;
use crate::cli::{Chunk, Method};
use crate::console::{EntryKind, Level};
use crate::model::ToolUse;
use crate::plugin::Plugin;
use crate::studio::Studio;
use crate::waiting_call::{RequestedCall, WaitingCall};

/// How long a question stays.
const QUESTION: Duration = Duration::from_secs(600);
/// How long a server may take to start and to answer.
const CALL: Duration = Duration::from_secs(90);
/// For one wish.
const MOST_CALLS: usize = 5;
const LONGEST_RESULT: usize = 64 * 1024;

impl Studio {
    /// Asks the child, and makes the tool calls that it asks for, until it answers. Gives the tools that were used too.
    pub(crate) async fn call_with_tools(
        &self,
        tab: &str,
        method: Method,
        mut params: Value,
        chunks: Option<mpsc::UnboundedSender<Chunk>>,
    ) -> Result<(Value, Vec<ToolUse>), ApiError> {
        let tools: Vec<Value> = self.model().plugins.iter().flat_map(Plugin::offered_tools).collect();
        if tools.is_empty() {
            let result = self.cli.call(method, params, chunks).await.map_err(|error| cli_error(&error))?;
            return Ok((result, Vec::new()));
        }
        params["tools"] = json!(tools);
        let (mut results, mut used) = (Vec::new(), Vec::new());
        loop {
            params["toolResults"] = json!(results);
            let called = self.cli.call(method, params.clone(), chunks.clone()).await;
            let result = called.map_err(|error| cli_error(&error))?;
            if !result["toolCall"].is_object() {
                return Ok((result, used));
            }
            let call: RequestedCall = serde_json::from_value(result["toolCall"].clone())
                .map_err(|_| ApiError::internal("The CLI asked for a tool call that cannot be read."))?;
            let is_offered = |tool: &&Value| tool["server"] == call.server && tool["name"] == call.name;
            if results.len() >= MOST_CALLS || !tools.iter().any(|tool| is_offered(&tool)) {
                return Err(ApiError::internal("The CLI asked for a tool call that is not possible."));
            }
            let outcome = self.confirm_and_call(tab, &call).await?;
            let tool = ToolUse { plugin: call.server, tool: call.name };
            if outcome["isDenied"] != true && !used.contains(&tool) {
                used.push(tool);
            }
            results.push(outcome);
        }
    }

    /// The call's entry of `toolResults`.
    async fn confirm_and_call(&self, tab: &str, call: &RequestedCall) -> Result<Value, ApiError> {
        let name = format!("{} of {}", call.name, call.server);
        let mut outcome = json!({"server": call.server, "name": call.name, "arguments": call.arguments});
        if !self.ask_for_call(tab, call).await? {
            self.log(
                Some(tab),
                EntryKind::Studio,
                Level::Warning,
                &format!("The tool call {name} was denied."),
                None,
            );
            outcome["isDenied"] = json!(true);
            return Ok(outcome);
        }
        let shown = format!("The tool call {name} was allowed: {}", call.arguments);
        self.log(Some(tab), EntryKind::Studio, Level::Info, &shown, None);
        let calling = self.plugins.call(call.server.clone(), call.name.clone(), call.arguments.clone());
        let (text, is_error) = match tokio::time::timeout(CALL, calling).await {
            Ok(Ok(answer)) => (answer.text, answer.is_error),
            Ok(Err(failure)) => (failure.to_string(), true),
            Err(_) => (format!("The server did not answer within {} s.", CALL.as_secs()), true),
        };
        let end = text.floor_char_boundary(LONGEST_RESULT);
        let (level, verb) = if is_error { (Level::Warning, "failed") } else { (Level::Info, "answered") };
        let shown = format!("The tool {name} {verb}: {}", &text[..end]);
        self.log(Some(tab), EntryKind::Studio, level, &shown, None);
        outcome["result"] = json!(text[..end]);
        outcome["isError"] = json!(is_error);
        Ok(outcome)
    }

    /// Whether the user allows the call; a question that nobody answers, or whose tab is closed, is a no.
    async fn ask_for_call(&self, tab: &str, call: &RequestedCall) -> Result<bool, ApiError> {
        let id = web::random_id().map_err(|error| ApiError::internal(error.to_string()))?;
        let (answer, answered) = oneshot::channel();
        let waiting = WaitingCall { id: id.clone(), tab: tab.to_owned(), call: call.clone(), answer };
        self.model().tool_calls.push(waiting);
        self.show_tool_calls();
        let is_allowed = matches!(tokio::time::timeout(QUESTION, answered).await, Ok(Ok(true)));
        self.model().tool_calls.retain(|waiting| waiting.id != id);
        self.show_tool_calls();
        Ok(is_allowed)
    }

    pub(crate) fn settle_tool_call(&self, id: &str, is_allowed: bool) -> Result<(), ApiError> {
        let waiting = {
            let mut model = self.model();
            let at = model.tool_calls.iter().position(|waiting| waiting.id == id);
            let at = at.ok_or_else(|| ApiError::not_found("This tool call no longer waits."))?;
            model.tool_calls.remove(at)
        };
        let _ = waiting.answer.send(is_allowed);
        Ok(())
    }

    fn show_tool_calls(&self) {
        let shown: Vec<Value> = self.model().tool_calls.iter().map(WaitingCall::shown).collect();
        self.publish("toolCalls", &shown);
    }
}
