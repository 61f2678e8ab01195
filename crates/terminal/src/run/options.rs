//! What a run is asked to do. Plain data.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{Context, SessionSettings, TurnLimits};
use domain::host::Grants;
use domain::{CancellationToken, SessionId};
use serde_json::Value;

#[derive(Clone)]
pub struct RunOptions {
    pub prompt: String,
    /// Files and images that belong to the prompt.
    pub contexts: Vec<Context>,
    /// The folders to work in, the current one first.
    pub roots: Vec<PathBuf>,
    pub model: Option<String>,
    pub behavior: Option<String>,
    /// The variant of the model.
    pub effort: Option<String>,
    pub session: Option<SessionId>,
    /// Continue in a copy of the chat.
    pub fork: bool,
    /// Continue this chat, or begin it; it is kept whatever becomes of the prompt.
    pub task: Option<SessionId>,
    /// Continue the newest chat of the workspace.
    pub newest: bool,
    pub grants: Grants,
    pub max_cost: Option<f64>,
    /// The models to continue with after a failure, in order.
    pub failover: Vec<String>,
    pub max_steps: Option<u32>,
    /// Go on until this command succeeds.
    pub until: Option<String>,
    pub timeout: Option<Duration>,
    /// Stops the turn.
    pub stop: CancellationToken,
    pub format: OutputFormat,
    /// Print only failures to stderr.
    pub quiet: bool,
    /// The answer must be JSON that matches this schema.
    pub schema: Option<Value>,
    /// Says what the run waits for, beside a model.
    pub trouble: Option<TroubleSource>,
    /// Stdout is a terminal: control characters of the answer are removed.
    pub to_terminal: bool,
}

pub type TroubleSource = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What stdout receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutputFormat {
    /// The text of the answer as it comes.
    #[default]
    Text,
    /// One JSON event per line.
    Events,
    /// One JSON object at the end.
    Summary,
}

impl RunOptions {
    /// What the run sets for its chat.
    pub(super) fn settings(&self) -> SessionSettings {
        SessionSettings {
            model: self.model.clone(),
            behavior: self.behavior.clone(),
            variant: self.effort.clone(),
            ..SessionSettings::default()
        }
    }

    pub(super) fn limits(&self) -> TurnLimits {
        TurnLimits {
            max_steps: self.max_steps,
            max_cost: self.max_cost,
            failover: self.failover.clone(),
            output_schema: self.schema.clone(),
            until: self.until.clone(),
            ..TurnLimits::default()
        }
    }
}
