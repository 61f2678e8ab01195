//! A tool call that a child asked for, and that waits for a click.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A call that waits for its user.
pub(crate) struct WaitingCall {
    pub id: String,
    pub tab: String,
    pub call: RequestedCall,
    pub answer: oneshot::Sender<bool>,
}

impl WaitingCall {
    pub(crate) fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "tab": self.tab,
            "plugin": self.call.server,
            "tool": self.call.name,
            "arguments": self.call.arguments,
            "reason": self.call.reason,
        })
    }
}

/// The child's `toolCall`.
#[derive(Clone, Deserialize)]
pub(crate) struct RequestedCall {
    pub server: String,
    pub name: String,
    pub arguments: Value,
    #[serde(default)]
    pub reason: String,
}
