//! A call of a tool: sent, waited for, and answered where the server asks for input.
//!
//! Invariant: it ends, by its result, its deadline or a stop.

use std::sync::Arc;
use std::time::Duration;

use domain::CancellationToken;
use domain::tool::ToolContext;
use rpc::RequestError;
use serde_json::{Value, json};

use crate::calls::{CallError, MAX_DEADLINE_EXTENSIONS};
use crate::client::{Client, MAX_INPUT_ROUNDS};
use crate::request_error::describe_error;
use crate::tasks::{TaskLimits, task_member, wait_for_task};
use crate::wire::CallResult;

/// The deadline of the peer. The deadline of the call always comes first.
const PEER_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Calls a tool and waits.
pub(crate) async fn call(
    client: &Client,
    (tool, runs_as_task): (&str, bool),
    arguments: &Value,
    context: Arc<dyn ToolContext>,
    stop: &CancellationToken,
    deadline: Duration,
) -> Result<CallResult, CallError> {
    let entry = client.calls.register(context);
    let method = "tools/call";
    let failed = |error: RequestError| CallError::Failed(describe_error(method, &error, deadline));
    let meta = json!({"progressToken": entry.number});
    let mut params = client.params(json!({"name": tool, "arguments": arguments, "_meta": meta}));
    let longest = deadline.saturating_mul(MAX_DEADLINE_EXTENSIONS);
    if runs_as_task {
        params["task"] = task_member(longest);
    }
    for _ in 0..MAX_INPUT_ROUNDS {
        let request = client.outgoing.request(method, &params, PEER_TIMEOUT);
        let reply = entry.call.wait(request, stop, deadline).await?;
        if runs_as_task {
            return wait_for_task(client, &entry.call, &reply, TaskLimits { stop, deadline, longest }).await;
        }
        let Some(required) = client.input_required(&reply) else {
            return serde_json::from_str(reply.get()).map_err(RequestError::Unexpected).map_err(failed);
        };
        params = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(CallError::Stopped),
            params = client.with_input(params, required, Some(&entry.call)) => params.map_err(CallError::Failed)?,
        };
    }
    Err(CallError::Failed(format!("It asked for input more than {MAX_INPUT_ROUNDS} times.")))
}
