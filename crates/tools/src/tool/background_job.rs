//! `background_job`: looks after what `shell_command` started in the background.

use std::sync::Arc;

use domain::Review;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::jobs::Jobs;
use crate::offered::BuiltInTool;
use crate::sealed;

pub struct BackgroundJob {
    pub jobs: Arc<Jobs>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    action: Action,
    #[serde(default)]
    job_id: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    #[serde(alias = "read")]
    ReadOutput,
    Kill,
}

impl BuiltInTool for BackgroundJob {
    type Input = Input;

    const NAME: &'static str = "background_job";
    const DESCRIPTION: &'static str = "List, read or end jobs of shell_command.";
    const EFFECT: ToolEffect = ToolEffect::Other;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        let summary = match input.action {
            Action::List => "Listing jobs".to_owned(),
            Action::ReadOutput => format!("Reading {}", input.job_id),
            Action::Kill => format!("Ending {}", input.job_id),
        };
        // A job of this session was approved when it was started; to end it needs no more.
        Ok(Review { summary, harmless: true, ..Review::default() })
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let session = &call.scope.session;
        match input.action {
            Action::List => Ok(ToolResult::text(self.jobs.describe(session))),
            Action::ReadOutput => {
                let mut result = ToolResult::text(self.jobs.read(session, &input.job_id)?);
                let began_open = call.scope.tainted && self.jobs.began_open(session, &input.job_id);
                if let Some(secret) = began_open.then(|| sealed::any_secret(&call.scope)).flatten() {
                    result.taint.add_possible_secret(format!("{secret}, by {}", input.job_id));
                }
                Ok(result)
            }
            Action::Kill => self.jobs.stop(session, &input.job_id).await.map(ToolResult::text),
        }
    }
}
