//! `shell_command`: a line for the shell, in the foreground with a time limit or as a job in the background.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Review;
use domain::host::Terminal;
use domain::tool::{Invocation, Scope, ToolContext, ToolEffect, ToolResult};
use domain::tool_call::{Details, ShellPart};
use process::{End, Finished, OutputLimit, Spawn};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::directory_tree::workspace_folder;
use crate::edit::files::Files;
use crate::editor;
use crate::jobs::Jobs;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::paths::ResolvedPath;
use crate::shell::{self, LinePaths, ShellLine};

pub struct ShellCommand {
    pub files: Arc<Files>,
    pub jobs: Arc<Jobs>,
    pub runner: ShellRunner,
}

/// How a line is run.
#[derive(Clone, Debug)]
pub struct ShellRunner {
    pub shell: Option<Vec<String>>,
    pub withheld: Vec<String>,
    pub home: Option<std::path::PathBuf>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    command: String,
    #[serde(default = "workspace_folder")]
    working_directory: String,
    /// Milliseconds, at most 600000
    #[serde(default, deserialize_with = "lenient::number")]
    timeout: Option<usize>,
    /// Label; runs as a job that outlives the call
    #[serde(default, deserialize_with = "label")]
    background: Option<String>,
}

/// A label, or just `true`.
fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) if !text.is_empty() && text != "false" => Some(text),
        serde_json::Value::Bool(true) => Some("job".to_owned()),
        _ => None,
    })
}

impl BuiltInTool for ShellCommand {
    type Input = Input;

    const NAME: &'static str = "shell_command";
    const DESCRIPTION: &'static str = "Run a bash line. Nothing can be typed into it.";
    const EFFECT: ToolEffect = ToolEffect::RunsCommands;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        if input.command.trim().is_empty() {
            return Err("The command is empty.".to_owned());
        }
        let mut review = Review { summary: format!("$ {}", input.command.trim()), ..Review::default() };
        let folder =
            self.files.paths.review("working_directory", &input.working_directory, scope, &mut review)?;
        let (line, paths) = self.analyze(&input.command, &folder, scope);
        for path in paths.outside {
            if !review.outside.contains(&path) {
                review.outside.push(path);
            }
        }
        self.files.paths.record_line_paths(&input.command, scope, &review.outside);
        review.keys = line.keys();
        review.commands = line.texts();
        let is_remembered = |key: &String| scope.remembered.contains(key);
        let parts =
            review.keys.iter().map(|key| ShellPart { key: key.clone(), remembered: is_remembered(key) });
        review.details = Some(Details::Shell { commands: parts.collect() });
        let reasons: Vec<String> = line.reasons.iter().chain(&paths.reasons).cloned().collect();
        if !reasons.is_empty() {
            review.must_ask = Some(format!("{}.", reasons.join("; ")));
        }
        let safe = review.must_ask.is_none() && review.outside.is_empty();
        review.changes = !(safe && line.read_only());
        let is_allowed = |command: &shell::Command| command.read_only || is_remembered(&command.key);
        review.harmless = safe && line.commands.iter().all(is_allowed);
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let folder = self.files.paths.resolve_approved(&input.working_directory, &call)?;
        let (line, paths) = self.analyze(&input.command, &folder, &call.scope);
        let approved = |path: &&std::path::PathBuf| {
            call.outside_allowed && self.files.paths.line_was_approved_with(&input.command, path, &call)
        };
        if let Some(path) = paths.outside.iter().find(|path| !approved(path)) {
            return Err(format!(
                "{} is outside the workspace and this call was not approved for it.",
                path.display()
            ));
        }
        let reads = line.read_only() && paths.reasons.is_empty();
        if call.scope.read_only && !(reads && paths.outside.is_empty()) {
            return Err("The plan behavior runs only commands that change nothing.".to_owned());
        }
        if let Some(label) = input.background {
            let spawn = self.spawn(&input.command, &folder, reads);
            return self.jobs.start(spawn, &label, &input.command, &call).await.map(ToolResult::text);
        }
        let limits = &self.files.limits;
        let asked = input.timeout.map(|millis| Duration::from_millis(millis as u64));
        let time = asked.unwrap_or(limits.shell_time).min(limits.max_shell_time);
        if call.context.abilities().terminal {
            let terminal = self.terminal(input.command, &folder, reads, time);
            return editor::run_in_terminal(terminal, time, &call, &self.files).await;
        }
        let spawn = self.spawn(&input.command, &folder, reads);
        let half = limits.output_bytes / 2;
        let spawn = spawn.deadline(time).limit(OutputLimit { head: half, tail: half });
        let stream = OutputStream::new(call.context.clone());
        let finished = spawn
            .run_with(&call.cancel, |_, bytes| stream.push(bytes))
            .await
            .map_err(|error| error.to_string())?;
        stream.finish();
        Ok(describe_result(&finished, time))
    }
}

impl ShellCommand {
    fn analyze(&self, command: &str, folder: &ResolvedPath, scope: &Scope) -> (ShellLine, LinePaths) {
        let mut line = shell::analyze(command);
        if self.runner.shell.is_some() {
            line.reasons.push("It is for a shell whose lines are not analyzed".to_owned());
        }
        let paths = shell::find_line_paths(&line, folder.path(), scope, self.runner.home.as_deref());
        (line, paths)
    }

    fn spawn(&self, command: &str, folder: &ResolvedPath, reads: bool) -> Spawn {
        let spawn = match self.runner.shell.as_deref() {
            Some([program, arguments @ ..]) => Spawn::new(program).args(arguments).arg(command),
            _ => Spawn::shell(command),
        };
        let spawn = spawn
            .directory(folder.path())
            .merge_stderr()
            .envs(NON_INTERACTIVE.iter().copied())
            // A folder of its own is not ours to search.
            .without_env(["CDPATH"])
            .without_env(&self.runner.withheld);
        // What runs without being asked must not run what a repository's own configuration names.
        if reads { spawn.envs(QUIET_GIT.iter().copied()) } else { spawn }
    }

    /// The same for a terminal of the editor, which can set variables but not take them away.
    fn terminal(&self, command: String, folder: &ResolvedPath, reads: bool, time: Duration) -> Terminal {
        let (program, mut arguments) = match self.runner.shell.as_deref() {
            Some([program, arguments @ ..]) => (program.clone(), arguments.to_vec()),
            _ => ("bash".to_owned(), vec!["-c".to_owned()]),
        };
        arguments.push(command);
        let quiet = if reads { QUIET_GIT } else { &[] };
        let set = NON_INTERACTIVE.iter().chain(quiet).map(|(name, value)| ((*name).into(), (*value).into()));
        let withheld = self.runner.withheld.iter().map(|name| (name.clone(), String::new()));
        Terminal {
            command: program,
            arguments,
            environment: set.chain([("CDPATH".to_owned(), String::new())]).chain(withheld).collect(),
            cwd: folder.path().to_owned(),
            time,
            output_limit: self.files.limits.output_bytes as u64,
        }
    }
}

/// Nobody is there to page, to edit or to type.
const NON_INTERACTIVE: &[(&str, &str)] =
    &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true")];

/// Settings of a repository that make git run programs, switched off.
const QUIET_GIT: &[(&str, &str)] = &[
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "log.showSignature"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_CONFIG_KEY_3", "core.sshCommand"),
    ("GIT_CONFIG_VALUE_3", "false"),
    // A folder that looks like a repository inside of another one is none.
    ("GIT_CONFIG_KEY_4", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_4", "explicit"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Bytes as they come, shown as whole characters.
struct OutputStream {
    context: Arc<dyn ToolContext>,
    rest: Mutex<Vec<u8>>,
}

impl OutputStream {
    fn new(context: Arc<dyn ToolContext>) -> Self {
        Self { context, rest: Mutex::default() }
    }

    fn push(&self, bytes: &[u8]) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&rest) {
            Ok(_) => rest.len(),
            // A character that is not there in whole yet waits for the rest of it.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => rest.len(),
        };
        let ready: Vec<u8> = rest.drain(..complete).collect();
        if !ready.is_empty() {
            self.context.output(&String::from_utf8_lossy(&ready));
        }
    }

    fn finish(&self) {
        let rest = std::mem::take(&mut *self.rest.lock().unwrap_or_else(PoisonError::into_inner));
        if !rest.is_empty() {
            self.context.output(&String::from_utf8_lossy(&rest));
        }
    }
}

fn describe_result(finished: &Finished, time: Duration) -> ToolResult {
    let output = finished.stdout.text();
    let output = output.trim_end();
    let output = if output.is_empty() { "(no output)" } else { output };
    let notice = match finished.end {
        End::Exited(0) => return ToolResult::text(output),
        End::Exited(code) => format!("[exit code {code}]"),
        End::Signalled(signal) => format!("[ended by signal {signal}]"),
        End::DeadlinePassed => format!(
            "[ended after {} ms; give a longer timeout or run it in the background]",
            time.as_millis()
        ),
        End::Stopped => "[stopped by the user]".to_owned(),
    };
    ToolResult { error: true, ..ToolResult::text(format!("{output}\n{notice}")) }
}
