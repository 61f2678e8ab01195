//! `hooks.<name>`: programs of the user's that run at events. The engine runs them and applies their effects.
//!
//! Invariant: a `preToolCall` hook that cannot be read is not dropped: the approval function asks about each call that
//! such a hook would see.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::cursor::Cursor;
use crate::origin::Origin;
use crate::rule::{Rule, read_rules};

/// What one action may take where the settings do not say it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT_MILLIS: u64 = 600_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: String,
    pub event: HookEvent,
    pub matcher: HookMatcher,
    /// In order.
    pub actions: Vec<HookAction>,
    /// Whether the chat shows that it runs.
    pub visible: bool,
    pub description: Option<String>,
    /// After tool calls: also after those that failed.
    pub run_on_error: bool,
    pub format: HookFormat,
    pub origin: Origin,
}

/// What a program of a hook reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HookFormat {
    /// As `dragoman docs hooks` says.
    #[default]
    Own,
    /// As Claude Code has it.
    Claude,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAction {
    pub command: HookCommand,
    pub timeout: Duration,
    /// A hook of the user's own configuration has the network unless it says `"network": false`; one of a project does
    /// not.
    pub network: bool,
    /// Set: the user's own files say `"sandbox": "off"`. It starts in the folder of the file that says so.
    pub outside_sandbox: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookCommand {
    /// A line for bash.
    Line(String),
    /// A program or a script.
    File(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookEvent {
    SessionStart,
    SessionEnd,
    ChatStart,
    ChatEnd,
    SubagentStart,
    PreRequest,
    PostRequest,
    SubagentPostRequest,
    PreToolCall,
    PostToolCall,
    PreCompact,
    PostCompact,
}

impl HookEvent {
    pub const ALL: [Self; 12] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::ChatStart,
        Self::ChatEnd,
        Self::SubagentStart,
        Self::PreRequest,
        Self::PostRequest,
        Self::SubagentPostRequest,
        Self::PreToolCall,
        Self::PostToolCall,
        Self::PreCompact,
        Self::PostCompact,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "sessionStart",
            Self::SessionEnd => "sessionEnd",
            Self::ChatStart => "chatStart",
            Self::ChatEnd => "chatEnd",
            Self::SubagentStart => "subagentStart",
            Self::PreRequest => "preRequest",
            Self::PostRequest => "postRequest",
            Self::SubagentPostRequest => "subagentPostRequest",
            Self::PreToolCall => "preToolCall",
            Self::PostToolCall => "postToolCall",
            Self::PreCompact => "preCompact",
            Self::PostCompact => "postCompact",
        }
    }
}

/// A hook that would decide about tool calls and cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingHook {
    pub name: String,
    pub matcher: HookMatcher,
    pub origin: Origin,
}

/// What a hook is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookMatcher {
    All,
    /// A regular expression for `server__tool`; for compactions `manual` or `auto`.
    Pattern(String),
    Rules(Vec<Rule>),
}

/// The hooks that can run, in the order of their names, and those before tool calls that cannot.
pub(crate) fn read(hooks: &Cursor) -> (Vec<Hook>, Vec<BlockingHook>) {
    let (mut readable, mut blocking) = (Vec::new(), Vec::new());
    for entry in hooks.entries() {
        let event = entry.get("type").text();
        let event = HookEvent::ALL.into_iter().find(|known| Some(known.name()) == event.as_deref());
        match (event, actions(&entry)) {
            (Some(event), Ok(actions)) => readable.push(hook(&entry, event, actions)),
            (None, _) => {
                let known = HookEvent::ALL.map(HookEvent::name).join(", ");
                entry.get("type").report_invalid(&format!("must be one of {known}"));
            }
            (Some(event), Err(problem)) => {
                entry.get("actions").report(domain::Level::Error, &problem);
                let (name, matcher, origin) = (entry.name().to_owned(), matcher(&entry), entry.origin());
                blocking.extend((event == HookEvent::PreToolCall).then_some(BlockingHook {
                    name,
                    matcher,
                    origin,
                }));
            }
        }
    }
    readable.sort_by(|one, other| one.name.cmp(&other.name));
    (readable, blocking)
}

fn hook(entry: &Cursor, event: HookEvent, actions: Vec<HookAction>) -> Hook {
    Hook {
        name: entry.name().to_owned(),
        event,
        matcher: matcher(entry),
        actions,
        visible: entry.get("visible").flag().unwrap_or(true),
        description: entry.get("description").text(),
        run_on_error: entry.get("runOnError").flag().unwrap_or(false),
        format: format(entry),
        origin: entry.origin(),
    }
}

fn format(entry: &Cursor) -> HookFormat {
    let cursor = entry.get("format");
    match cursor.text().as_deref() {
        None | Some("eca") => HookFormat::Own,
        Some("claude") => HookFormat::Claude,
        Some(_) => {
            cursor.report_invalid("must be \"eca\" or \"claude\"");
            HookFormat::Own
        }
    }
}

/// The actions of a hook; one that cannot be read makes the hook unreadable.
fn actions(entry: &Cursor) -> Result<Vec<HookAction>, String> {
    let timeout = entry.get("timeout").number(1..=MAX_TIMEOUT_MILLIS).map(Duration::from_millis);
    let value = entry.get("actions").value();
    let actions = value.as_ref().and_then(Value::as_array).filter(|actions| !actions.is_empty());
    let Some(actions) = actions else { return Err("must be a list of actions.".to_owned()) };
    // A project may have changed one part of a hook of the user's.
    let is_of_project =
        entry.entries().iter().any(|part| matches!(part.origin(), Origin::ProjectFile { .. }));
    let network = entry.get("network").flag().unwrap_or(true) && !is_of_project;
    let outside_sandbox = outside_sandbox(entry)?;
    let read = |action| {
        let action = read_action(entry, action, timeout.unwrap_or(DEFAULT_TIMEOUT), network)?;
        Ok(HookAction { outside_sandbox: outside_sandbox.clone(), ..action })
    };
    actions.iter().map(read).collect()
}

/// Only a hook of which every part is from the user's own files may leave the sandbox.
fn outside_sandbox(entry: &Cursor) -> Result<Option<PathBuf>, String> {
    let cursor = entry.get("sandbox");
    match cursor.text().as_deref() {
        None | Some("on") => Ok(None),
        Some("off") if entry.is_wholly_the_users() => Ok(Some(cursor.file_beside(""))),
        Some("off") => {
            cursor.report(
                domain::Level::Warning,
                "can be \"off\" only in a hook of your own files; this one runs in the sandbox.",
            );
            Ok(None)
        }
        Some(_) => Err("has a \"sandbox\" that is neither \"on\" nor \"off\".".to_owned()),
    }
}

fn read_action(
    entry: &Cursor,
    action: &Value,
    otherwise: Duration,
    network: bool,
) -> Result<HookAction, String> {
    let text = |name| action.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    if text("type").is_some_and(|kind| kind != "shell") {
        return Err("must be of type \"shell\".".to_owned());
    }
    let command = match (text("shell"), text("file")) {
        (Some(line), None) => HookCommand::Line(line.to_owned()),
        (None, Some(file)) => HookCommand::File(entry.file_beside(file)),
        (Some(_), Some(_)) | (None, None) => {
            return Err("must have either \"shell\" or \"file\".".to_owned());
        }
    };
    let timeout = match action.get("timeout") {
        None | Some(Value::Null) => otherwise,
        Some(value) => {
            let millis = value.as_u64().filter(|millis| (1..=MAX_TIMEOUT_MILLIS).contains(millis));
            let millis = millis
                .ok_or_else(|| format!("must have a timeout from 1 to {MAX_TIMEOUT_MILLIS} milliseconds."))?;
            Duration::from_millis(millis)
        }
    };
    Ok(HookAction { command, timeout, network, outside_sandbox: None })
}

/// A matcher that cannot be read matches everything.
fn matcher(hook: &Cursor) -> HookMatcher {
    match hook.get("matcher").value() {
        Some(Value::String(pattern)) => HookMatcher::Pattern(pattern),
        Some(rules @ Value::Object(_)) => match read_rules(&rules, &hook.origin()) {
            (rules, errors) if errors.is_empty() => HookMatcher::Rules(rules),
            _ => HookMatcher::All,
        },
        _ => HookMatcher::All,
    }
}
