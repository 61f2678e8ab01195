//! Calls of an external agent before our policy: what each would be as a call of our own tools, what the rules say about
//! it, and the question to a person. Also the tools that an agent asks us to use for it.
//!
//! Must not know how an agent is spoken to. Invariants: the one function that decides about tool calls decides about these
//! too; a call that is several of ours is as strict as the strictest of them; what the agent says of a call never makes the
//! decision milder than an unknown call's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::agent::{AgentCall, AgentCommand, CallKind, CommandEnd};
use domain::event::Fact;
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Location, Origin, ToolCall, ToolInput};
use domain::{BoxFuture, Failure, HostCall, HostReply};
use serde_json::{Value, json};

use super::approval::{ApprovalDecision, Decision};
use super::context::EngineToolContext;
use super::{
    Prepared, ReadyCall, advance, asking, decide, decide_and_run, prepare, review_call, run_guarded, scope,
    stopped, unrecorded,
};
use crate::hooks;
use crate::tool_search::ToolList;
use crate::turn::Turn;
use crate::undo::{self, Recording};

/// The server of the built-in tools.
const BUILT_IN: &str = "eca";
/// Files of one call that are looked at one by one.
const MOST_FILES: usize = 50;
/// How long an editor may take to give the text of a file.
const EDITOR_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

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

/// The bare name of the tool of ours that a kind of call is shown as.
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
    let Decided { tool, input, review, approval } = decided;
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
fn is_contained(turn: &Turn, wall: AgentWall, review: &Review) -> bool {
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

fn own_tool(turn: &Turn, name: &str) -> Option<Arc<dyn Tool>> {
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
            [shell, "-c" | "-lc", line] if shell.ends_with("sh") => Some((*line).to_owned()),
            words => Some(words.join(" ")),
        };
    }
    let line = text_member(call, &["command", "cmd", "script"]);
    line.map(ToOwned::to_owned).or_else(|| {
        let title = call.title.as_ref()?.trim();
        Some(title.trim_matches('`').to_owned()).filter(|line| !line.is_empty())
    })
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

/// A tool of the agent that is none of ours. It is reviewed and never run here.
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

/// Records the state of the files before an agent works. `Err`: its changes could not be undone, and nobody wants them all
/// the same.
pub(crate) async fn begin_recording(turn: &Turn) -> Result<Option<Recording>, Failure> {
    let review = Review { changes: true, ..Review::default() };
    match undo::begin(turn, ToolEffect::RunsCommands, &review).await {
        Ok(recording) => Ok(recording),
        Err(problem) => {
            let (session, editor) = (turn.session.clone(), turn.editor.clone());
            let context = EngineToolContext::new(session, turn.id, None, editor, turn.cancel.clone());
            if unrecorded::is_allowed(&context, &problem).await {
                return Ok(None);
            }
            Err(Failure::user(format!(
                "The agent was not started, because its changes could not be undone. {problem}"
            )))
        }
    }
}

/// The exact text of a file for the agent, as the editor has it where it can tell.
pub(crate) async fn read_file(
    turn: &Turn,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, String> {
    let tool = own_tool(turn, "read_file").ok_or("No file can be read here.")?;
    let input = json!({"path": path});
    let review = review_call(turn, tool.as_ref(), &input).await?;
    if !review.outside.is_empty() {
        return Err(format!("{} is outside the workspace.", path.display()));
    }
    let item = turn.session.log.next_item();
    let approval = decide(turn, item, tool.as_ref(), &input, &review, None, &turn.session.taint());
    if approval.decision != Decision::Allow {
        return Err(approval.message_for_model());
    }
    turn.session.add_taint(&super::taint::of_review(tool.spec(), &review, turn.session.workspace.is_trusted));
    let text = match unsaved_text(turn, path).await {
        Some(text) => text,
        None => {
            let read = turn.session.workspace.files.read(&turn.session.roots, path.to_owned()).await;
            let bytes = read.map_err(|failure| failure.to_string())?.bytes;
            String::from_utf8(bytes).map_err(|_| format!("{} is not a text file.", path.display()))?
        }
    };
    Ok(lines_of(&text, line, limit))
}

async fn unsaved_text(turn: &Turn, path: &Path) -> Option<String> {
    let editor = turn.editor.clone().filter(|editor| editor.abilities.read_text)?;
    let context =
        EngineToolContext::new(turn.session.clone(), turn.id, None, Some(editor), turn.cancel.clone());
    let read = HostCall::ReadText { path: path.to_owned() };
    match domain::tool::ToolContext::host(&context, read, EDITOR_TIMEOUT).await {
        Ok(HostReply::Text(text)) => Some(text),
        Ok(_) | Err(_) => None,
    }
}

/// Lines from `line` (1-based) on.
fn lines_of(text: &str, line: Option<u32>, limit: Option<u32>) -> String {
    if line.is_none() && limit.is_none() {
        return text.to_owned();
    }
    let skip = line.unwrap_or(1).saturating_sub(1) as usize;
    let most = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(skip).take(most).collect()
}

/// Writes a file for the agent by our own tool: path policy, exact bytes, unsaved buffers. A person who must be asked sees
/// the call as one of ours.
pub(crate) async fn write_file(
    turn: &Turn,
    step: u32,
    wall: AgentWall,
    path: &Path,
    content: String,
) -> Result<(), String> {
    let tool = own_tool(turn, "write_file").ok_or("No file can be written here.")?;
    let input = json!({"path": path, "content": content});
    let mut review = review_call(turn, tool.as_ref(), &input).await?;
    review.contained = is_contained(turn, wall, &review);
    let item = new_own_call(turn, step, "write_file", &input);
    let approval = decide(turn, item.id, tool.as_ref(), &input, &review, None, &turn.session.taint());
    if approval.decision != Decision::Allow {
        return run_shown(turn, item).await.map(drop);
    }
    // The recording of the turn covers the workspace.
    let recording = match review.outside.is_empty() {
        true => None,
        false => undo::begin(turn, tool.spec().effect, &review).await?,
    };
    let mut result = None;
    // A file that the agent changed by itself is refused once, and then known.
    for _ in 0..2 {
        let invocation = Invocation {
            item: item.id,
            input: input.clone(),
            scope: scope(turn),
            outside_allowed: !review.outside.is_empty(),
            contained: false,
            keeps_run_later: false,
            run_later: Vec::new(),
            cancel: turn.cancel.child_token(),
            context: Arc::new(EngineToolContext::of_call(turn, item.id, &turn.cancel)),
        };
        result = run_guarded(turn, tool.clone(), invocation).await;
        if result.as_ref().is_some_and(|result| !result.error) {
            break;
        }
    }
    if let Some(recording) = recording {
        recording.end(&turn.session).await;
    }
    match result {
        Some(result) if !result.error => Ok(()),
        Some(result) => Err(text_of(&result.parts)),
        None => Err("The turn was stopped.".to_owned()),
    }
}

/// Runs a command for the agent as a call of our own shell tool.
pub(crate) async fn run_command(turn: &Turn, step: u32, command: AgentCommand) {
    let AgentCommand { line, directory, output, cancel, reply } = command;
    let mut input = json!({"command": line});
    if let Some(directory) = directory {
        input["working_directory"] = json!(directory);
    }
    let item = new_own_call(turn, step, "shell_command", &input);
    let ended = tokio::select! {
        ended = run_shown(turn, item.clone()) => Some(ended),
        () = cancel.cancelled() => None,
    };
    let end = match ended {
        Some(Ok(text)) => {
            (output.0)(&text);
            Ok(CommandEnd { exit_code: Some(exit_code(&text)) })
        }
        Some(Err(text)) => match exit_code(&text) {
            0 => Err(text),
            code => {
                (output.0)(&text);
                Ok(CommandEnd { exit_code: Some(code) })
            }
        },
        None => {
            turn.session.commit(vec![Fact::ItemEnded { item: stopped(item) }]);
            Ok(CommandEnd { exit_code: None })
        }
    };
    let _ = reply.send(end);
}

/// The exit code that our shell tool names at the end of its result.
fn exit_code(text: &str) -> i32 {
    let code = text.trim_end().rsplit_once("[exit code ").and_then(|(_, rest)| rest.strip_suffix(']'));
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn new_own_call(turn: &Turn, step: u32, name: &str, input: &Value) -> Item {
    let mut call = ToolCall::new(String::new(), BUILT_IN.to_owned(), name.to_owned(), Origin::Native);
    call.input_text = input.to_string();
    turn.session.new_item(turn.id, step, ItemKind::ToolCall(Box::new(call)))
}

/// Runs a call of our own that people see, with everything that belongs to one: review, approval, hooks, undo.
async fn run_shown(turn: &Turn, item: Item) -> Result<String, String> {
    let tools = ToolList::new(turn.session.tools(), &turn.session, &turn.model.info());
    turn.session.commit(vec![Fact::ItemStarted { item: item.clone() }]);
    let taint = turn.session.taint();
    let prepared = prepare(turn, item, &tools, &taint).await.map_err(|failure| failure.to_string())?;
    let item = match prepared {
        Prepared::Ended(item) => item,
        Prepared::Ready(ready) => decide_and_run(turn, *ready).await.0,
    };
    turn.session.commit(vec![Fact::ItemEnded { item: item.clone() }]);
    let ItemKind::ToolCall(call) = &item.kind else { return Err(String::new()) };
    let text = text_of(&call.result);
    if call.error || !matches!(call.state, domain::ToolState::Done) { Err(text) } else { Ok(text) }
}

pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
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
            (json!({"cmd": "ls"}), "x", "ls"),
            (json!({}), "`rm -rf build`", "rm -rf build"),
        ] {
            assert_eq!(command_of(&call(input.clone(), title)).as_deref(), Some(line), "{input}");
        }
    }

    #[test]
    fn lines_and_exit_codes_are_exact() {
        let text = "one\r\ntwo\nthree";
        assert_eq!(lines_of(text, None, None), text);
        assert_eq!(lines_of(text, Some(2), Some(1)), "two\n");
        assert_eq!(lines_of(text, Some(3), None), "three");
        assert_eq!(lines_of(text, None, Some(1)), "one\r\n");
        assert_eq!(
            (exit_code("x\n[exit code 12]"), exit_code("fine"), exit_code("[exit code 3] later")),
            (12, 0, 0)
        );
    }
}
