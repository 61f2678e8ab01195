//! `task`: the model's list of what it is going to do, shown to the user.

use domain::Review;
use domain::item::{PlanEntry, PlanStatus};
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Details;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::offered::BuiltInTool;

pub struct Task;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    tasks: Vec<TaskInput>,
}

#[derive(Deserialize, JsonSchema)]
struct TaskInput {
    #[serde(alias = "content", alias = "subject")]
    text: String,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    #[serde(alias = "todo")]
    Pending,
    #[serde(alias = "in-progress", alias = "active")]
    InProgress,
    #[serde(alias = "completed", alias = "complete")]
    Done,
}

const MAX_TASKS: usize = 100;

impl Input {
    fn into_entries(self) -> Result<Vec<PlanEntry>, String> {
        if self.tasks.len() > MAX_TASKS {
            return Err(format!("A list has at most {MAX_TASKS} tasks. Put some together."));
        }
        let entries = self.tasks.into_iter().map(|entry| PlanEntry {
            text: entry.text,
            status: match entry.status {
                Status::Pending => PlanStatus::Pending,
                Status::InProgress => PlanStatus::InProgress,
                Status::Done => PlanStatus::Done,
            },
            priority: None,
        });
        Ok(entries.collect())
    }
}

impl BuiltInTool for Task {
    type Input = Input;

    const NAME: &'static str = "task";
    const DESCRIPTION: &'static str = "Replace the task list that the user sees, for work of several steps.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, _: &Scope) -> Result<Review, String> {
        let entries = input.into_entries()?;
        let summary = summarize(&entries);
        Ok(Review { summary, details: Some(Details::Tasks { entries }), harmless: true, ..Review::default() })
    }

    async fn run(&self, input: Input, _: Invocation) -> Result<ToolResult, String> {
        let entries = input.into_entries()?;
        let text = summarize(&entries);
        Ok(ToolResult { details: Some(Details::Tasks { entries }), ..ToolResult::text(text) })
    }
}

fn summarize(entries: &[PlanEntry]) -> String {
    let done = entries.iter().filter(|entry| entry.status == PlanStatus::Done).count();
    format!("Tasks: {done} of {} done", entries.len())
}
