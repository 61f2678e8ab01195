//! Tools that run as a task of the protocol: the call gives a task, which is asked for its state until it has ended.
//!
//! Invariants: a task ends by its result, by the deadline of the call with all its extensions, or by a stop; in the latter two
//! cases the server is told to cancel it.

use std::time::Duration;

use domain::CancellationToken;
use rpc::RequestError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{ActiveCall, CallError};
use crate::client::Client;
use crate::request_error::describe_error;
use crate::text::single_line;
use crate::wire::CallResult;

/// The pause between two questions, where the server names none; whatever it names, it is within the bounds.
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const MIN_POLL: Duration = Duration::from_millis(20);
const MAX_POLL: Duration = Duration::from_secs(10);
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_MESSAGE_LENGTH: usize = 500;

#[derive(Deserialize)]
struct Created {
    task: TaskState,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState {
    task_id: String,
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    poll_interval: Option<u64>,
}

/// How long a task may take, and what stops it.
pub(crate) struct TaskLimits<'a> {
    pub stop: &'a CancellationToken,
    /// Of one request.
    pub deadline: Duration,
    /// Of the whole task.
    pub longest: Duration,
}

/// Asks for a task to be kept so long.
pub(crate) fn task_member(longest: Duration) -> Value {
    json!({"ttl": u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)})
}

/// Waits for the task that a call gave. A server may give the result at once.
pub(crate) async fn wait_for_task(
    client: &Client,
    call: &ActiveCall,
    reply: &RawValue,
    limits: TaskLimits<'_>,
) -> Result<CallResult, CallError> {
    let Ok(Created { task }) = serde_json::from_str(reply.get()) else {
        return serde_json::from_str(reply.get()).map_err(|error| {
            CallError::Failed(describe_error("tools/call", &RequestError::Unexpected(error), limits.deadline))
        });
    };
    let id = task.task_id.clone();
    let ended = tokio::select! {
        biased;
        () = limits.stop.cancelled() => Err(CallError::Stopped),
        ended = follow(client, call, task, &limits) => ended,
        () = tokio::time::sleep(limits.longest) => {
            Err(CallError::Failed(format!("Its task did not end within {} s.", limits.longest.as_secs_f32())))
        }
    };
    if ended.is_err() {
        let params = client.params(json!({"taskId": id}));
        let cancelled = client.outgoing.request("tasks/cancel", &params, CANCEL_TIMEOUT);
        // The answer comes too late to change anything, and nobody waits for it.
        tokio::spawn(async move { drop(cancelled.await) });
    }
    ended
}

/// Asks for the state until the task has ended, then for its result.
async fn follow(
    client: &Client,
    call: &ActiveCall,
    mut task: TaskState,
    limits: &TaskLimits<'_>,
) -> Result<CallResult, CallError> {
    let params = client.params(json!({"taskId": task.task_id}));
    let mut shown = None;
    loop {
        if task.status_message.is_some() && shown != task.status_message {
            call.show_text(&single_line(
                task.status_message.as_deref().unwrap_or_default(),
                MAX_MESSAGE_LENGTH,
            ));
            shown = task.status_message.take();
        }
        match task.status.as_str() {
            "working" | "submitted" => {}
            "failed" | "cancelled" => {
                let why = shown.map(|text| single_line(&text, MAX_MESSAGE_LENGTH)).unwrap_or_default();
                return Err(CallError::Failed(
                    format!("Its task is {}. {why}", task.status).trim().to_owned(),
                ));
            }
            // Where input is required, the request for the result is the one that questions belong to.
            _ => return request(client, "tasks/result", &params, limits.longest).await,
        }
        let pause = task.poll_interval.map_or(DEFAULT_POLL, Duration::from_millis);
        tokio::time::sleep(pause.clamp(MIN_POLL, MAX_POLL)).await;
        task = request(client, "tasks/get", &params, limits.deadline).await?;
    }
}

async fn request<T: serde::de::DeserializeOwned>(
    client: &Client,
    method: &str,
    params: &Value,
    deadline: Duration,
) -> Result<T, CallError> {
    client.request(method, params, deadline).await.map_err(CallError::Failed)
}
