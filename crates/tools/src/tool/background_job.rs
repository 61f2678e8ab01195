//! `background_job`: looks after commands that `shell_command` left running.

use std::sync::Arc;
use std::time::Duration;

use domain::Review;
use domain::tool::{Exposure, Invocation, Scope, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::jobs::Jobs;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Limits;
use crate::sealed;

pub struct BackgroundJob {
    pub jobs: Arc<Jobs>,
    pub limits: Limits,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    action: Action,
    #[serde(default)]
    job_id: String,
    /// A line to write
    #[serde(default)]
    input: String,
    /// Milliseconds to wait. Rare, so the schema leaves it out and the results name it.
    #[serde(default, deserialize_with = "lenient::number")]
    #[schemars(skip)]
    timeout: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    #[serde(alias = "read")]
    ReadOutput,
    Wait,
    #[serde(alias = "input")]
    Write,
    #[serde(alias = "stop", alias = "end")]
    Kill,
}

impl BuiltInTool for BackgroundJob {
    type Input = Input;

    const NAME: &'static str = "background_job";
    const DESCRIPTION: &'static str = "List, read, wait for, write to or end jobs of shell_command.";
    const EFFECT: ToolEffect = ToolEffect::Other;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        if input.action == Action::Write {
            return self.review_write(&input, scope);
        }
        let summary = match input.action {
            Action::List => "Listing jobs".to_owned(),
            Action::Wait => format!("Waiting for {}", input.job_id),
            Action::ReadOutput | Action::Write => format!("Reading {}", input.job_id),
            Action::Kill => format!("Ending {}", input.job_id),
        };
        // A job of this session was approved when it was started; to end it needs no more.
        Ok(Review { summary, harmless: true, ..Review::default() })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let (session, id, cancel) = (&call.scope.session, &input.job_id, &call.cancel);
        let text = match input.action {
            Action::List => return Ok(ToolResult::text(self.jobs.describe(session))),
            Action::Kill => return self.jobs.stop(session, id).await.map(ToolResult::text),
            Action::ReadOutput => self.jobs.read(session, id)?,
            Action::Wait => {
                let asked = input.timeout.map(|millis| Duration::from_millis(millis as u64));
                let time = asked.unwrap_or(self.limits.shell_time).min(self.limits.max_shell_time);
                self.jobs.wait(session, id, time, cancel).await?
            }
            Action::Write if call.scope.read_only => {
                return Err("The plan behavior types nothing into jobs.".to_owned());
            }
            Action::Write => self.jobs.write(session, id, &input.input, cancel).await?,
        };
        let mut result = ToolResult::text(text);
        let began_open = call.scope.tainted && self.jobs.began_open(session, id);
        if let Some(secret) = began_open.then(|| sealed::any_secret(&call.scope)).flatten() {
            result.taint.add_possible_secret(format!("{secret}, by {id}"));
        }
        Ok(result)
    }
}

impl BackgroundJob {
    /// What is typed into a shell or an interpreter is a command of its own. The sandbox of a job that nobody approved
    /// contains it, as it contains the job; into any other job a person lets it be typed.
    fn review_write(&self, input: &Input, scope: &Scope) -> Result<Review, String> {
        let line = self.jobs.line(&scope.session, &input.job_id)?;
        let is_contained = self.jobs.is_contained(&scope.session, &input.job_id);
        Ok(Review {
            summary: format!("Typing into {} ({line}): {}", input.job_id, input.input),
            harmless: is_contained,
            changes: true,
            exposure: Some(if is_contained { Exposure::Local } else { Exposure::Unknown }),
            keys: vec![format!("typing into {line}")],
            ..Review::default()
        })
    }
}
