//! A tool call as contents: its head, its details, its end. Pure.
//!
//! Invariants: arguments are an object, times are at least 1 ms, every head has a summary, and nothing that a person
//! approves hides a character.

use std::borrow::Cow;

use domain::item::{Part, PlanEntry, PlanStatus};
use domain::tool_call::{Details, Origin, RejectedBy, ShellPart, ToolCall, ToolState};
use domain::{visible_line, visible_source, visible_value};
use serde_json::{Value, json};

use crate::wire::contents::{CallDetails, CallHead, CallOutput, Content, ShellCommand, TaskCounts, TaskItem};

/// The members of a call that are known before its arguments.
pub(crate) struct CallName {
    /// The id that the client has of it.
    id: String,
    name: String,
    server: String,
    origin: Origin,
}

impl CallName {
    pub(crate) fn of(call: &ToolCall, id: String) -> Self {
        Self { id, name: call.name.clone(), server: call.server.clone(), origin: call.origin }
    }

    pub(crate) fn head(&self) -> CallHead<'static> {
        CallHead {
            id: self.id.clone(),
            name: Cow::Owned(self.name.clone()),
            server: Cow::Owned(self.server.clone()),
            origin: origin_name(self.origin),
            summary: Cow::Owned(preparing_summary(&self.name)),
            details: None,
        }
    }
}

pub(crate) fn head<'a>(id: &str, call: &'a ToolCall) -> CallHead<'a> {
    let summary = if call.summary.is_empty() {
        Cow::Owned(format!("Calling {}", call.name))
    } else {
        Cow::Borrowed(call.summary.as_str())
    };
    CallHead {
        id: id.to_owned(),
        name: Cow::Borrowed(&call.name),
        server: Cow::Borrowed(&call.server),
        origin: origin_name(call.origin),
        summary,
        details: call.details.as_ref().map(|it| details(call, it)),
    }
}

/// The head while the arguments come.
pub(crate) fn preparing_head<'a>(id: &str, call: &'a ToolCall) -> CallHead<'a> {
    let mut head = head(id, call);
    if call.summary.is_empty() {
        head.summary = Cow::Owned(preparing_summary(&call.name));
    }
    head
}

fn preparing_summary(name: &str) -> String {
    format!("Preparing {name}")
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Native => "native",
        Origin::Mcp => "mcp",
    }
}

/// Always an object.
pub(crate) fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    call.input.as_ref().map_or_else(|| Cow::Owned(json!({})), visible_value)
}

/// The last content of a call.
pub(crate) fn end<'a>(id: &str, call: &'a ToolCall, was_running: bool) -> Content<'a> {
    let rejected =
        |reason| Content::ToolCallRejected { call: head(id, call), arguments: arguments(call), reason };
    match &call.state {
        ToolState::Rejected { by: RejectedBy::User } => rejected("user-choice"),
        ToolState::Rejected { by: RejectedBy::Hook } => rejected("hookRejected"),
        ToolState::Rejected { .. } => rejected("user-config"),
        ToolState::Stopped { unknown: false } if !was_running => rejected("user-choice"),
        ToolState::Preparing
        | ToolState::Waiting { .. }
        | ToolState::Running
        | ToolState::Done
        | ToolState::Stopped { .. } => Content::ToolCalled {
            call: head(id, call),
            arguments: arguments(call),
            error: call.error,
            outputs: outputs(call),
            total_time_ms: call.millis.max(1),
        },
    }
}

fn outputs(call: &ToolCall) -> Vec<CallOutput<'_>> {
    let text = |text| CallOutput { kind: "text", text };
    let mut outputs: Vec<CallOutput<'_>> = call
        .result
        .iter()
        .filter_map(|part| match part {
            Part::Text { text: it } => Some(text(Cow::Borrowed(it.as_str()))),
            // It follows as a content of its own, and is not announced here too.
            Part::Image { .. } => None,
        })
        .collect();
    if matches!(call.state, ToolState::Stopped { unknown: true }) {
        outputs.push(text(Cow::Borrowed("Dragoman was killed while this ran; its outcome is unknown.")));
    }
    if outputs.is_empty() {
        outputs.push(text(Cow::Borrowed("")));
    }
    outputs
}

fn details<'a>(call: &'a ToolCall, details: &'a Details) -> CallDetails<'a> {
    match details {
        Details::FileChange(change) => CallDetails::FileChange {
            path: Cow::Owned(visible_line(&change.path.to_string_lossy()).into_owned()),
            diff: &change.diff,
            lines_added: change.lines_added,
            lines_removed: change.lines_removed,
        },
        Details::Shell { commands } => {
            let line =
                call.input.as_ref().and_then(|input| input.get("command")?.as_str()).unwrap_or_default();
            let path = match visible_line(line) {
                line if line.trim().is_empty() => Cow::Borrowed(call.name.as_str()),
                line => line,
            };
            let line = visible_source(line);
            let commands = commands.iter().map(|part| shell_command(part, &line)).collect();
            CallDetails::ShellCommand { commands, diff: "", path }
        }
        Details::Tasks { entries } => tasks(entries),
        Details::Json { jsons } => CallDetails::JsonOutputs { jsons },
        Details::Subagent { session, name, model, step, max_steps } => CallDetails::Subagent {
            subagent_chat_id: session.as_str(),
            agent_name: name,
            model,
            step: *step,
            max_steps: *max_steps,
        },
    }
}

/// A key is the beginning of its command (`git push` of `git push origin`), which is found in the line. This is for
/// people: approvals go by the key.
fn shell_command<'a>(part: &'a ShellPart, line: &str) -> ShellCommand<'a> {
    let begins = |text: &&str| {
        text.strip_prefix(part.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let command = line.split([';', '|', '&', '\n']).map(str::trim).find(begins).unwrap_or(&part.key);
    let mut words = command.split_whitespace().map(str::to_owned);
    ShellCommand {
        command: words.next().unwrap_or_default(),
        args: words.collect(),
        approval_key: &part.key,
        remembered: part.remembered,
    }
}

fn tasks(entries: &[PlanEntry]) -> CallDetails<'_> {
    let count = |status| entries.iter().filter(|entry| entry.status == status).count();
    let numbered = || (1..).zip(entries);
    let tasks = numbered().map(|(id, entry)| TaskItem {
        id,
        subject: &entry.text,
        description: "",
        status: match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in-progress",
            PlanStatus::Done => "done",
        },
        priority: entry.priority.as_deref().unwrap_or("medium"),
        is_blocked: false,
    });
    let in_progress = numbered().filter(|(_, entry)| entry.status == PlanStatus::InProgress);
    CallDetails::Task {
        tasks: tasks.collect(),
        in_progress_task_ids: in_progress.map(|(id, _)| id).collect(),
        summary: TaskCounts {
            done: count(PlanStatus::Done),
            in_progress: count(PlanStatus::InProgress),
            pending: count(PlanStatus::Pending),
            total: entries.len(),
        },
    }
}
