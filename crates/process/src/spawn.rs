//! What to start and how: program or shell line, directory, environment, input and limits. Building a
//! `Spawn` does nothing; `run` and `start` do.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use platform::programs::{self, Found};
use sandbox::{Allowance, Sandbox};

use crate::child::Child;
use crate::confine::{Confined, Confinement};
use crate::environment;
use crate::error::ProcessError;
use crate::output::OutputLimit;
use crate::pipes::{self, Receiver, Sender};
use crate::pty;
use crate::reaper;
use crate::shell;

/// A program to start. Errors and output are read, input is empty, the environment is ours,
/// unless said otherwise.
#[derive(Debug, Clone)]
pub struct Spawn {
    program: OsString,
    /// Taken where `program` is not installed.
    fallback: Option<OsString>,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    clear_environment: bool,
    environment: Vec<(OsString, Option<OsString>)>,
    input: Input,
    merge_stderr: bool,
    /// Its input and output are a pseudo-terminal.
    terminal: bool,
    confinement: Option<Confinement>,
    pub(crate) deadline: Duration,
    pub(crate) grace: Duration,
    pub(crate) limit: OutputLimit,
}

#[derive(Debug, Clone)]
enum Input {
    Empty,
    Bytes(Vec<u8>),
    Piped,
}

impl Spawn {
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            fallback: None,
            arguments: Vec::new(),
            directory: None,
            clear_environment: false,
            environment: Vec::new(),
            input: Input::Empty,
            merge_stderr: false,
            terminal: false,
            confinement: None,
            deadline: Duration::from_secs(120),
            grace: Duration::from_millis(400),
            limit: OutputLimit::default(),
        }
    }

    /// A line for the shell: bash, or sh where there is no bash. See [`crate::shell_language`].
    pub fn shell(line: impl Into<OsString>) -> Self {
        let shell = shell::shell();
        let mut spawn = Self::new(&shell.program).args(shell.arguments).arg(line.into());
        spawn.fallback.clone_from(&shell.fallback);
        spawn
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Starts from an empty environment instead of that of this process.
    pub fn clear_environment(mut self) -> Self {
        self.clear_environment = true;
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    pub fn envs(
        mut self,
        variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> Self {
        for (name, value) in variables {
            self = self.env(name, value);
        }
        self
    }

    /// Withholds variables, such as those that hold secrets, from the child.
    pub fn without_env(mut self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.environment.extend(names.into_iter().map(|name| (name.as_ref().to_owned(), None)));
        self
    }

    /// The child reads these bytes, then the end of its input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// For `start`: the child's input is written through [`Child::take_stdin`].
    pub fn piped_input(mut self) -> Self {
        self.input = Input::Piped;
        self
    }

    /// Errors go into the output, in the order in which they were written.
    pub fn merge_stderr(mut self) -> Self {
        self.merge_stderr = true;
        self
    }

    /// For `start`: the child has a pseudo-terminal of its own. What it shows is its output, what is written to its input
    /// is typed.
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Runs it behind the wall of this sandbox, with this allowance.
    pub fn confine(mut self, sandbox: Arc<Sandbox>, allowance: impl Into<Allowance>) -> Self {
        self.confinement = Some(Confinement { sandbox, allowance: allowance.into() });
        self
    }

    /// For `run`: how long it may take (120 s unless said otherwise).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long the tree has between SIGTERM and SIGKILL (400 ms unless said otherwise).
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// For `run`: how much of each stream is kept.
    pub fn limit(mut self, limit: OutputLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Starts a long-lived child whose pipes the caller serves. The tree ends with the handle.
    pub async fn start(self) -> Result<Child, ProcessError> {
        match (self.launch(&self.program).await, &self.fallback) {
            (Err(ProcessError::NotFound { .. }), Some(fallback)) => self.launch(fallback).await,
            (result, _) => result,
        }
    }

    /// The bytes that `run` has to write.
    pub(crate) fn take_input(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.input, Input::Empty) {
            Input::Bytes(bytes) => {
                self.input = Input::Piped;
                bytes
            }
            input @ Input::Empty | input @ Input::Piped => {
                self.input = input;
                Vec::new()
            }
        }
    }

    async fn launch(&self, program: &OsStr) -> Result<Child, ProcessError> {
        // A missing directory and a missing program are the same error number; the user must know which.
        if let Some(directory) = self.directory.as_ref().filter(|directory| !directory.is_dir()) {
            return Err(ProcessError::NoDirectory { path: directory.clone() });
        }
        let name = program.to_string_lossy();
        let failed = |source| ProcessError::from_spawn(&name, source);
        let (command, mut confined) = match self.confined(program).await? {
            Some(mut confined) => {
                let command = std::mem::replace(&mut confined.command, Command::new(program));
                (command, Some(confined))
            }
            None => {
                let mut command = self.plain_command(program)?;
                command.args(&self.arguments);
                (command, None)
            }
        };
        let (command, ends) = self.complete(command).await.map_err(failed)?;
        // The helper hands the terminal to the command's own session.
        let takes_terminal = self.terminal && confined.is_none();
        let started = reaper::spawn(command, self.grace, takes_terminal).await?.map_err(failed)?;
        let mut child = Child::new(started, ends.stdin, Some(ends.stdout), ends.stderr);
        child.leftovers = Mutex::new(confined.as_mut().and_then(|confined| confined.leftovers.take()));
        child.attendant = confined.map(Confined::serve).transpose().map_err(failed)?;
        Ok(child)
    }

    /// Windows finds only `.exe` by itself, and would look into the current folder first.
    fn plain_command(&self, program: &OsStr) -> Result<Command, ProcessError> {
        if !cfg!(windows) {
            return Ok(Command::new(program));
        }
        let directory = self.directory.clone().unwrap_or_default();
        Ok(Command::new(find_program(program, self.search_path().as_deref(), &directory)?))
    }

    /// The PATH that the child will have.
    fn search_path(&self) -> Option<OsString> {
        let own =
            self.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the child inherits this variable, and is looked for by it"
        )]
        let inherited = || (!self.clear_environment).then(|| std::env::var_os("PATH")).flatten();
        own.unwrap_or_else(inherited)
    }

    /// The command line of the helper where the child is confined.
    async fn confined(&self, program: &OsStr) -> Result<Option<Confined>, ProcessError> {
        let Some(confinement) = &self.confinement else { return Ok(None) };
        let directory = match &self.directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir().map_err(|error| ProcessError::from_spawn("the helper", error))?,
        };
        let program = find_program(program, self.search_path().as_deref(), &directory)?;
        let set: Vec<&OsStr> = self.environment.iter().map(|(name, _)| name.as_os_str()).collect();
        confinement.prepare(&program, &self.arguments, &directory, &set, self.terminal).await
    }

    /// Adds the directory, the environment and the pipes.
    async fn complete(&self, mut command: Command) -> io::Result<(Command, Ends)> {
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if self.clear_environment {
            command.env_clear();
        } else {
            environment::remove_secrets(&mut command);
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if self.terminal {
            let terminal = pty::open()?;
            command.stdin(terminal.theirs.try_clone()?);
            command.stdout(terminal.theirs.try_clone()?);
            command.stderr(terminal.theirs);
            return Ok((
                command,
                Ends { stdin: Some(terminal.input), stdout: terminal.output, stderr: None },
            ));
        }
        let (stdout, theirs) = pipes::output().await?;
        let mut stderr = None;
        if self.merge_stderr {
            command.stderr(theirs.try_clone()?);
        } else {
            let (ours, theirs) = pipes::output().await?;
            command.stderr(theirs);
            stderr = Some(ours);
        }
        command.stdout(theirs);
        let mut stdin = None;
        if let Input::Empty = self.input {
            command.stdin(Stdio::null());
        } else {
            let (ours, theirs) = pipes::input().await?;
            command.stdin(theirs);
            stdin = Some(ours);
        }
        Ok((command, Ends { stdin, stdout, stderr }))
    }
}

/// Our ends of the pipes.
struct Ends {
    stdin: Option<Sender>,
    stdout: Receiver,
    stderr: Option<Receiver>,
}

/// Finds a program as the child would: the helper and Windows could not say what is missing.
fn find_program(program: &OsStr, path: Option<&OsStr>, directory: &Path) -> Result<PathBuf, ProcessError> {
    let name = || program.to_string_lossy().into_owned();
    match programs::find(program, path, shell::program_endings().as_deref(), directory) {
        Found::Program(path) => Ok(path),
        Found::NotExecutable => Err(ProcessError::NotExecutable { program: name() }),
        Found::Nothing => Err(ProcessError::NotFound { program: name() }),
    }
}
