//! Runs the programs of hooks: in the sandbox of the workspace where there is one, without the user's keys.

use std::path::Path;
use std::sync::Arc;

use config::{HookAction, HookCommand};
use domain::{BoxFuture, CancellationToken};
use engine::{HookExit, HookRunner};
use process::sandbox::{Allowance, GitAccess, Grant};
use process::{End, Finished, OutputLimit, Spawn};

use crate::sandboxing::WorkspaceSandbox;

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
        let spawn = spawn.input(input).deadline(action.timeout).limit(limit).without_env(&self.withheld);
        let spawn = match folder {
            Some(folder) => spawn.directory(folder),
            None => spawn,
        };
        match &self.sandbox {
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
                Ok(finished) => exit_of(&finished, action),
                Err(error) => HookExit { status: None, stdout: String::new(), stderr: error.to_string() },
            }
        })
    }

    fn program(&self) -> String {
        std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
    }
}

fn exit_of(finished: &Finished, action: &HookAction) -> HookExit {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    let unfinished = |why: String| HookExit { status: None, stdout: String::new(), stderr: why };
    match finished.end {
        End::Exited(code) => HookExit { status: Some(code), stdout, stderr },
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
