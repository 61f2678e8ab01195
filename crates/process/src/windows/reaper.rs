//! Starts children, each in a job object of its own, and ends them with their trees.
//!
//! Invariants: a child runs no instruction before it is in its job; everything that it starts is in the job too; the job
//! ends when its last handle closes, so nothing outlives this process, however it ended. A child that is not in its job
//! yet, because this process is killed just then, is in the job that this process itself is in. Windows has no SIGTERM for
//! programs without a window: a tree that is stopped ends at once, and no daemon survives its child.
//!
//! A child goes Running → Exited (its own end is known) → Gone (so is the end of its tree).

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED, GetCurrentProcess, OpenThread,
    ResumeThread, THREAD_SUSPEND_RESUME,
};

use crate::error::ProcessError;
use crate::exit::{Exit, LINGER_TIME, Phase};

/// How long a killed tree may take to vanish before it is given up.
const VANISH_TIMEOUT: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(5);

/// Set in each child's environment, as on other systems.
pub(crate) const MARKER: &str = "DRAGOMAN_CHILD";

/// A child that was just started.
pub(crate) struct Started {
    pub(crate) pid: u32,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) guard: Guard,
}

/// Ends the tree of one child when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Arc<Job>);

impl Guard {
    pub(crate) fn stop(&self) {
        self.0.end();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    Exit { code: status.code(), signal: None }
}

static CLOSED: AtomicBool = AtomicBool::new(false);
static JOBS: Mutex<Vec<Weak<Job>>> = Mutex::new(Vec::new());

/// The outer error means that no child is started from now on.
pub(crate) async fn spawn(
    command: Command,
    _grace: Duration,
    _takes_terminal: bool,
) -> Result<io::Result<Started>, ProcessError> {
    if CLOSED.load(Ordering::SeqCst) {
        return Err(ProcessError::ShuttingDown);
    }
    Ok(start(command))
}

fn start(mut command: Command) -> io::Result<Started> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    command.env(MARKER, format!("{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    crate::nesting::tell_depth(&mut command);
    command.creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP);
    join_own_job();
    let job = Arc::new(Job::new()?);
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    #[expect(clippy::disallowed_methods, reason = "this crate owns spawning")]
    let mut child = command.spawn()?;
    let pid = child.id().ok_or_else(|| io::Error::other("it ended at once"))?;
    let handle = child.raw_handle().ok_or_else(|| io::Error::other("it ended at once"))?;
    job.assign(handle)?;
    resume(pid)?;
    let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.retain(|job| job.strong_count() > 0);
    jobs.push(Arc::downgrade(&job));
    drop(jobs);
    let (sender, phase) = watch::channel(Phase::Running);
    let kept = job.clone();
    tokio::spawn(async move {
        let exit = match child.wait().await {
            Ok(status) => exit_of(status),
            Err(_) => Exit { code: None, signal: None },
        };
        sender.send_replace(Phase::Exited(exit));
        if !kept.is_ended() {
            tokio::time::sleep(LINGER_TIME).await;
        }
        kept.end();
        let deadline = Instant::now() + VANISH_TIMEOUT;
        while kept.lives() && Instant::now() < deadline {
            tokio::time::sleep(STEP).await;
        }
        sender.send_replace(Phase::Gone(exit));
    });
    Ok(Started { pid, phase, guard: Guard(job) })
}

/// Puts this process into a job that ends with it, once. Where that is refused, children have their own jobs only.
fn join_own_job() {
    static OWN: OnceLock<Option<Job>> = OnceLock::new();
    OWN.get_or_init(|| {
        let job = Job::new().ok()?;
        // SAFETY: the handle of the current process is always valid and needs no closing.
        let assigned = job.assign(unsafe { GetCurrentProcess() });
        assigned.is_ok().then_some(job)
    });
}

/// Ends every child with its tree and refuses new ones from now on; resolves when all are gone.
pub async fn shutdown() {
    CLOSED.store(true, Ordering::SeqCst);
    let jobs = std::mem::take(&mut *JOBS.lock().unwrap_or_else(PoisonError::into_inner));
    let jobs: Vec<Arc<Job>> = jobs.iter().filter_map(Weak::upgrade).collect();
    jobs.iter().for_each(|job| job.end());
    let deadline = Instant::now() + VANISH_TIMEOUT;
    while jobs.iter().any(|job| job.lives()) && Instant::now() < deadline {
        tokio::time::sleep(STEP).await;
    }
}

/// Whether an open process is in the job of one of our children, whoever its parent is now.
pub(crate) fn is_in_own_job(process: &OwnedHandle) -> bool {
    let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.retain(|job| job.strong_count() > 0);
    jobs.iter().filter_map(Weak::upgrade).any(|job| job.contains(process))
}

/// A job object that ends its processes when it is closed.
#[derive(Debug)]
struct Job {
    handle: OwnedHandle,
    ended: AtomicBool,
}

impl Job {
    fn new() -> io::Result<Self> {
        // SAFETY: no name and no attributes; the new handle is owned below.
        let handle = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a handle that was just made and has no other owner.
        let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the structure belongs to the class, and its size is given.
        let set = unsafe {
            SetInformationJobObject(
                handle.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>() as u32,
            )
        };
        if set == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { handle, ended: AtomicBool::new(false) })
    }

    fn assign(&self, process: HANDLE) -> io::Result<()> {
        // SAFETY: both handles are open.
        match unsafe { AssignProcessToJobObject(self.handle.as_raw_handle(), process) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn contains(&self, process: &OwnedHandle) -> bool {
        let mut found = 0;
        // SAFETY: both handles are open, and the result has its place.
        let asked =
            unsafe { IsProcessInJob(process.as_raw_handle(), self.handle.as_raw_handle(), &raw mut found) };
        asked != 0 && found != 0
    }

    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        // SAFETY: the handle is open. A job without processes is ended without an effect.
        unsafe { TerminateJobObject(self.handle.as_raw_handle(), 1) };
    }

    fn lives(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        // SAFETY: the structure belongs to the class, and its size is given.
        let asked = unsafe {
            QueryInformationJobObject(
                self.handle.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut counts).cast(),
                size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>() as u32,
                std::ptr::null_mut(),
            )
        };
        asked != 0 && counts.ActiveProcesses > 0
    }
}

/// Lets a process run that was started suspended: it has one thread.
fn resume(pid: u32) -> io::Result<()> {
    // SAFETY: the new handle is owned below.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a handle that was just made and has no other owner.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
    // SAFETY: the snapshot is open, and the structure has its size in it.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        if entry.th32OwnerProcessID == pid {
            // SAFETY: a number of a thread; the new handle is owned below.
            let thread = unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID) };
            if thread.is_null() {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: a handle that was just made and has no other owner.
            let thread = unsafe { OwnedHandle::from_raw_handle(thread) };
            // SAFETY: the handle is open and has the right to resume.
            if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
                return Err(io::Error::last_os_error());
            }
            return Ok(());
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Err(io::Error::other("the thread of the new process was not found"))
}
