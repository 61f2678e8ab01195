//! One command that runs: its process, its output and its input, from its start to the moment when everything that it
//! left behind is settled.
//!
//! Must not know which tool started it. Invariants: one task reads its output and settles its end; a command that is
//! attached to a call ends with the call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::job::{Continued, Job, JobOutput, JobStatus};
use domain::tool::{Invocation, ToolContext};
use domain::{CancellationToken, SessionId};
use process::{Child, End, Exit, InputPipe, OutputPipe, Spawn};
use tokio::io::AsyncWriteExt;
use tokio::sync::{oneshot, watch};

use super::observer::JobsObserver;
use super::terminal_text::TerminalText;
use crate::live_output::OutputStream;
use crate::outputs::Output;

/// Lines that a client is shown of a job's output.
const SHOWN_LINES: usize = 2_000;
/// How long the state of the workspace after a job may take to be recorded.
const SETTLE_TIME: Duration = Duration::from_secs(60);
/// How long the end of a command that was ended is waited for.
const END_TIME: Duration = Duration::from_secs(3);
/// Ctrl-D: the end of the input.
const END_OF_INPUT: &str = "\u{4}";

/// A command to start.
pub(crate) struct Start {
    pub spawn: Spawn,
    pub label: String,
    pub line: String,
    /// It runs in a pseudo-terminal.
    pub terminal: bool,
    pub output: Output,
    /// What a model must know of its end beside its output.
    pub afterword: Afterword,
}

pub(crate) type Afterword = Box<dyn FnOnce(&CommandEnd) -> Vec<String> + Send>;

/// A command that has ended, as its afterword is made from it.
pub(crate) struct CommandEnd {
    pub output: String,
    pub succeeded: bool,
    /// Hosts that its sandbox refused.
    pub hosts: Vec<String>,
    pub over_memory: bool,
    /// It outlived its call.
    pub is_job: bool,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub(crate) struct EndedCommand {
    pub end: End,
    pub notes: Vec<String>,
}

pub(crate) struct RunningCommand {
    /// A job has one.
    id: OnceLock<String>,
    session: SessionId,
    /// The chat was tainted when it began, so files with secrets are closed for it or its output was counted.
    began_tainted: bool,
    /// Nobody approved it: it runs in the strictest sandbox.
    contained: bool,
    label: String,
    line: String,
    began: Instant,
    /// Milliseconds since 1970.
    began_at: u64,
    child: Child,
    terminal: bool,
    input: tokio::sync::Mutex<Option<InputPipe>>,
    /// Somebody ended it.
    killed: AtomicBool,
    output: Mutex<Output>,
    /// Shows the output while the call waits.
    shown: Mutex<Option<OutputStream>>,
    /// Bytes that it has printed.
    printed: watch::Sender<u64>,
    /// Its processes are gone and its output is read. Changed only with `settling` locked.
    ended: CancellationToken,
    /// Where the command is a job: answers when its changes are recorded.
    settling: Mutex<Option<oneshot::Receiver<Option<String>>>>,
    result: Mutex<Option<EndedCommand>>,
    /// Everything about its end is known.
    done: CancellationToken,
    observer: JobsObserver,
}

/// A command that ends with the call that holds this, unless it has become a job.
pub(crate) struct Attached(Arc<RunningCommand>);

impl Attached {
    pub(crate) fn command(&self) -> Arc<RunningCommand> {
        self.0.clone()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if !self.0.is_job() {
            self.0.child.begin_stop();
        }
    }
}

impl RunningCommand {
    pub(super) async fn start(
        start: Start,
        call: &Invocation,
        observer: JobsObserver,
    ) -> Result<Attached, String> {
        let Start { spawn, label, line, terminal, output, afterword } = start;
        let mut child = spawn.start().await.map_err(|error| error.to_string())?;
        let pipe = child.take_stdout();
        let input = tokio::sync::Mutex::new(child.take_stdin());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let command = Arc::new(Self {
            id: OnceLock::new(),
            session: call.scope.session.clone(),
            began_tainted: call.scope.tainted,
            contained: call.contained,
            label,
            line,
            began: Instant::now(),
            began_at: u64::try_from(since.as_millis()).unwrap_or(0),
            child,
            terminal,
            input,
            killed: AtomicBool::new(false),
            output: Mutex::new(output),
            shown: Mutex::new(Some(OutputStream::new(call.context.clone()))),
            printed: watch::Sender::new(0),
            ended: CancellationToken::new(),
            settling: Mutex::default(),
            result: Mutex::default(),
            done: CancellationToken::new(),
            observer,
        });
        tokio::spawn(attend(command.clone(), pipe, afterword));
        Ok(Attached(command))
    }

    /// Makes it a job that outlives its call. False: it has ended.
    pub(super) fn become_job(&self, context: &dyn ToolContext) -> bool {
        let (settled, answer) = oneshot::channel();
        {
            let mut settling = lock(&self.settling);
            if self.ended.is_cancelled() {
                return false;
            }
            *settling = Some(answer);
            self.id.get_or_init(next_id);
        }
        self.hide_output();
        context.goes_on(Continued { ended: self.ended.clone(), settled });
        true
    }

    /// The call is over: nobody looks at the output.
    pub(super) fn hide_output(&self) {
        if let Some(shown) = lock(&self.shown).take() {
            shown.finish();
        }
    }

    /// Waits for its end.
    pub(super) async fn wait(&self) -> EndedCommand {
        self.done.cancelled().await;
        let ended = lock(&self.result).clone();
        ended.unwrap_or(EndedCommand { end: End::Signalled(0), notes: Vec::new() })
    }

    /// Waits until it has printed nothing for so long; for ever where that is not given.
    pub(super) async fn is_silent_for(&self, quiet: Option<Duration>) {
        let Some(quiet) = quiet else { return std::future::pending().await };
        let mut printed = self.printed.subscribe();
        while tokio::time::timeout(quiet, printed.changed()).await.is_ok_and(|changed| changed.is_ok()) {}
    }

    /// Types a line; one that is only control characters is typed as it is.
    pub(super) async fn write(&self, text: &str) -> Result<(), String> {
        let mut input = self.input.lock().await;
        let Some(pipe) = input.as_mut() else {
            return Err(format!(
                "{} has no input. Start such a command with \"pty\": true, or with \"background\", to type into it.",
                self.id()
            ));
        };
        if !self.terminal && text == END_OF_INPUT {
            *input = None;
            return Ok(());
        }
        let mut typed = text.to_owned();
        if text.chars().any(|character| !character.is_control()) || text.is_empty() {
            typed = format!("{}\n", text.trim_end_matches(['\r', '\n']));
        }
        if self.terminal {
            // The key Enter.
            typed = typed.replace('\n', "\r");
        }
        pipe.write_all(typed.as_bytes())
            .await
            .map_err(|error| format!("{} takes no input: {error}.", self.id()))
    }

    pub(super) fn begin_stop(&self) {
        if self.is_running() {
            self.killed.store(true, Ordering::Relaxed);
            self.child.begin_stop();
        }
    }

    /// Ends it, and waits until that is settled, a moment at most.
    pub(crate) async fn stop(&self) {
        self.begin_stop();
        let _ = tokio::time::timeout(END_TIME, self.done.cancelled()).await;
    }

    /// Empty where it is no job.
    pub(crate) fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    pub(super) fn line(&self) -> &str {
        &self.line
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn began_tainted(&self) -> bool {
        self.began_tainted
    }

    pub(super) fn is_contained(&self) -> bool {
        self.contained
    }

    pub(crate) fn is_job(&self) -> bool {
        self.id.get().is_some()
    }

    pub(super) fn is_running(&self) -> bool {
        !self.done.is_cancelled()
    }

    /// Everything that it has printed, for the result of its call.
    pub(crate) fn whole_output(&self) -> String {
        lock(&self.output).whole()
    }

    /// What it said since it was last read.
    pub(super) fn news(&self) -> String {
        let text = lock(&self.output).take_new();
        if text.trim_end().is_empty() { "(no new output)".to_owned() } else { text.trim_end().to_owned() }
    }

    /// Its state and its news.
    pub(super) fn report(&self) -> String {
        format!("{} ({}): {}\n{}", self.id(), self.label, self.status_text(), self.news())
    }

    pub(super) fn status_text(&self) -> String {
        match self.child.exit().filter(|_| !self.is_running()) {
            None => format!("running for {} s", self.began.elapsed().as_secs()),
            Some(Exit { code: Some(code), .. }) => format!("exit {code}"),
            Some(Exit { signal, .. }) => format!("ended by signal {}", signal.unwrap_or(0)),
        }
    }

    fn status(&self) -> JobStatus {
        match self.child.exit().filter(|_| !self.is_running()) {
            None => JobStatus::Running,
            Some(_) if self.killed.load(Ordering::Relaxed) => JobStatus::Killed,
            Some(Exit { code: Some(0), .. }) => JobStatus::Completed,
            Some(_) => JobStatus::Failed,
        }
    }

    fn exit_code(&self) -> Option<i32> {
        self.child.exit().and_then(|exit| exit.code)
    }

    pub(super) fn info(&self) -> Job {
        Job {
            id: self.id().to_owned(),
            session: self.session.clone(),
            chat_title: None,
            label: self.label.clone(),
            command: self.line.clone(),
            status: self.status(),
            exit_code: self.exit_code(),
            started_at: self.began_at,
            elapsed: self.began.elapsed(),
        }
    }

    /// The newest output for people, as whole lines where they are whole.
    pub(super) fn shown_output(&self) -> JobOutput {
        let text = lock(&self.output).text();
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(SHOWN_LINES);
        let lines = lines[from..].iter().map(|line| (*line).to_owned()).collect();
        JobOutput { lines, status: self.status(), exit_code: self.exit_code() }
    }

    fn add_output(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let total = {
            let mut output = lock(&self.output);
            output.push(bytes);
            output.total()
        };
        if let Some(shown) = &*lock(&self.shown) {
            shown.push(bytes);
        }
        self.printed.send_replace(total);
    }

    /// The end of its processes, with what there is to say about it.
    async fn end(&self, afterword: Afterword) -> EndedCommand {
        if self.killed.load(Ordering::Relaxed) {
            self.child.stop().await;
        }
        let exit = self.child.wait().await;
        let end = End::from(exit);
        let may_be_killed = matches!(end, End::Signalled(9) | End::Exited(137));
        let over_memory = may_be_killed && self.child.was_over_memory().await;
        let leftovers = self.child.take_back().await;
        let facts = CommandEnd {
            output: lock(&self.output).text(),
            succeeded: exit.success(),
            hosts: self.child.refused_hosts(),
            over_memory,
            is_job: self.is_job(),
        };
        let mut notes = afterword(&facts);
        notes.extend(leftovers.sentence());
        EndedCommand { end, notes }
    }
}

/// Reads a command's output to its end, and settles what it left.
async fn attend(command: Arc<RunningCommand>, pipe: Option<OutputPipe>, afterword: Afterword) {
    if let Some(pipe) = pipe {
        let mut terminal_text = command.terminal.then(TerminalText::default);
        let read = |bytes: &[u8]| match &mut terminal_text {
            Some(text) => command.add_output(&text.clean(bytes)),
            None => command.add_output(bytes),
        };
        command.child.read_output(pipe, read).await;
    }
    let ended = command.end(afterword).await;
    let settling = {
        let mut settling = lock(&command.settling);
        command.ended.cancel();
        settling.take()
    };
    command.hide_output();
    if let Some(settling) = settling {
        let settled = tokio::time::timeout(SETTLE_TIME, settling).await;
        let text = settled.ok().and_then(Result::ok).flatten();
        for note in ended.notes.iter().chain(&text) {
            command.add_output(format!("\n{note}\n").as_bytes());
        }
    }
    *lock(&command.result) = Some(ended);
    command.done.cancel();
    if command.is_job() {
        command.observer.observe();
    }
}

fn next_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("job-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
