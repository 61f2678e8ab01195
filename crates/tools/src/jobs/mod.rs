//! Commands that run: each may outlive the call that started it as a job, but not the program.
//!
//! A command begins attached to its call. At its limit it is detached: it becomes a job that is listed, read, typed into,
//! waited for and ended. Invariants: bounded in number and in output; every process is reaped, and all end with
//! [`Jobs::stop_all`]; a command whose call is gone and that is no job is ended. Ids are unique in the program.

mod command;
mod observer;
mod terminal_text;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::job::{Job, JobOutput};
use domain::tool::Invocation;
use domain::{CancellationToken, SessionId};

pub use observer::JobsObserver;

pub(crate) use command::{Afterword, Attached, CommandEnd, EndedCommand, RunningCommand, Start};

/// Ended jobs that can still be read.
const KEPT_ENDED: usize = 20;
/// How long the first output is waited for.
const FIRST_OUTPUT_WAIT: Duration = Duration::from_millis(1_500);
/// What was typed is answered when the job has been silent for so long, or after the longest wait.
const QUIET_AFTER_INPUT: Duration = Duration::from_millis(400);
const LONGEST_ANSWER: Duration = Duration::from_secs(5);
/// How long a job may take to read what is typed.
const INPUT_TIME: Duration = Duration::from_secs(5);

pub struct Jobs {
    list: Mutex<Vec<Arc<RunningCommand>>>,
    max_running: usize,
    observer: JobsObserver,
}

/// How a command that was attached to a call left it.
pub(crate) enum Left {
    Ended(EndedCommand),
    Stopped,
    /// It goes on as a job. Whether it was silent for a while, and has not reached its limit.
    GoesOn {
        id: String,
        is_quiet: bool,
    },
    /// It was ended at its limit: because the call says so, or because so many jobs run.
    EndedAtLimit(Option<usize>),
}

impl Jobs {
    pub fn new(max_running: usize, observer: JobsObserver) -> Self {
        Self { list: Mutex::default(), max_running, observer }
    }

    /// Starts a command that is attached to its call.
    pub(crate) async fn attach(&self, start: Start, call: &Invocation) -> Result<Attached, String> {
        RunningCommand::start(start, call, self.observer.clone()).await
    }

    /// Waits for the end of an attached command. At its limit, or where it is silent for `quiet`, it becomes a job, unless
    /// it must not.
    pub(crate) async fn follow(
        &self,
        attached: Attached,
        time: Duration,
        quiet: Option<Duration>,
        may_go_on: bool,
        call: &Invocation,
    ) -> Left {
        let command = attached.command();
        let is_quiet = tokio::select! {
            ended = command.wait() => return Left::Ended(ended),
            () = tokio::time::sleep(time) => false,
            () = command.is_silent_for(quiet) => true,
            () = call.cancel.cancelled() => {
                command.stop().await;
                return Left::Stopped;
            }
        };
        if !may_go_on {
            command.stop().await;
            return Left::EndedAtLimit(None);
        }
        if let Err(running) = self.detach(attached, call) {
            command.stop().await;
            return Left::EndedAtLimit(Some(running));
        }
        if command.is_job() {
            Left::GoesOn { id: command.id().to_owned(), is_quiet }
        } else {
            // It ended at this very moment.
            Left::Ended(command.wait().await)
        }
    }

    /// Makes a job of an attached command, unless it has just ended. `Err`: so many jobs run already.
    fn detach(&self, attached: Attached, call: &Invocation) -> Result<(), usize> {
        let command = attached.command();
        let running = self.lock().iter().filter(|job| job.is_running()).count();
        if running >= self.max_running {
            return Err(running);
        }
        if command.become_job(call.context.as_ref()) {
            let mut list = self.lock();
            list.push(command);
            forget_ended(&mut list);
        }
        drop(attached);
        self.observer.observe();
        Ok(())
    }

    /// Starts a job; tells its id and what it said at once.
    pub(crate) async fn start(&self, start: Start, call: &Invocation) -> Result<String, String> {
        let attached = self.attach(start, call).await?;
        let command = attached.command();
        command.hide_output();
        if let Err(running) = self.detach(attached, call) {
            return Err(format!("{running} jobs run already. End one with background_job first."));
        }
        tokio::select! {
            _ = command.wait() => {}
            () = tokio::time::sleep(FIRST_OUTPUT_WAIT) => {}
            () = call.cancel.cancelled() => {}
        }
        let id = command.id();
        Ok(format!(
            "Started {id}. Read, wait for, write to or end it with background_job.\n{}",
            command.news()
        ))
    }

    pub fn list(&self) -> Vec<Job> {
        self.lock().iter().map(|job| job.info()).collect()
    }

    /// What a client shows of a job of any session.
    pub fn output(&self, id: &str) -> Option<JobOutput> {
        Some(self.lock().iter().find(|job| job.id() == id)?.shown_output())
    }

    /// Ends a job of any session; `None`: there is no such job. Whether it ran.
    pub async fn kill(&self, id: &str) -> Option<bool> {
        let job = self.lock().iter().find(|job| job.id() == id).cloned()?;
        let was_running = job.is_running();
        job.stop().await;
        Some(was_running)
    }

    /// A job of the session that could open every file when it began.
    pub(crate) fn began_open(&self, session: &SessionId, id: &str) -> bool {
        self.find(session, id).is_ok_and(|job| !job.began_tainted())
    }

    /// A job of the session that nobody approved: its sandbox contains whatever is typed into it.
    pub(crate) fn is_contained(&self, session: &SessionId, id: &str) -> bool {
        self.find(session, id).is_ok_and(|job| job.is_contained())
    }

    /// The command line of a job of the session.
    pub(crate) fn line(&self, session: &SessionId, id: &str) -> Result<String, String> {
        self.find(session, id).map(|job| job.line().to_owned())
    }

    /// What a job of the session said since it was last read.
    pub(crate) fn read(&self, session: &SessionId, id: &str) -> Result<String, String> {
        Ok(self.find(session, id)?.report())
    }

    /// Waits for the end of a job, for so long at most, and tells what it said.
    pub(crate) async fn wait(
        &self,
        session: &SessionId,
        id: &str,
        time: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let job = self.find(session, id)?;
        tokio::select! {
            _ = job.wait() => {}
            () = tokio::time::sleep(time) => {}
            () = cancel.cancelled() => {}
        }
        Ok(job.report())
    }

    /// Types a line into a job, and tells what it answers.
    pub(crate) async fn write(
        &self,
        session: &SessionId,
        id: &str,
        text: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let job = self.find(session, id)?;
        if !job.is_running() {
            return Err(format!("It has ended. {}", job.report()));
        }
        tokio::select! {
            written = tokio::time::timeout(INPUT_TIME, job.write(text)) => {
                written.unwrap_or_else(|_| Err(format!("{id} does not read its input now.")))?;
            }
            () = cancel.cancelled() => return Err("Stopped.".to_owned()),
        }
        tokio::select! {
            _ = job.wait() => {}
            () = job.is_silent_for(Some(QUIET_AFTER_INPUT)) => {}
            () = tokio::time::sleep(LONGEST_ANSWER) => {}
            () = cancel.cancelled() => {}
        }
        Ok(job.report())
    }

    pub(crate) async fn stop(&self, session: &SessionId, id: &str) -> Result<String, String> {
        let job = self.find(session, id)?;
        if !job.is_running() {
            return Ok(format!("{id} had ended: {}.", job.status_text()));
        }
        job.stop().await;
        Ok(format!("{id} was ended."))
    }

    pub async fn stop_all(&self) {
        let jobs = std::mem::take(&mut *self.lock());
        stop(&jobs).await;
    }

    /// Ends the jobs of a session.
    pub async fn stop_all_of(&self, session: &SessionId) {
        let is_own = |job: &&Arc<RunningCommand>| job.session() == session && job.is_running();
        let jobs: Vec<Arc<RunningCommand>> = self.lock().iter().filter(is_own).cloned().collect();
        stop(&jobs).await;
    }

    /// The jobs of a session, one per line.
    pub(crate) fn describe(&self, session: &SessionId) -> String {
        let mut out = String::new();
        for job in self.lock().iter().filter(|job| job.session() == session) {
            let info = job.info();
            let (id, label, seconds) = (&info.id, &info.label, info.elapsed.as_secs());
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{id} ({label}): {}, {seconds} s: {}", job.status_text(), info.command);
        }
        if out.is_empty() { "No jobs.".to_owned() } else { out.trim_end().to_owned() }
    }

    fn find(&self, session: &SessionId, id: &str) -> Result<Arc<RunningCommand>, String> {
        let list = self.lock();
        let job = list.iter().find(|job| job.id() == id && job.session() == session);
        job.cloned().ok_or_else(|| {
            format!(
                "There is no job {id}. List the jobs; those of a Dragoman that was closed have ended with it."
            )
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<RunningCommand>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn stop(jobs: &[Arc<RunningCommand>]) {
    for job in jobs {
        job.begin_stop();
    }
    for job in jobs {
        job.stop().await;
    }
}

fn forget_ended(list: &mut Vec<Arc<RunningCommand>>) {
    let mut ended = list.iter().filter(|job| !job.is_running()).count();
    list.retain(|job| {
        let forget = ended > KEPT_ENDED && !job.is_running();
        ended -= usize::from(forget);
        !forget
    });
}
