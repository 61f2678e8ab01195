//! `shell_command`: a line for the shell. At its time limit, or at once where that is asked for, it becomes a job.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::host::Terminal;
use domain::tool::{Exposure, Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::{Details, ShellPart};
use domain::{Review, SessionId};
use platform::project_files;
use process::sandbox::{Allowance, Grant, Support};
use process::{ShellLanguage, Spawn};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::directory_tree::workspace_folder;
use super::shell_exposure::exposure_in_wall;
use super::shell_output::{describe_result, take_back};
use crate::edit::files::Files;
use crate::editor;
use crate::git_guard;
use crate::jobs::{Afterword, CommandEnd, Jobs, Start};
use crate::lenient;
use crate::needs::{Needs, needs_of};
use crate::offered::BuiltInTool;
use crate::options::Confine;
use crate::outputs::Output;
use crate::paths::{ResolvedPath, path_texts};
use crate::refused::{self, Refused};
use crate::sealed::Sealed;
use crate::shell::{self, LinePaths, ShellLine, quiet};

pub struct ShellCommand {
    pub files: Arc<Files>,
    pub jobs: Arc<Jobs>,
    pub runner: ShellRunner,
    /// Grants that lines need, as their last reviews found; what a person approved is what runs.
    pub reviewed: Mutex<VecDeque<(SessionId, String, Vec<Grant>)>>,
    /// Chats whose people know that there is no sandbox.
    pub told: Mutex<HashSet<SessionId>>,
}

/// How long a stopped command has to end by itself: a person who stops a turn waits for it.
const STOP_GRACE: Duration = Duration::from_millis(150);
/// A program in a pseudo-terminal that is silent for so long may wait for input: the model is told what it shows.
const SILENT_TERMINAL: Duration = Duration::from_secs(2);
/// Reviews that are kept until their lines run.
const MAX_REVIEWED: usize = 256;
/// What a remembered grant begins with.
const GRANT_KEY: &str = "sandbox ";
/// Folders that hold folders whose files run later: to copy one is to write into those.
const FOLDERS_ABOVE: &[&str] = &[".cargo", ".config", ".forgejo", ".gitea", ".github", ".local"];

/// Variables for a command, by name.
type Environment = Vec<(String, String)>;

/// By these a program can tell that an assistant started it, and for which chat. The names are those of ECA.
pub(super) fn marks_of(session: &domain::SessionId) -> [(String, String); 2] {
    [("ECA_AGENT".to_owned(), "1".to_owned()), ("ECA_CHAT_ID".to_owned(), session.to_string())]
}

/// How a line is run.
#[derive(Clone, Debug)]
pub struct ShellRunner {
    pub shell: Option<Vec<String>>,
    pub withheld: Vec<String>,
    pub home: Option<PathBuf>,
    pub sandbox: Option<Confine>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    pub(super) command: String,
    #[serde(default = "workspace_folder", deserialize_with = "lenient::folder")]
    working_directory: String,
    /// Milliseconds
    #[serde(default, deserialize_with = "lenient::positive")]
    timeout: Option<usize>,
    /// Label; runs as a job that outlives the call
    #[serde(default, deserialize_with = "label")]
    pub(super) background: Option<String>,
    /// It runs in a pseudo-terminal. Rare, so the schema leaves it out and the results name it.
    #[serde(default, deserialize_with = "lenient::flag")]
    #[schemars(skip)]
    pty: bool,
    /// It never becomes a job: its result must say whether it succeeded.
    #[serde(default, deserialize_with = "lenient::flag")]
    #[schemars(skip)]
    ends_at_limit: bool,
    /// What the sandbox must allow beyond its rules, after it refused: network:HOST, port:NUMBER, write:/PATH, secret:PATH,
    /// registries, registry-credentials, run-later, git-config, git-credentials, ssh, signing, cloud, containers. The user
    /// is asked
    #[serde(default, deserialize_with = "lenient::grants")]
    #[schemars(skip)]
    pub(super) grants: Vec<String>,
}

/// This machine builds the whole wall: namespaces, not Landlock alone.
pub(super) fn is_wall_whole() -> bool {
    process::known_sandbox_support() == Some(Support::Namespaces)
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
    const DESCRIPTION: &'static str = "Run a bash line. Nothing can be typed into it without \"pty\": true.";
    const EFFECT: ToolEffect = ToolEffect::RunsCommands;

    /// Reviews depend on which wall this machine can build.
    async fn prepare(&self) {
        if let Some(confine) = &self.runner.sandbox {
            process::sandbox_support(&confine.sandbox).await;
        }
    }

    fn remember(&self, keys: &[String], scope: &Scope) {
        let grants = keys.iter().filter_map(|key| Grant::parse(key.strip_prefix(GRANT_KEY)?).ok());
        let grants: Vec<Grant> = grants.collect();
        if let Some(confine) = self.runner.sandbox.as_ref().filter(|_| !grants.is_empty()) {
            confine.give_to(scope, &grants);
        }
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        if input.command.trim().is_empty() {
            return Err("The command is empty.".to_owned());
        }
        let mut review = Review { summary: format!("$ {}", input.command.trim()), ..Review::default() };
        let folder =
            self.files.paths.review("working_directory", &input.working_directory, scope, &mut review)?;
        let (line, paths) = self.analyze(&input.command, &folder, scope);
        for path in &paths.outside {
            if !review.outside.contains(path) {
                review.outside.push(path.clone());
            }
        }
        self.files.paths.record_line_paths(&input.command, scope, &review.outside);
        review.keys = line.keys();
        review.subcommands = line.names();
        review.commands = line.texts();
        review.unclear = line.unclear;
        review.read_paths = paths.named.iter().map(|path| path_texts(path, scope)).collect();
        review.reads_unnamed = paths.reads_unnamed;
        let needs = needs_of(&line, folder.path());
        self.review_exposure(&line, &paths, &input, &needs, &mut review);
        self.review_grants(&input, &needs, scope, &mut review)?;
        let is_remembered = |key: &String| scope.remembered.contains(key);
        let parts =
            review.keys.iter().map(|key| ShellPart { key: key.clone(), remembered: is_remembered(key) });
        review.details = Some(Details::Shell { commands: parts.collect() });
        let reasons: Vec<String> = line.reasons.iter().chain(&paths.reasons).cloned().collect();
        if !reasons.is_empty() {
            review.must_ask = Some(format!("{}.", reasons.join("; ")));
        }
        let safe = review.must_ask.is_none() && review.outside.is_empty() && review.grants.is_empty();
        review.changes = !(safe && line.read_only());
        let is_allowed = |command: &shell::Command| command.read_only || is_remembered(&command.key);
        review.harmless = safe && line.commands.iter().all(is_allowed);
        let stays = !line.unclear && paths.reasons.is_empty() && review.outside.is_empty() && !needs.more;
        let is_plain = has_given_secrets_only(&input, &review);
        review.contained = stays && is_plain && !self.has_own_shell() && self.contains_commands();
        self.review_sealing(&input, &line, &paths, scope, &mut review);
        review.cause = self.cause(&input, &needs, &review);
        // What git rewrites comes from the repository, and half of a checkout would be worse than none.
        let is_git = |command: &shell::Command| command.read_only || command.key.starts_with("git ");
        let asks = input.grants.iter().any(|grant| grant == "run-later");
        review.keeps_run_later = is_wall_whole() && !asks && !line.commands.iter().all(is_git);
        if asks {
            review.run_later.push("files that other programs run".to_owned());
        }
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let folder = self.files.paths.resolve_approved(&input.working_directory, &call)?;
        let (line, paths) = self.analyze(&input.command, &folder, &call.scope);
        self.check_approved(&input, &line, &paths, &call)?;
        let (command, mut environment) = self.harden(&line, input.command.clone(), &paths, &call).await?;
        environment.extend(marks_of(&call.scope.session));
        let (allowance, sealed) = self.allowance(&input, &line, &paths, &folder, &call).await?;
        let mut taint = self.taint_of_output(&line, &paths, &sealed, &call).await;
        self.report_missing_wall(&call);
        let limits = &self.files.limits;
        let asked = input.timeout.map(|millis| Duration::from_millis(millis as u64));
        let time = asked.unwrap_or(limits.shell_time).min(limits.max_shell_time);
        let is_attached = input.background.is_none();
        // A terminal of the editor is outside of the wall.
        if is_attached && !input.pty && call.context.abilities().terminal && self.runner.sandbox.is_none() {
            let terminal = self.terminal(command, &folder, environment, time);
            let mut result = editor::run_in_terminal(terminal, time, &call, &self.files).await?;
            taint.merge(&result.taint);
            result.taint = taint;
            return Ok(result);
        }
        let environment = environment.into_iter().chain(quiet::for_line(&line, input.pty)).collect();
        let start = self.start_of(&input, &line, (command, environment), &folder, (allowance, sealed), &call);
        if !is_attached {
            let started = self.jobs.start(start, &call).await;
            return started.map(|text| ToolResult { taint, ..ToolResult::text(text) });
        }
        let attached = self.jobs.attach(start, &call).await?;
        let running = attached.command();
        let quiet = input.pty.then_some(SILENT_TERMINAL);
        let left = self.jobs.follow(attached, time, quiet, !input.ends_at_limit, &call).await;
        Ok(ToolResult { taint, ..describe_result(&left, &running.whole_output(), time) })
    }
}

impl ShellCommand {
    /// The call was approved with its paths, and may change what it changes.
    fn check_approved(
        &self,
        input: &Input,
        line: &ShellLine,
        paths: &LinePaths,
        call: &Invocation,
    ) -> Result<(), String> {
        let approved = |path: &&PathBuf| {
            call.outside_allowed && self.files.paths.line_was_approved_with(&input.command, path, call)
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
        Ok(())
    }

    /// Lines are for a shell that is not analyzed.
    pub(super) fn has_own_shell(&self) -> bool {
        self.runner.shell.is_some() || process::shell_language() == ShellLanguage::PowerShell
    }

    fn analyze(&self, command: &str, folder: &ResolvedPath, scope: &Scope) -> (ShellLine, LinePaths) {
        let mut line = shell::analyze(command);
        if self.has_own_shell() {
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

    /// What the line could send out, and which files it could change that run later.
    fn review_exposure(
        &self,
        line: &ShellLine,
        paths: &LinePaths,
        input: &Input,
        needs: &Needs,
        review: &mut Review,
    ) {
        // A whole wall without grants reaches no other machine but package registries.
        let mut granted = parse_grants(&input.grants).unwrap_or_default();
        granted.extend(needs.grants.iter().cloned());
        granted.extend(self.runner.sandbox.iter().flat_map(|confine| confine.grants.iter().cloned()));
        let of_line = if self.has_own_shell() { Exposure::Unknown } else { line.exposure() };
        review.exposure = Some(if self.runner.sandbox.is_some() && is_wall_whole() {
            exposure_in_wall(of_line, needs, &granted)
        } else if needs.publishes {
            of_line.max(Exposure::Network)
        } else {
            of_line
        });
        if line.changes_policy() {
            review.run_later.push("Dragoman's own settings".to_owned());
        }
        if line.may_change_files() {
            let runs_later = |path: &&std::path::PathBuf| {
                let name = path.file_name().unwrap_or_default();
                project_files::runs_later(path)
                    || FOLDERS_ABOVE.iter().chain(&["package.json"]).any(|above| name == *above)
            };
            let files = paths.named.iter().filter(runs_later).map(|path| path.display().to_string());
            review.run_later.extend(files);
        }
    }

    /// Each grant can be remembered, for the session and for the project; one that is not must be given by a person.
    fn review_grants(
        &self,
        input: &Input,
        needs: &Needs,
        scope: &Scope,
        review: &mut Review,
    ) -> Result<(), String> {
        let asked = parse_grants(&input.grants)?;
        // Without a sandbox there is nothing to grant.
        let Some(confine) = &self.runner.sandbox else { return Ok(()) };
        let is_new = |grant: &&Grant| !asked.contains(grant) && !confine.grants.contains(grant);
        let needed: Vec<Grant> = needs.grants.iter().filter(is_new).cloned().collect();
        let given = confine.given_to(scope);
        for grant in asked.iter().chain(&needed) {
            let key = format!("{GRANT_KEY}{grant}");
            if !scope.remembered.contains(&key) && !given.contains(grant) {
                review.grants.push(grant.meaning());
                review.keys.push(key);
            }
        }
        let mut reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        if reviewed.len() >= MAX_REVIEWED {
            reviewed.pop_front();
        }
        reviewed.push_back((scope.session.clone(), input.command.clone(), needed));
        Ok(())
    }

    /// The grants that the last review of this line found it to need.
    pub(super) fn take_reviewed(&self, command: &str, scope: &Scope) -> Vec<Grant> {
        let mut reviewed = self.reviewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |(session, line, _): &(SessionId, String, Vec<Grant>)| {
            *session == scope.session && line == command
        };
        let at = reviewed.iter().rposition(is_this);
        at.and_then(|at| reviewed.remove(at)).map(|(_, _, grants)| grants).unwrap_or_default()
    }

    /// Commands run behind the whole wall, and the user did not ask to be asked about them.
    pub(super) fn contains_commands(&self) -> bool {
        self.runner.sandbox.as_ref().is_some_and(|confine| !confine.asks) && is_wall_whole()
    }

    /// The command as it is started.
    fn start_of(
        &self,
        input: &Input,
        line: &ShellLine,
        (command, environment): (String, Environment),
        folder: &ResolvedPath,
        (allowance, sealed): (Allowance, Sealed),
        call: &Invocation,
    ) -> Start {
        let afterword = self.afterword(input, &allowance, folder, sealed, call);
        let spawn = self.spawn(&command, folder, environment, allowance);
        let spawn = match (input.pty, &input.background) {
            (true, None) => spawn.terminal().grace(STOP_GRACE),
            (true, Some(_)) => spawn.terminal(),
            (false, Some(_)) => spawn.piped_input(),
            // A program that reads its input is told at once that there is none.
            (false, None) => spawn.grace(STOP_GRACE),
        };
        let name = || line.names().first().cloned().unwrap_or_default();
        let file = self.files.paths.outputs().file_of(&call.scope.session, call.item);
        Start {
            spawn,
            label: input.background.clone().unwrap_or_else(name),
            line: input.command.clone(),
            terminal: input.pty,
            output: Output::new(self.files.limits.output_bytes, file),
            afterword,
        }
    }

    /// What the model must know at the end of a command: what the sandbox refused, kept closed and took back.
    fn afterword(
        &self,
        input: &Input,
        allowance: &Allowance,
        folder: &ResolvedPath,
        sealed: Sealed,
        call: &Invocation,
    ) -> Afterword {
        let has_wall = self.runner.sandbox.is_some();
        let (strict, missing) = (allowance.strict, self.missing_run_later(allowance));
        let (folder, roots) = (folder.path().to_owned(), call.scope.roots.clone());
        let line = input.command.clone();
        Box::new(move |end: &CommandEnd| {
            let refused = Refused {
                output: &end.output,
                succeeded: end.succeeded,
                hosts: &end.hosts,
                strict,
                folder: &folder,
                roots: &roots,
                over_memory: end.over_memory,
            };
            let refused = has_wall.then(|| refused::describe(&refused)).flatten();
            let closed = sealed.describe(&line, &end.output, end.succeeded);
            [refused, closed, take_back(&missing, end.is_job)].into_iter().flatten().collect()
        })
    }

    fn missing_run_later(&self, allowance: &Allowance) -> Vec<PathBuf> {
        let sandbox = self.runner.sandbox.as_ref().filter(|_| allowance.strict);
        sandbox.map(|confine| confine.sandbox.missing_run_later()).unwrap_or_default()
    }

    fn spawn(
        &self,
        command: &str,
        folder: &ResolvedPath,
        environment: Environment,
        mut allowance: Allowance,
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
            .envs(quiet::VARIABLES.iter().copied())
            // `cd` would search other folders.
            .without_env(["CDPATH"])
            .without_env(&self.runner.withheld)
            .envs(environment);
        match &self.runner.sandbox {
            Some(confine) => {
                if !allowance.strict {
                    allowance.grants.extend(confine.grants.iter().cloned());
                }
                spawn.confine(confine.sandbox.clone(), allowance)
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
            _ => process::shell_command(),
        };
        arguments.push(command);
        let set = quiet::VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into()));
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

pub(super) fn parse_grants(grants: &[String]) -> Result<Vec<Grant>, String> {
    grants.iter().map(|grant| Grant::parse(grant)).collect()
}

/// What the call asks for is nothing but secrets that a person opened before.
fn has_given_secrets_only(input: &Input, review: &Review) -> bool {
    review.grants.is_empty() && input.grants.iter().all(|grant| grant.starts_with("secret:"))
}
