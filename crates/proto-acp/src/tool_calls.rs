//! A tool call as a client shows it: kind, status, title, content, places. Pure.
//!
//! Invariants: an update carries each field whole; [`changed`] omits the fields that the client has; nothing that a
//! person approves hides a character.

use std::borrow::Cow;
use std::path::Path;

use domain::item::{Part, PlanEntry, PlanStatus};
use domain::tool_call::{Details, FileChange, Origin, ToolCall, ToolState};
use domain::{ItemId, visible_line, visible_value};
use serde_json::Value;

use crate::wire::acp;

/// The fields of a call as it is now.
pub(crate) fn fields(
    call: &ToolCall,
    terminal: Option<&acp::TerminalId>,
    has_patches: bool,
) -> acp::ToolCallUpdateFields {
    let title = if call.summary.is_empty() { call.name.clone() } else { call.summary.clone() };
    // An editor shows these names as they are.
    let hides = |path: &Path| matches!(visible_line(&path.to_string_lossy()), Cow::Owned(_));
    let locations = call.locations.iter().filter(|it| !hides(&it.path));
    let locations = locations.map(|it| acp::ToolCallLocation::new(it.path.clone()).line(it.line));
    let raw_output = call.state.is_over().then(|| text_of(&call.result)).filter(|text| !text.is_empty());
    acp::ToolCallUpdateFields::new()
        .kind(kind(call))
        .status(status(call))
        .title(title)
        .name(name(call))
        .content(content(call, terminal, has_patches))
        .locations(locations.collect::<Vec<_>>())
        .raw_input(call.input.as_ref().map(|input| visible_value(input).into_owned()))
        .raw_output(raw_output.map(Value::String))
}

/// A call that a client has not seen yet.
pub(crate) fn first(id: ItemId, fields: acp::ToolCallUpdateFields) -> acp::ToolCall {
    let mut call = acp::ToolCall::new(id.to_string(), "");
    call.update(fields);
    call
}

/// The fields of `now` that differ from `before`; `None` where there are none.
pub(crate) fn changed(
    before: &acp::ToolCallUpdateFields,
    now: acp::ToolCallUpdateFields,
) -> Option<acp::ToolCallUpdateFields> {
    fn new<T: PartialEq>(before: &Option<T>, now: Option<T>) -> Option<T> {
        if *before == now { None } else { now }
    }
    let update = acp::ToolCallUpdateFields::new()
        .kind(new(&before.kind, now.kind))
        .status(new(&before.status, now.status))
        .title(new(&before.title, now.title))
        .name(new(&before.name, now.name))
        .content(new(&before.content, now.content))
        .locations(new(&before.locations, now.locations))
        .raw_input(new(&before.raw_input, now.raw_input))
        .raw_output(new(&before.raw_output, now.raw_output));
    (update != acp::ToolCallUpdateFields::new()).then_some(update)
}

/// The server of the built-in tools.
const BUILT_IN: &str = "eca";

/// Whether the engine runs the call: not where an agent of another vendor does.
pub(crate) fn is_own(call: &ToolCall) -> bool {
    call.origin == Origin::Mcp || call.server == BUILT_IN
}

fn name(call: &ToolCall) -> String {
    match call.origin {
        Origin::Native => call.name.clone(),
        Origin::Mcp => format!("{}__{}", call.server, call.name),
    }
}

fn status(call: &ToolCall) -> acp::ToolCallStatus {
    match &call.state {
        ToolState::Preparing | ToolState::Waiting { .. } => acp::ToolCallStatus::Pending,
        ToolState::Running => acp::ToolCallStatus::InProgress,
        ToolState::Done if !call.error => acp::ToolCallStatus::Completed,
        ToolState::Done | ToolState::Rejected { .. } | ToolState::Stopped { .. } => {
            acp::ToolCallStatus::Failed
        }
    }
}

fn kind(call: &ToolCall) -> acp::ToolKind {
    if call.origin == Origin::Mcp {
        return acp::ToolKind::Other;
    }
    match call.name.as_str() {
        "read_file" | "directory_tree" | "editor_diagnostics" | "preview_file_change" => acp::ToolKind::Read,
        "grep" | "glob" | "editor_definition" | "editor_references" => acp::ToolKind::Search,
        "edit_file" | "write_file" | "apply_patch" => acp::ToolKind::Edit,
        "move_file" => acp::ToolKind::Move,
        "shell_command" | "background_job" | "bg_job" => acp::ToolKind::Execute,
        "web_fetch" | "fetch_url" | "web_search" => acp::ToolKind::Fetch,
        "task" | "compact_chat" | "ask_user" => acp::ToolKind::Think,
        _ => acp::ToolKind::Other,
    }
}

fn content(
    call: &ToolCall,
    terminal: Option<&acp::TerminalId>,
    has_patches: bool,
) -> Vec<acp::ToolCallContent> {
    let change = match &call.details {
        Some(Details::FileChange(change)) => Some(diff(change, has_patches)),
        _ => None,
    };
    let terminal = terminal.map(|id| acp::ToolCallContent::Terminal(acp::Terminal::new(id.clone())));
    let mut all: Vec<acp::ToolCallContent> = Vec::new();
    match &call.state {
        ToolState::Preparing => {}
        ToolState::Waiting { .. } | ToolState::Running => all.extend(change.or(terminal)),
        ToolState::Done if !call.error && (change.is_some() || terminal.is_some()) => {
            all.extend(change.or(terminal));
        }
        ToolState::Done => {
            all.extend(terminal);
            all.extend(result(call));
        }
        ToolState::Rejected { .. } => {
            all.extend(change);
            all.extend(result(call));
        }
        ToolState::Stopped { unknown } => {
            all.extend(terminal);
            all.extend(result(call));
            let why = if *unknown {
                "Dragoman was killed while this ran; its outcome is unknown."
            } else {
                "Stopped."
            };
            all.push(text(why.to_owned()));
        }
    }
    all
}

fn result(call: &ToolCall) -> impl Iterator<Item = acp::ToolCallContent> + '_ {
    let verbatim = call.origin == Origin::Native
        && !call.error
        && matches!(kind(call), acp::ToolKind::Read | acp::ToolKind::Search | acp::ToolKind::Execute);
    call.result.iter().map(move |part| match part {
        Part::Text { text: it } if verbatim => text(fenced(it, "")),
        Part::Text { text: it } => text(it.clone()),
        Part::Image { mime, data } => image(mime, data),
    })
}

fn text(text: String) -> acp::ToolCallContent {
    acp::ContentBlock::Text(acp::TextContent::new(text)).into()
}

fn image(mime: &str, data: &str) -> acp::ToolCallContent {
    acp::ContentBlock::Image(acp::ImageContent::new(data, mime)).into()
}

/// The output of a running call.
pub(crate) fn live_content(output: &str) -> Vec<acp::ToolCallContent> {
    vec![text(fenced(output, ""))]
}

/// Clients read content as Markdown: output is put between fences longer than any in it.
fn fenced(text: &str, language: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// A change as a diff; as text where its sides were too large to be kept.
fn diff(change: &FileChange, has_patches: bool) -> acp::ToolCallContent {
    match &change.new_text {
        Some(new) => {
            let diff = acp::Diff::new(change.path.clone(), new.clone()).old_text(change.old_text.clone());
            // Version 2 has patches, and gets this one from here.
            let patch = has_patches.then(|| {
                let path = change.path.display().to_string();
                let path = path.trim_start_matches('/');
                format!("diff --git a/{path} b/{path}\n{}", change.diff)
            });
            let meta = patch.map(|patch| acp::Meta::from_iter([("patch".to_owned(), patch.into())]));
            diff.meta(meta).into()
        }
        None => text(fenced(&change.diff, "diff")),
    }
}

fn text_of(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// The task list a call sets.
pub(crate) fn plan_of(call: &ToolCall) -> Option<acp::Plan> {
    match (&call.details, &call.state) {
        (Some(Details::Tasks { entries }), ToolState::Running | ToolState::Done) if !call.error => {
            Some(plan(entries))
        }
        _ => None,
    }
}

pub(crate) fn plan(entries: &[PlanEntry]) -> acp::Plan {
    let entries = entries.iter().map(|entry| {
        let priority = match entry.priority.as_deref() {
            Some("high") => acp::PlanEntryPriority::High,
            Some("low") => acp::PlanEntryPriority::Low,
            _ => acp::PlanEntryPriority::Medium,
        };
        let status = match entry.status {
            PlanStatus::Pending => acp::PlanEntryStatus::Pending,
            PlanStatus::InProgress => acp::PlanEntryStatus::InProgress,
            PlanStatus::Done => acp::PlanEntryStatus::Completed,
        };
        acp::PlanEntry::new(entry.text.clone(), priority, status)
    });
    acp::Plan::new(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("a\n", ""), "```\na\n```");
        assert_eq!(fenced("a ```` b", "diff"), "`````diff\na ```` b\n`````");
    }
}
