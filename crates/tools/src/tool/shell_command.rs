//! `shell_command`: a line for the shell, in the foreground with a time limit or as a job in the background.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::host::Terminal;
use domain::tool::{Invocation, Scope, ToolContext, ToolEffect, ToolResult};
use domain::tool_call::{Details, ShellPart};
use domain::{Part, Review};
use process::sandbox::Grant;
use process::{End, Finished, OutputLimit, Spawn};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::directory_tree::workspace_folder;
use crate::edit::files::Files;
use crate::editor;
use crate::git_guard;
use crate::jobs::Jobs;
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::options::Confine;
use crate::paths::ResolvedPath;
use crate::shell::{self, LinePaths, ShellLine};

pub struct ShellCommand {
    pub files: Arc<Files>,
    pub jobs: Arc<Jobs>,
    pub runner: ShellRunner,
}

/// Variables for a command, by name.
type Environment = Vec<(String, String)>;

/// How a line is run.
#[derive(Clone, Debug)]
pub struct ShellRunner {
    pub shell: Option<Vec<String>>,
    pub withheld: Vec<String>,
    pub home: Option<std::path::PathBuf>,
    pub sandbox: Option<Confine>,
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
    /// What the sandbox must allow beyond its rules, after it refused: network:HOST, port:NUMBER, write:/PATH,
    /// git-config, ssh, signing, cloud, containers. The user is asked
    #[serde(default)]
    grants: Vec<String>,
}

/// A label, or just `true`.
fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) if !text.is_empty() && text != "false" => Some(text),
        serde_json::Value::Bool(true) => Some("job".to_owned()),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => None,
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
        review.subcommands = line.names();
        review.commands = line.texts();
        review.unclear = line.unclear;
        review.read_paths = paths.named.iter().map(|path| path_texts(path, scope)).collect();
        review.reads_unnamed = paths.reads_unnamed;
        self.review_grants(&input.grants, scope, &mut review)?;
        let is_remembered = |key: &String| scope.remembered.contains(key);
        let parts =
            review.keys.iter().map(|key| ShellPart { key: key.clone(), remembered: is_remembered(key) });
        review.details = Some(Details::Shell { commands: parts.collect() });
        let reasons: Vec<String> = line.reasons.iter().chain(&paths.reasons).cloned().collect();
        if !reasons.is_empty() {
            review.must_ask = Some(format!("{}.", reasons.join("; ")));
        }
        let safe = review.must_ask.is_none() && review.outside.is_empty() && input.grants.is_empty();
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
        let (command, environment) = self.harden(&line, input.command.clone(), &paths, &call).await?;
        let grants = parse_grants(&input.grants)?;
        if let Some(label) = input.background {
            let spawn = self.spawn(&command, &folder, environment, grants);
            return self.jobs.start(spawn, &label, &input.command, &call).await.map(ToolResult::text);
        }
        let limits = &self.files.limits;
        let asked = input.timeout.map(|millis| Duration::from_millis(millis as u64));
        let time = asked.unwrap_or(limits.shell_time).min(limits.max_shell_time);
        // A terminal of the editor is outside of the wall.
        if call.context.abilities().terminal && self.runner.sandbox.is_none() {
            let terminal = self.terminal(command, &folder, environment, time);
            return editor::run_in_terminal(terminal, time, &call, &self.files).await;
        }
        let spawn = self.spawn(&command, &folder, environment, grants);
        let half = limits.output_bytes / 2;
        let spawn = spawn.deadline(time).limit(OutputLimit { head: half, tail: half });
        let stream = OutputStream::new(call.context.clone());
        let finished = spawn
            .run_with(&call.cancel, |_, bytes| stream.push(bytes))
            .await
            .map_err(|error| error.to_string())?;
        stream.finish();
        let mut result = describe_result(&finished, time);
        if self.runner.sandbox.is_some()
            && let Some(hint) = sandbox_hint(&finished)
        {
            result.parts.push(Part::text(hint));
        }
        Ok(result)
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

    /// The line as it is run. Where git only reads, it runs no program of the repository, even if a rule allowed the line.
    async fn harden(
        &self,
        line: &ShellLine,
        command: String,
        paths: &LinePaths,
        call: &Invocation,
    ) -> Result<(String, Environment), String> {
        if !line.only_inspects_git() {
            return Ok((command, Vec::new()));
        }
        let environment = git_guard::environment(&paths.git_folders, &call.scope, &call.cancel).await?;
        Ok((line.hardened().unwrap_or(command), environment))
    }

    /// Each grant can be remembered; one that is not must be given by a person.
    fn review_grants(&self, grants: &[String], scope: &Scope, review: &mut Review) -> Result<(), String> {
        let grants = parse_grants(grants)?;
        // Without a sandbox there is nothing to grant.
        for grant in grants.iter().filter(|_| self.runner.sandbox.is_some()) {
            let key = format!("sandbox {grant}");
            if !scope.remembered.contains(&key) {
                review.grants.push(grant.meaning());
            }
            review.keys.push(key);
        }
        Ok(())
    }

    fn spawn(
        &self,
        command: &str,
        folder: &ResolvedPath,
        environment: Environment,
        grants: Vec<Grant>,
    ) -> Spawn {
        let spawn = match self.runner.shell.as_deref() {
            Some([program, arguments @ ..]) => Spawn::new(program).args(arguments).arg(command),
            _ => Spawn::shell(command),
        };
        let spawn = spawn
            .directory(folder.path())
            // Without it bash may take another name of the same folder for the place where it is.
            .env("PWD", folder.path())
            .merge_stderr()
            .envs(NON_INTERACTIVE.iter().copied())
            // `cd` would search other folders.
            .without_env(["CDPATH"])
            .without_env(&self.runner.withheld)
            .envs(environment);
        match &self.runner.sandbox {
            Some(confine) => {
                let grants = confine.grants.iter().cloned().chain(grants).collect();
                spawn.confine(confine.sandbox.clone(), grants)
            }
            None => spawn,
        }
    }

    /// The same for a terminal of the editor, which can set variables but not take them away.
    fn terminal(
        &self,
        command: String,
        folder: &ResolvedPath,
        environment: Environment,
        time: Duration,
    ) -> Terminal {
        let (program, mut arguments) = match self.runner.shell.as_deref() {
            Some([program, arguments @ ..]) => (program.clone(), arguments.to_vec()),
            _ => ("bash".to_owned(), vec!["-c".to_owned()]),
        };
        arguments.push(command);
        let set = NON_INTERACTIVE.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let withheld = self.runner.withheld.iter().map(|name| (name.clone(), String::new()));
        Terminal {
            command: program,
            arguments,
            environment: set
                .chain([("CDPATH".to_owned(), String::new())])
                .chain(withheld)
                .chain(environment)
                .collect(),
            cwd: folder.path().to_owned(),
            time,
            output_limit: self.files.limits.output_bytes as u64,
        }
    }
}

fn parse_grants(grants: &[String]) -> Result<Vec<Grant>, String> {
    grants.iter().map(|grant| Grant::parse(grant)).collect()
}

/// What the sandbox refused, as far as it can be known, and how to ask for it.
fn sandbox_hint(finished: &Finished) -> Option<String> {
    let hosts = finished.refused_hosts.iter().map(|host| format!("network:{host}"));
    let mut grants: Vec<String> = hosts.collect();
    if !finished.success() {
        let output = finished.stdout.text();
        let says = |words: &[&str]| words.iter().any(|word| output.contains(word));
        if says(&["could not write config file", "could not lock config file"]) {
            grants.push("git-config".to_owned());
        }
        if says(&["Read-only file system", "EROFS"]) {
            grants.push("write:/PATH (the path that is read-only)".to_owned());
        }
        if says(&[
            "Could not resolve host",
            "Network is unreachable",
            "ENETUNREACH",
            "EAI_AGAIN",
            "name resolution",
        ]) {
            grants.push("network:HOST (the host it could not reach)".to_owned());
        }
    }
    (!grants.is_empty()).then(|| {
        format!(
            "[The sandbox may have refused this. To ask the user for more, repeat the call with grants: {}]",
            grants.join(", ")
        )
    })
}

/// Nobody is there to page, to edit or to type.
const NON_INTERACTIVE: &[(&str, &str)] =
    &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true")];

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

/// A path as rules compare it: relative to the workspace where it is inside, and absolute.
fn path_texts(path: &std::path::Path, scope: &Scope) -> [String; 2] {
    let inside = scope.roots.first().and_then(|root| path.strip_prefix(root).ok());
    [inside.unwrap_or(path).display().to_string(), path.display().to_string()]
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
