//! Runs the programs of hooks: in the sandbox of the workspace where there is one, without the user's keys. A hook of the
//! user's own files may leave the sandbox.
//!
//! Invariant: what the sandbox stopped is always said, whatever the program made of it.

use std::path::Path;
use std::sync::Arc;

use config::{HookAction, HookCommand};
use domain::{BoxFuture, CancellationToken};
use engine::{HookExit, HookRunner};
use process::sandbox::{Allowance, GitAccess, Grant, stopped};
use process::{End, Finished, OutputLimit, Spawn};

use crate::sandboxing::WorkspaceSandbox;

/// What is shown of a line of a program.
const LONGEST_LINE: usize = 200;

/// What is kept of each output: effects are small.
const OUTPUT_BYTES: usize = 1 << 20;

pub(crate) struct WorkspaceHooks {
    /// Variables that hold secrets.
    withheld: Vec<String>,
    sandbox: Option<WorkspaceSandbox>,
}

impl WorkspaceHooks {
    pub(crate) fn new(resolved: &config::Resolved, sandbox: Option<&WorkspaceSandbox>) -> Arc<Self> {
        Arc::new(Self { withheld: resolved.secret_variables.clone(), sandbox: sandbox.cloned() })
    }

    fn spawn(&self, action: &HookAction, folder: Option<&Path>, input: String) -> Spawn {
        let spawn = match &action.command {
            HookCommand::Line(line) => Spawn::shell(line),
            HookCommand::File(file) if is_program(file) => Spawn::new(file),
            HookCommand::File(file) => Spawn::new("bash").arg(file),
        };
        let limit = OutputLimit { head: OUTPUT_BYTES, tail: 0 };
        let spawn = spawn
            .input(input)
            .deadline(action.timeout)
            .limit(limit)
            .without_env(&self.withheld)
            .env("ECA_AGENT", "1");
        let spawn = match action.outside_sandbox.as_deref().filter(|_| self.may_leave()).or(folder) {
            Some(folder) => spawn.directory(folder),
            None => spawn,
        };
        match self.sandbox_of(action) {
            Some(WorkspaceSandbox { sandbox, grants, .. }) => {
                let network = action.network.then_some(Grant::Network);
                let grants: Vec<Grant> = grants.iter().cloned().chain(network).collect();
                let allowance = Allowance { grants, git: GitAccess::Copy, ..Allowance::default() };
                spawn.confine(sandbox.clone(), allowance)
            }
            None => spawn,
        }
    }
}

impl WorkspaceHooks {
    /// The settings do not demand a sandbox for everything.
    fn may_leave(&self) -> bool {
        self.sandbox.as_ref().is_none_or(|sandbox| !sandbox.sandbox.is_required())
    }

    fn sandbox_of(&self, action: &HookAction) -> Option<&WorkspaceSandbox> {
        self.sandbox.as_ref().filter(|_| action.outside_sandbox.is_none() || !self.may_leave())
    }

    /// What the sandbox stopped, by the words of the program, and what helps.
    fn stopped(&self, action: &HookAction, finished: &Finished) -> Option<String> {
        self.sandbox_of(action)?;
        let (stderr, stdout) = (finished.stderr.text(), finished.stdout.text());
        let (stopped, line) = stopped::find(&stderr).or_else(|| stopped::find(&stdout))?;
        let line: String = line.chars().take(LONGEST_LINE).collect();
        let fix = match self.may_leave() {
            true => "`\"sandbox\": \"off\"` in the hook runs it outside; only your own files may say so",
            false => "`sandboxRequired` keeps every hook in the sandbox",
        };
        Some(format!("The sandbox stopped a part of it: {}. It said: {line}. {fix}.", stopped.sentence()))
    }
}

impl HookRunner for WorkspaceHooks {
    fn run<'a>(
        &'a self,
        action: &'a HookAction,
        folder: Option<&'a Path>,
        input: String,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HookExit> {
        Box::pin(async move {
            match self.spawn(action, folder, input).run(cancel).await {
                Ok(finished) => {
                    HookExit { stopped: self.stopped(action, &finished), ..exit_of(&finished, action) }
                }
                Err(error) => {
                    let stderr = error.to_string();
                    HookExit { status: None, stdout: String::new(), stderr, stopped: None }
                }
            }
        })
    }

    fn program(&self) -> String {
        std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
    }
}

fn exit_of(finished: &Finished, action: &HookAction) -> HookExit {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let unfinished =
        |why: String| HookExit { status: None, stdout: String::new(), stderr: why, stopped: None };
    match finished.end {
        End::Exited(code) => HookExit { status: Some(code), stdout, stderr, stopped: None },
        End::Signalled(signal) => unfinished(format!("It was ended by the signal {signal}.")),
        End::DeadlinePassed => {
            unfinished(format!("It was ended after {} ms, its time.", action.timeout.as_millis()))
        }
        End::Stopped => unfinished("It was stopped.".to_owned()),
    }
}

fn is_program(file: &Path) -> bool {
    platform::is_executable(file)
}
