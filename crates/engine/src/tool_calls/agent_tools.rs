//! Our own tools for an external agent: it asks us to read and write files and to run commands.
//!
//! Must not know how an agent is spoken to. Invariants: rules and hooks decide about these calls as about those of a model; a
//! file is read and written byte for byte.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::HookEvent;
use domain::agent::{AgentCommand, AgentToolCall, CommandEnd};
use domain::event::Fact;
use domain::item::{Item, ItemKind, Part};
use domain::tool::{Invocation, Review, ToolEffect};
use domain::tool_call::{Origin, ToolCall};
use domain::{Answer, Failure, HostCall, HostReply};
use serde_json::{Value, json};

use super::approval::Decision;
use super::context::EngineToolContext;
use super::foreign::{AgentWall, BUILT_IN, is_contained, own_tool};
use super::{
    Prepared, decide, decide_and_run, prepare, review_call, run_guarded, scope, stopped, unrecorded,
};
use crate::hooks;
use crate::tool_search::ToolList;
use crate::turn::Turn;
use crate::undo::{self, Recording};

/// How long an editor may take to give the text of a file.
const EDITOR_TIMEOUT: Duration = Duration::from_secs(10);
/// Milliseconds until a command becomes a job.
const LONGEST_COMMAND: u64 = 600_000;

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

/// The exact text of a file for the agent, as the editor has it where it can tell. `None`: there is no such file.
pub(crate) async fn read_file(
    turn: &Turn,
    step: u32,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<Option<String>, String> {
    let tool = own_tool(turn, "read_file").ok_or("No file can be read here.")?;
    let input = json!({"path": path});
    let review = review_call(turn, tool.as_ref(), &input).await?;
    if !review.outside.is_empty() {
        return Err(format!("{} is outside the workspace.", path.display()));
    }
    let item = new_own_call(turn, step, "read_file", &input);
    let taint = turn.session.taint();
    let mut approval = decide(turn, item.id, tool.as_ref(), &input, &review, None, &taint);
    if approval.decision == Decision::Allow {
        let said = hooks::before_call(turn, &item, tool.as_ref(), &input, &review, &approval).await;
        approval = decide(turn, item.id, tool.as_ref(), &input, &review, said.verdict, &taint);
    }
    if approval.decision != Decision::Allow {
        return Err(approval.message_for_model());
    }
    turn.session.add_taint(&super::taint::of_review(tool.spec(), &review, turn.session.workspace.is_trusted));
    let text = match unsaved_text(turn, path).await {
        Some(text) => text,
        None => match read_from_disk(turn, path).await? {
            Some(text) => text,
            None => return Ok(None),
        },
    };
    Ok(Some(lines_of(&text, line, limit)))
}

async fn read_from_disk(turn: &Turn, path: &Path) -> Result<Option<String>, String> {
    let (files, roots) = (&turn.session.workspace.files, &turn.session.roots);
    let failure = match files.read(roots, path.to_owned()).await {
        Ok(read) => {
            let text = String::from_utf8(read.bytes);
            return text.map(Some).map_err(|_| format!("{} is not a text file.", path.display()));
        }
        Err(failure) => failure,
    };
    match files.stat(roots, path.to_owned()).await {
        Ok(stat) if !stat.exists => Ok(None),
        Ok(_) | Err(_) => Err(failure.to_string()),
    }
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
    // Hooks of the user hear of the call as of every other one.
    let is_heard = hooks::has(&turn.session.workspace, HookEvent::PreToolCall);
    if approval.decision != Decision::Allow || is_heard {
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
    let result = result.ok_or("The turn was stopped.")?;
    if result.error { Err(text_of(&result.parts)) } else { Ok(()) }
}

/// Runs a command for the agent as a call of our own shell tool.
pub(crate) async fn run_command(turn: &Turn, step: u32, command: AgentCommand) {
    let AgentCommand { line, directory, output, cancel, reply } = command;
    let mut input = json!({"command": line, "timeout": LONGEST_COMMAND});
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
            // A command that became a job has no exit code yet.
            Ok(CommandEnd { exit_code: (!goes_on(&text)).then(|| exit_code(&text)) })
        }
        Some(Err(text)) => match exit_code(&text) {
            0 => Err(text),
            code => {
                (output.0)(&text);
                Ok(CommandEnd { exit_code: Some(code) })
            }
        },
        None => {
            end_released(turn, item);
            Ok(CommandEnd { exit_code: None })
        }
    };
    let _ = reply.send(end);
}

/// Calls a tool of a server for the agent, as a call that people see.
pub(crate) async fn run_tool(turn: &Turn, step: u32, call: AgentToolCall) {
    let AgentToolCall { server, name, input, cancel, reply } = call;
    let mut shown = ToolCall::new(String::new(), server, name, Origin::Mcp);
    shown.input_text = input.to_string();
    let item = turn.session.new_item(turn.id, step, ItemKind::ToolCall(Box::new(shown)));
    let ended = tokio::select! {
        ended = run_shown(turn, item.clone()) => ended,
        () = cancel.cancelled() => {
            end_released(turn, item);
            Err("The call was cancelled.".to_owned())
        }
    };
    let _ = reply.send(ended);
}

/// A terminal was released while its command waited or ran: nobody will answer a question about it.
fn end_released(turn: &Turn, item: Item) {
    let item = stopped(item);
    turn.session.commit_with(|state| {
        let asks = state.open_asks().filter(|ask| ask.item == Some(item.id));
        let settled = asks.map(|ask| Fact::AskSettled { id: ask.id, answer: Answer::Cancelled });
        settled.chain([Fact::ItemEnded { item: item.clone() }]).collect()
    });
}

/// Whether a result says that its command runs on as a job.
fn goes_on(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    ["[still running after ", "[silent, "].iter().any(|start| last.starts_with(start))
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
        assert!(
            goes_on("x\n[still running after 600 s; it goes on as job-1. Call …]")
                && !goes_on("still running")
        );
    }
}
