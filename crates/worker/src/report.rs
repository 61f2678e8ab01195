//! What a worker prints: one line for each task that ends, and for each that it leaves to others.
//!
//! Invariant: texts of others are shown with every character visible, and take one line.

use domain::visible_line;
use serde_json::{Value, json};
use store_postgres::{Task, TaskState};

use super::outcome::{Ended, Work};

pub(super) struct Report {
    /// For scripts.
    pub(super) json: bool,
    pub(super) print_line: fn(&str),
}

impl Report {
    pub(super) fn ended(&self, task: &Task, state: TaskState, ended: &Ended, work: &Work) {
        let message = ended.message.as_ref().or(work.problem.as_ref());
        let value = json!({
            "task": task.id.as_str(),
            "state": state.name(),
            "repo": task.repo,
            "outcome": ended.outcome,
            "message": message,
            "branch": work.branch,
            "cost": ended.cost,
        });
        let detail = message.or(work.branch.as_ref()).cloned().unwrap_or_default();
        self.print(&value, &format!("{} {} {} {detail}", state.name(), task.id, task.repo));
    }

    /// A task that this worker may not take.
    pub(super) fn left(&self, task: &Task) {
        let why = "the settings of this worker (`worker.repositories`) do not name its repository";
        let value = json!({
            "task": task.id.as_str(),
            "state": task.state.name(),
            "repo": task.repo,
            "outcome": "left",
            "message": why,
        });
        self.print(&value, &format!("left {} {} {why}", task.id, task.repo));
    }

    fn print(&self, value: &Value, line: &str) {
        let text = if self.json { value.to_string() } else { visible_line(line.trim_end()).into_owned() };
        (self.print_line)(&text);
    }
}
