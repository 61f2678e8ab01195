//! Calls of an external agent before our policy: what each would be as a call of our own tools, what the rules say about
//! it, and the question to a person.
//!
//! Must not know how an agent is spoken to. Invariants: the one function that decides about tool calls decides about these
//! too; a call that stands for several of our tools is as strict as the strictest of them; what the agent says of a call never makes the
//! decision milder than an unknown call's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::agent::{AgentCall, CallKind};
use domain::item::{Item, ItemKind};
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Location, Origin, ToolInput};
use domain::{BoxFuture, Failure};
use serde_json::{Value, json};

use super::approval::{ApprovalDecision, Decision};
use super::{ReadyCall, advance, asking, decide, scope};
use crate::hooks;
use crate::turn::Turn;
use crate::undo;

/// The server of the built-in tools.
pub(super) const BUILT_IN: &str = "eca";
/// Files of one call that are looked at one by one.
const MOST_FILES: usize = 50;

/// The sandbox around an agent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AgentWall {
    pub(crate) is_confined: bool,
    pub(crate) seals_forbidden: bool,
}

/// What is decided about a call of an agent.
pub(crate) enum AgentVerdict {
    Allowed,
    /// The item says who refused it.
    Refused,
    Asked(Box<AskedCall>),
}

/// A call about which a person is asked.
pub(crate) struct AskedCall(ReadyCall);

impl AskedCall {
    /// Waits for the answer. Gives the item with its new state, and whether the call may run.
    pub(crate) async fn answer(self, turn: &Turn) -> (Item, bool) {
        let Self(mut ready) = self;
        let mut relayed = ready.relayed.take();
        let Some(ask) = ready.ask.take() else { return (ready.item, false) };
        let answered = asking::wait_for_answer(turn, &ready, ask, relayed.as_mut()).await;
        let is_allowed = asking::apply_answer(turn, &mut ready, answered.answer);
        if is_allowed {
            advance(&mut ready.item, ToolInput::Allowed);
        }
        if let Some(relayed) = relayed {
            relayed.end(&ready.item);
        }
        (ready.item, is_allowed)
    }
}

/// The bare name of our tool that a kind of call is shown as.
pub(crate) fn name_of(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Read => "read_file",
        CallKind::Edit => "edit_file",
        CallKind::Delete => "delete_file",
        CallKind::Move => "move_file",
        CallKind::Search => "grep",
        CallKind::Execute => "shell_command",
        CallKind::Think => "think",
        CallKind::Fetch => "fetch_url",
        CallKind::Other => "tool",
    }
}

/// Decides about a call that the agent asks for. The item takes the state that follows, and is committed where a person is
/// asked.
pub(crate) async fn decide_about(
    turn: &Turn,
    mut item: Item,
    call: &AgentCall,
    wall: AgentWall,
) -> Result<(Item, AgentVerdict), Failure> {
    let Some(decided) = strictest(turn, &item, call, wall).await else {
        advance(&mut item, ToolInput::Stop);
        return Ok((item, AgentVerdict::Refused));
    };
    let Decided { tool, input, review, mut approval } = decided;
    // A model would decide about what the agent says of itself: that is a person's to judge.
    approval.reviewable = false;
    if let ItemKind::ToolCall(shown) = &mut item.kind {
        // The content of a file is in the diff.
        let mut members = input.as_object().cloned().unwrap_or_default();
        members.remove("content");
        let known = shown.input.get_or_insert_with(|| json!({}));
        if let Some(known) = known.as_object_mut() {
            known.extend(members);
        }
        shown.details = shown.details.take().or_else(|| review.details.clone());
    }
    match approval.decision {
        Decision::Allow => {
            advance(&mut item, ToolInput::Allowed);
            Ok((item, AgentVerdict::Allowed))
        }
        Decision::Deny => Ok((super::deny(turn, item, &approval, &Review::default()), AgentVerdict::Refused)),
        Decision::Ask => {
            let (taint, once) = (turn.session.taint(), approval.once);
            let ready = ReadyCall { item, tool, review, hook: None, taint, ask: None, relayed: None, once };
            let mut ready = asking::ask(turn, ready, approval).await?;
            if ready.ask.is_none() {
                advance(&mut ready.item, ToolInput::Allowed);
                return Ok((ready.item, AgentVerdict::Allowed));
            }
            Ok((ready.item.clone(), AgentVerdict::Asked(Box::new(AskedCall(ready)))))
        }
    }
}

struct Decided {
    tool: Arc<dyn Tool>,
    input: Value,
    review: Review,
    approval: ApprovalDecision,
}

/// The strictest decision about what the call would be. `None`: the turn was stopped.
async fn strictest(turn: &Turn, item: &Item, call: &AgentCall, wall: AgentWall) -> Option<Decided> {
    let mut strictest: Option<Decided> = None;
    for (tool, input) in equivalents(turn, item, call) {
        tool.prepare().await;
        let (tool, input, mut review) = match tool.review(&input, &scope(turn)) {
            Ok(review) => (tool, input, review.into_visible()),
            Err(_) => {
                let unknown: Arc<dyn Tool> = Arc::new(AgentTool::of(item, call));
                let review = unknown.review(&input, &scope(turn)).unwrap_or_default();
                (unknown, input, review)
            }
        };
        review.contained = is_contained(turn, wall, &review);
        review.seals_forbidden |= wall.seals_forbidden;
        review.unrecoverable = undo::endangered(turn, tool.spec().effect, &review).await;
        let taint = turn.session.taint();
        let mut approval = decide(turn, item.id, tool.as_ref(), &input, &review, None, &taint);
        if approval.decision != Decision::Deny || approval.unasked {
            let said = hooks::before_call(turn, item, tool.as_ref(), &input, &review, &approval).await;
            approval = decide(turn, item.id, tool.as_ref(), &input, &review, said.verdict, &taint);
        }
        if turn.cancel.is_cancelled() {
            return None;
        }
        let is_stricter = strictest.as_ref().is_none_or(|known| approval.decision > known.approval.decision);
        if is_stricter {
            strictest = Some(Decided { tool, input, review, approval });
        }
    }
    strictest
}

/// The wall keeps whatever the agent does in the workspace, where undo takes it back.
pub(super) fn is_contained(turn: &Turn, wall: AgentWall, review: &Review) -> bool {
    let workspace = &turn.session.workspace;
    wall.is_confined
        && workspace.undo.is_some()
        && !workspace.settings.sandbox.asks
        && review.outside.is_empty()
        && review.run_later.is_empty()
}

/// The call as calls of our own tools, each with its arguments; where there is none, the agent's own tool.
fn equivalents(turn: &Turn, item: &Item, call: &AgentCall) -> Vec<(Arc<dyn Tool>, Value)> {
    let mut found = Vec::new();
    let mut add = |name: &str, input: Value| {
        if let Some(tool) = own_tool(turn, name) {
            found.push((tool, input));
        }
    };
    let kind = call.kind.unwrap_or(CallKind::Other);
    match kind {
        CallKind::Execute => {
            if let Some(line) = command_of(call) {
                add("shell_command", json!({"command": line}));
            }
        }
        CallKind::Edit | CallKind::Delete | CallKind::Move => {
            let content = |path: &Path| {
                let change = call.changes.iter().find(|change| change.path == path);
                change.and_then(|change| change.new_text.clone()).unwrap_or_default()
            };
            for path in paths_of(call) {
                add("write_file", json!({"path": path, "content": content(&path)}));
            }
        }
        CallKind::Read => {
            for path in paths_of(call) {
                add("read_file", json!({"path": path}));
            }
        }
        CallKind::Fetch => {
            if let Some(url) = text_member(call, &["url", "uri"]) {
                add("fetch_url", json!({"url": url}));
            }
        }
        CallKind::Search | CallKind::Think | CallKind::Other => {}
    }
    if found.is_empty() {
        found.push((Arc::new(AgentTool::of(item, call)), call.input.clone().unwrap_or_else(|| json!({}))));
    }
    found
}

pub(super) fn own_tool(turn: &Turn, name: &str) -> Option<Arc<dyn Tool>> {
    let is_it = |tool: &Arc<dyn Tool>| tool.spec().server == BUILT_IN && tool.spec().name == name;
    turn.session.tools().into_iter().find(is_it)
}

fn text_member<'a>(call: &'a AgentCall, names: &[&str]) -> Option<&'a str> {
    let input = call.input.as_ref()?;
    names.iter().find_map(|name| input[*name].as_str()).filter(|text| !text.is_empty())
}

/// The shell line of a call. Agents give it as a text, as the words of a shell's command line, or as the title.
fn command_of(call: &AgentCall) -> Option<String> {
    let command = call.input.as_ref().map(|input| &input["command"]);
    if let Some(words) = command.and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return match words.as_slice() {
            // More words are arguments of the line.
            [shell, "-c" | "-lc", line, ..] if shell.ends_with("sh") => Some((*line).to_owned()),
            words => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        };
    }
    let line = text_member(call, &["command", "cmd", "script"]);
    line.map(ToOwned::to_owned).or_else(|| {
        let title = call.title.as_ref()?.trim();
        Some(title.trim_matches('`').to_owned()).filter(|line| !line.is_empty())
    })
}

/// A word as the shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn paths_of(call: &AgentCall) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = call.changes.iter().map(|change| change.path.clone()).collect();
    paths.extend(call.locations.iter().flatten().map(|location| location.path.clone()));
    if let Some(input) = &call.input {
        let members = ["path", "file_path", "filePath", "abs_path", "source", "destination"];
        paths.extend(members.iter().filter_map(|name| input[*name].as_str()).map(PathBuf::from));
    }
    paths.sort();
    paths.dedup();
    paths.truncate(MOST_FILES);
    paths
}

/// A tool of the agent that we do not have. It is reviewed and never run here.
struct AgentTool {
    spec: ToolSpec,
    locations: Vec<Location>,
}

impl AgentTool {
    fn of(item: &Item, call: &AgentCall) -> Self {
        let mut names = (String::new(), String::new());
        if let ItemKind::ToolCall(call) = &item.kind {
            names = (call.server.clone(), call.name.clone());
        }
        let (server, name) = names;
        let locations = paths_of(call).into_iter().map(|path| Location { path, line: None }).collect();
        let description = String::new();
        let (input_schema, effect) = (json!({"type": "object"}), ToolEffect::Other);
        Self {
            spec: ToolSpec { name, server, origin: Origin::Mcp, description, input_schema, effect },
            locations,
        }
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn review(&self, input: &Value, scope: &Scope) -> Result<Review, String> {
        let is_inside = |path: &Path| scope.roots.iter().any(|root| path.starts_with(root));
        let outside = self.locations.iter().filter(|it| !is_inside(&it.path)).map(|it| it.path.clone());
        Ok(Review {
            summary: self.spec.name.clone(),
            outside: outside.collect(),
            read_paths: super::server_paths::paths_of(input, &scope.roots),
            locations: self.locations.clone(),
            changes: true,
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, _: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async { ToolResult::error("Only the agent itself runs this.") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(input: Value, title: &str) -> AgentCall {
        AgentCall { input: Some(input), title: Some(title.to_owned()), ..AgentCall::default() }
    }

    #[test]
    fn the_line_of_a_command_is_found_however_it_is_given() {
        for (input, title, line) in [
            (json!({"command": "git push"}), "x", "git push"),
            (json!({"command": ["bash", "-lc", "git push && ls"]}), "x", "git push && ls"),
            (json!({"command": ["git", "push"]}), "x", "git push"),
            (json!({"command": ["bash", "-c", "ls $1", "x", "y"]}), "x", "ls $1"),
            (json!({"command": ["grep", "a b", "it's"]}), "x", r"grep 'a b' 'it'\''s'"),
            (json!({"cmd": "ls"}), "x", "ls"),
            (json!({}), "`rm -rf build`", "rm -rf build"),
        ] {
            assert_eq!(command_of(&call(input.clone(), title)).as_deref(), Some(line), "{input}");
        }
    }
}
