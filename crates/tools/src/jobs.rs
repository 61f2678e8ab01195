//! Jobs in the background: commands that outlive the call that started them, but not the program.
//!
//! Invariant: bounded in number and in output; every process is reaped, and all end with [`Jobs::stop_all`]. Their ids
//! are unique in the program.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::SessionId;
use domain::job::{Job, JobOutput, JobStatus};
use domain::tool::Invocation;
use process::{Child, Exit, OutputPipe, Spawn};
use tokio::io::AsyncReadExt;

const KEPT_OUTPUT: usize = 64 * 1024;
/// Ended jobs that can still be read.
const KEPT_ENDED: usize = 20;
/// How long the first output is waited for.
const FIRST_OUTPUT_WAIT: Duration = Duration::from_millis(1_500);

/// Lines that a client is shown of a job's output.
const SHOWN_LINES: usize = 2_000;

pub struct Jobs {
    list: Mutex<JobList>,
    max_running: usize,
    observer: JobsObserver,
}

#[derive(Default)]
struct JobList {
    jobs: Vec<Arc<RunningJob>>,
}

/// Called after every change of the list.
#[derive(Clone, Default)]
pub struct JobsObserver(pub Option<Arc<dyn Fn() + Send + Sync>>);

impl std::fmt::Debug for JobsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobsObserver")
    }
}

impl JobsObserver {
    fn observe(&self) {
        if let Some(observe) = &self.0 {
            observe();
        }
    }
}

struct RunningJob {
    id: String,
    session: SessionId,
    /// The chat was tainted when it began, so files with secrets are closed for it or its output was counted.
    began_tainted: bool,
    label: String,
    command: String,
    began: Instant,
    /// Milliseconds since 1970.
    began_at: u64,
    child: Child,
    /// Somebody ended it.
    killed: AtomicBool,
    output: Mutex<KeptOutput>,
}

#[derive(Default)]
struct KeptOutput {
    bytes: VecDeque<u8>,
    /// Bytes that were pushed out at the front.
    dropped: u64,
    /// How far a reader has read, counted from the job's first byte.
    read: u64,
}

impl Jobs {
    pub fn new(max_running: usize, observer: JobsObserver) -> Self {
        Self { list: Mutex::default(), max_running, observer }
    }

    /// Starts a job; tells its id and what it said at once.
    pub async fn start(
        &self,
        spawn: Spawn,
        label: &str,
        command: &str,
        call: &Invocation,
    ) -> Result<String, String> {
        let running = self.lock().jobs.iter().filter(|job| job.is_running()).count();
        if running >= self.max_running {
            return Err(format!("{running} jobs run already. End one with background_job first."));
        }
        let mut child = spawn.start().await.map_err(|error| error.to_string())?;
        let pipe = child.take_stdout();
        let job = {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let mut list = self.lock();
            let job = Arc::new(RunningJob {
                id: format!("job-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
                session: call.scope.session.clone(),
                began_tainted: call.scope.tainted,
                label: label.to_owned(),
                command: command.to_owned(),
                began: Instant::now(),
                began_at: SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)),
                child,
                killed: AtomicBool::new(false),
                output: Mutex::default(),
            });
            list.jobs.push(job.clone());
            list.forget_ended();
            job
        };
        self.observer.observe();
        tokio::spawn(collect_output(job.clone(), pipe));
        tokio::spawn(report_end(job.clone(), self.observer.clone()));
        tokio::select! {
            _ = job.child.wait() => tokio::time::sleep(Duration::from_millis(50)).await,
            () = tokio::time::sleep(FIRST_OUTPUT_WAIT) => {}
            () = call.cancel.cancelled() => {}
        }
        Ok(format!("Started {}. Read or end it with background_job.\n{}", job.id, job.new_output()))
    }

    pub fn list(&self) -> Vec<Job> {
        self.lock().jobs.iter().map(|job| job.info()).collect()
    }

    /// What a client shows of a job of any session.
    pub fn output(&self, id: &str) -> Option<JobOutput> {
        let job = self.lock().jobs.iter().find(|job| job.id == id).cloned()?;
        Some(JobOutput { lines: job.last_lines(), status: job.job_status(), exit_code: job.exit_code() })
    }

    /// Ends a job of any session; `None`: there is no such job. Whether it ran.
    pub async fn kill(&self, id: &str) -> Option<bool> {
        let job = self.lock().jobs.iter().find(|job| job.id == id).cloned()?;
        let was_running = job.is_running();
        job.stop().await;
        Some(was_running)
    }

    /// A job of the session that could open every file when it began.
    pub fn began_open(&self, session: &SessionId, id: &str) -> bool {
        self.find(session, id).is_ok_and(|job| !job.began_tainted)
    }

    /// What a job of the session said since it was last read.
    pub fn read(&self, session: &SessionId, id: &str) -> Result<String, String> {
        let job = self.find(session, id)?;
        Ok(format!("{} ({}): {}\n{}", job.id, job.label, job.status(), job.new_output()))
    }

    pub async fn stop(&self, session: &SessionId, id: &str) -> Result<String, String> {
        let job = self.find(session, id)?;
        if !job.is_running() {
            return Ok(format!("{} had ended: {}.", job.id, job.status()));
        }
        job.stop().await;
        Ok(format!("{} was ended.", job.id))
    }

    pub async fn stop_all(&self) {
        let jobs = std::mem::take(&mut self.lock().jobs);
        for job in &jobs {
            job.child.begin_stop();
        }
        for job in &jobs {
            job.child.stop().await;
        }
    }

    /// Ends the jobs of a session.
    pub async fn stop_all_of(&self, session: &SessionId) {
        let jobs: Vec<Arc<RunningJob>> = self
            .lock()
            .jobs
            .iter()
            .filter(|job| job.session == *session && job.is_running())
            .cloned()
            .collect();
        for job in &jobs {
            job.killed.store(true, Ordering::Relaxed);
            job.child.begin_stop();
        }
        for job in &jobs {
            job.child.stop().await;
        }
    }

    /// The jobs of a session, one per line.
    pub fn describe(&self, session: &SessionId) -> String {
        let mut out = String::new();
        for job in self.lock().jobs.iter().filter(|job| job.session == *session) {
            let seconds = job.began.elapsed().as_secs();
            let _ =
                writeln!(out, "{} ({}): {}, {seconds} s: {}", job.id, job.label, job.status(), job.command);
        }
        if out.is_empty() { "No jobs.".to_owned() } else { out.trim_end().to_owned() }
    }

    fn find(&self, session: &SessionId, id: &str) -> Result<Arc<RunningJob>, String> {
        let list = self.lock();
        let job = list.jobs.iter().find(|job| job.id == id && job.session == *session);
        job.cloned().ok_or_else(|| format!("There is no job {id}. List the jobs first."))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JobList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobList {
    fn forget_ended(&mut self) {
        let mut ended = self.jobs.iter().filter(|job| !job.is_running()).count();
        self.jobs.retain(|job| {
            let forget = ended > KEPT_ENDED && !job.is_running();
            ended -= usize::from(forget);
            !forget
        });
    }
}

impl RunningJob {
    fn add_output(&self, bytes: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.bytes.extend(bytes);
        let over = output.bytes.len().saturating_sub(KEPT_OUTPUT);
        output.bytes.drain(..over);
        output.dropped += over as u64;
    }

    /// Ends it, and remembers that somebody did.
    async fn stop(&self) {
        if self.is_running() {
            self.killed.store(true, Ordering::Relaxed);
            self.child.stop().await;
        }
    }

    fn exit_code(&self) -> Option<i32> {
        self.child.exit().and_then(|exit| exit.code)
    }

    fn job_status(&self) -> JobStatus {
        match self.child.exit() {
            None => JobStatus::Running,
            Some(_) if self.killed.load(Ordering::Relaxed) => JobStatus::Killed,
            Some(Exit { code: Some(0), .. }) => JobStatus::Completed,
            Some(_) => JobStatus::Failed,
        }
    }

    /// The newest output, as whole lines where they are whole.
    fn last_lines(&self) -> Vec<String> {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = output.bytes.iter().copied().collect();
        drop(output);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(SHOWN_LINES);
        lines[from..].iter().map(|line| (*line).to_owned()).collect()
    }

    fn is_running(&self) -> bool {
        self.child.exit().is_none()
    }

    fn status(&self) -> String {
        match self.child.exit() {
            None => "running".to_owned(),
            Some(Exit { code: Some(code), .. }) => format!("exit {code}"),
            Some(Exit { signal, .. }) => format!("ended by signal {}", signal.unwrap_or(0)),
        }
    }

    fn info(&self) -> Job {
        Job {
            id: self.id.clone(),
            session: self.session.clone(),
            chat_title: None,
            label: self.label.clone(),
            command: self.command.clone(),
            status: self.job_status(),
            exit_code: self.exit_code(),
            started_at: self.began_at,
            elapsed: self.began.elapsed(),
        }
    }

    fn new_output(&self) -> String {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = output.dropped.saturating_sub(output.read);
        let from = usize::try_from(output.read.saturating_sub(output.dropped)).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = output.bytes.iter().skip(from).copied().collect();
        output.read = output.dropped + output.bytes.len() as u64;
        let notice = if skipped > 0 { format!("[{skipped} bytes left out]\n") } else { String::new() };
        let text = String::from_utf8_lossy(&bytes);
        if text.is_empty() { "(no new output)".to_owned() } else { notice + text.trim_end() }
    }
}

/// Tells of the end of a job.
async fn report_end(job: Arc<RunningJob>, observer: JobsObserver) {
    let _ = job.child.wait().await;
    if let Some(text) = job.child.take_back().await.sentence() {
        job.add_output(format!("{text}\n").as_bytes());
    }
    observer.observe();
}

async fn collect_output(job: Arc<RunningJob>, pipe: Option<OutputPipe>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(length) = pipe.read(&mut buffer).await {
        if length == 0 {
            break;
        }
        job.add_output(&buffer[..length]);
    }
}
