//! What an editor does in our place: bytes, metadata and names of files, and commands in its terminals.
//!
//! Must not know protocols. Invariants: an editor that cannot tell is no obstacle, the disk is looked at then; what it
//! says about paths is held against the workspace, and what it gives is bounded like our own results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::host::{HostReply, Terminal};
use domain::tool::{Invocation, ToolResult};
use domain::{Failure, HostCall};

use crate::edit::files::{Files, unless_cancelled};
use crate::glob_search::{FoundFiles, compile, full_pattern};
use crate::paths::ResolvedPath;

/// The bytes an editor has of a file; `None` where it has none or too many.
pub(crate) async fn read_bytes(
    path: &ResolvedPath,
    max: u64,
    call: &Invocation,
    files: &Files,
) -> Option<Vec<u8>> {
    if !call.context.abilities().read_bytes {
        return None;
    }
    match call_editor(HostCall::ReadBytes { path: path.path().to_owned() }, call, files).await {
        Ok(HostReply::Bytes(bytes)) if bytes.len() as u64 <= max => Some(bytes),
        Ok(_) | Err(_) => None,
    }
}

/// Why an editor says that there is nothing to read at a path; `None` where there is or where it cannot tell.
pub(crate) async fn check_readable(path: &ResolvedPath, call: &Invocation, files: &Files) -> Option<String> {
    if !call.context.abilities().stat {
        return None;
    }
    let shown = path.shown();
    match call_editor(HostCall::Stat { path: path.path().to_owned() }, call, files).await {
        Ok(HostReply::Stat { exists: false, .. }) => {
            Some(format!("There is no {shown}. Look for it with glob or directory_tree."))
        }
        Ok(HostReply::Stat { directory: true, .. }) => {
            Some(format!("{shown} is a folder. Use directory_tree to list it."))
        }
        Ok(_) | Err(_) => None,
    }
}

/// The files below a folder of the workspace that match, as an editor knows them; `None` where it cannot tell.
pub(crate) async fn find_files(
    folder: &ResolvedPath,
    pattern: &str,
    call: &Invocation,
    files: &Arc<Files>,
) -> Result<Option<FoundFiles>, String> {
    let root = call.scope.roots.first().filter(|root| folder.path().starts_with(root)).cloned();
    let (true, Some(root)) = (call.context.abilities().glob, root) else { return Ok(None) };
    let below = folder.path().strip_prefix(&root).unwrap_or(Path::new(""));
    let Some(asked) = below.join(full_pattern(pattern)).to_str().map(str::to_owned) else { return Ok(None) };
    let Ok(HostReply::Paths(paths)) = call_editor(HostCall::Glob { pattern: asked }, call, files).await
    else {
        return Ok(None);
    };
    let matcher = compile(pattern)?;
    let fits = |path: &PathBuf| path.strip_prefix(folder.path()).is_ok_and(|rest| matcher.is_match(rest));
    let mut paths: Vec<PathBuf> = paths.into_iter().map(|path| root.join(path)).filter(fits).collect();
    paths.sort();
    paths.dedup();
    let more = paths.len() > files.limits.paths;
    paths.truncate(files.limits.paths);
    let scope = call.scope.clone();
    let paths = files
        .blocking(folder, move |files, _| {
            let is_inside = |path: &PathBuf| {
                let resolved = path.to_str().map(|text| files.paths.resolve(text, &scope));
                matches!(resolved, Some(Ok(resolved)) if resolved.is_inside())
            };
            Ok(paths.into_iter().filter(is_inside).collect())
        })
        .await?;
    Ok(Some(FoundFiles { paths, more }))
}

/// Runs a command in a terminal of the editor.
pub(crate) async fn run_in_terminal(
    terminal: Terminal,
    time: Duration,
    call: &Invocation,
    files: &Files,
) -> Result<ToolResult, String> {
    // The editor ends the command in time and then tells its output.
    let deadline = time + files.limits.host_time;
    let reply =
        unless_cancelled(&call.cancel, call.context.host(HostCall::Terminal(terminal), deadline)).await?;
    match reply {
        Ok(HostReply::Terminal { output, truncated, exit_code }) => {
            Ok(describe_result(&output, truncated, exit_code, time, files.limits.output_bytes))
        }
        Ok(_) => Err("The editor gave no output of the command.".to_owned()),
        Err(failure) => Err(format!("The command did not run in a terminal of the editor: {failure}")),
    }
}

fn describe_result(
    output: &str,
    truncated: bool,
    exit: Option<i32>,
    time: Duration,
    max: usize,
) -> ToolResult {
    let output = output.trim_end();
    let start = output.ceil_char_boundary(output.len().saturating_sub(max));
    let mut text = String::new();
    if truncated || start > 0 {
        text.push_str("[the beginning was left out]\n");
    }
    text.push_str(if output.is_empty() { "(no output)" } else { &output[start..] });
    match exit {
        Some(0) => return ToolResult::text(text),
        Some(code) => text.push_str(&format!("\n[exit code {code}]")),
        None => text.push_str(&format!(
            "\n[ended by a signal or after {} ms; give a longer timeout or run it in the background]",
            time.as_millis()
        )),
    }
    ToolResult { error: true, ..ToolResult::text(text) }
}

async fn call_editor(request: HostCall, call: &Invocation, files: &Files) -> Result<HostReply, Failure> {
    let reply = unless_cancelled(&call.cancel, call.context.host(request, files.limits.host_time)).await;
    reply.unwrap_or_else(|stopped| Err(Failure::user(stopped)))
}
