//! Builds the wall and starts the command behind it. Runs in our own program, started again for this purpose.
//!
//! Three processes: the outer one builds the mounts, then waits and ends as the command ended; meanwhile the first
//! process of the pid namespace makes the network, then it reaps; the command leads a session of its own. Invariants:
//! one thread, so `fork` is sound; any failure before the command starts ends with code 125 and one sentence; the death
//! of a process kills those within.

mod connections;
mod copy_marks;
mod filter;
mod git_copy;
mod git_files;
mod guards;
mod lan;
pub(crate) mod left;
mod memory;
mod mount_calls;
mod mounts;
mod privileges;
mod requests;
mod rules;
mod setup;
mod ways;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};

use connections::Connections;
pub(crate) use setup::{Setup, SetupError, Step};

use crate::policy::{Mode, Network, Policy};

/// The code that says: the sandbox failed, not the command.
const SETUP_FAILED: u8 = 125;

/// How long processes that the command left behind may take to finish writing.
const LINGER: Duration = Duration::from_millis(100);

/// How long an orphan that ended waits to be reaped.
const REAPING: Duration = Duration::from_secs(5);

/// Signals that ask a command to end. The parent sends them to every process of the tree, so those that only wait
/// ignore them.
const ASKING: &[i32] =
    &[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE];

/// The command as it was handed over.
struct Order {
    policy: Policy,
    /// Where listening sockets of the namespace are handed to.
    channel: Option<UnixStream>,
    program: OsString,
    arguments: Vec<OsString>,
}

pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    memory::be_first_to_go();
    let started = read_order(arguments).and_then(|order| match order.policy.mode {
        Mode::Namespaces => in_namespaces(order),
        // The smaller wall needs no process of its own.
        Mode::Landlock => become_command(&order, &Vec::new(), None),
    });
    match started {
        Ok(code) => code,
        Err(SetupError(reason)) => {
            complain(&format!("The sandbox could not be set up ({reason}); the command was not run.\n"));
            ExitCode::from(SETUP_FAILED)
        }
    }
}

fn read_order(mut arguments: impl Iterator<Item = OsString>) -> Setup<Order> {
    let missing = || SetupError("its arguments are incomplete".to_owned());
    let policy = arguments.next().ok_or_else(missing)?;
    let policy = serde_json::from_slice(policy.as_encoded_bytes()).step("its policy cannot be read")?;
    let channel = arguments.next().ok_or_else(missing)?;
    let channel = channel.to_str().and_then(|number| number.parse::<i32>().ok());
    // SAFETY: the parent made this descriptor for us alone and names it here once; it owns nothing else by it.
    let channel =
        channel.filter(|number| *number > 2).map(|number| unsafe { UnixStream::from_raw_fd(number) });
    let program = arguments.next().ok_or_else(missing)?;
    Ok(Order { policy, channel, program, arguments: arguments.collect() })
}

fn in_namespaces(order: Order) -> Setup<ExitCode> {
    privileges::enter_namespaces()?;
    mounts::make_private()?;
    let (mut result, outcome) = io::pipe().step("pipe")?;
    let (is_built, mut built) = io::pipe().step("pipe")?;
    // SAFETY: this process has one thread, so no lock is held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).step("fork"),
        0 => {
            drop((result, built));
            let code = first_process(order, is_built, outcome);
            std::process::exit(code.into());
        }
        child => {
            drop((outcome, is_built));
            let copies = match mounts::build(&order.policy) {
                Ok(copies) => copies,
                Err(error) => {
                    // The first process reads the end of the pipe and starts nothing.
                    drop(built);
                    wait_for(child)?;
                    return Err(error);
                }
            };
            let errors =
                if copies.is_empty() { None } else { io::stderr().as_fd().try_clone_to_owned().ok() };
            let _ = built.write_all(&[0]);
            drop((built, order));
            // Until the command runs, a signal that asks it to end ends this process, and with it those within.
            let _ = result.read_exact(&mut [0]);
            ignore_asking(true);
            close_standard_streams();
            let status = wait_for(child)?;
            git_copy::take_over(copies, errors);
            let mut told = [0; 4];
            let inner = result.read_exact(&mut told).map(|()| ExitStatus::from_raw(i32::from_ne_bytes(told)));
            Ok(end_like(inner.unwrap_or(status)))
        }
    }
}

/// The first process of the pid namespace: when it ends, the kernel kills the rest.
fn first_process(order: Order, mut is_built: io::PipeReader, mut outcome: io::PipeWriter) -> u8 {
    let started = (|| {
        set_parent_process_death_signal(Some(Signal::KILL)).step("parent death signal")?;
        if reader_is_gone(&outcome) {
            return Err(SetupError("the program that started it is gone".to_owned()));
        }
        let variables = lan::set_up(&order.policy, order.channel.as_ref())?;
        mounts::own_proc()?;
        if is_built.read_exact(&mut [0]).is_err() {
            return Ok(None);
        }
        let (ours, theirs) = UnixStream::pair().step("socket pair")?;
        // SAFETY: this process has one thread, so no lock is held by a thread that the child lacks.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()).step("fork"),
            0 => {
                let failed = become_command(&order, &variables, Some(&theirs)).err();
                let SetupError(reason) = failed.unwrap_or(SetupError("exec returned".to_owned()));
                complain(&format!("The sandbox could not start the command: {reason}.\n"));
                std::process::exit(SETUP_FAILED.into());
            }
            command => {
                drop(theirs);
                let listener = connections::receive_listener(&ours);
                let shares_network = order.policy.network == Network::Open;
                let answers = |fd| Connections::new(fd, &order.policy.exposed, shares_network);
                Ok(Some((command, listener.map(answers))))
            }
        }
    })();
    let (command, connections) = match started {
        Ok(Some(command)) => command,
        // The outer process says why.
        Ok(None) => return SETUP_FAILED,
        Err(SetupError(reason)) => {
            complain(&format!("The sandbox could not be set up ({reason}); the command was not run.\n"));
            return SETUP_FAILED;
        }
    };
    ignore_asking(true);
    close_standard_streams();
    // Nobody inside looks at this process.
    // SAFETY: a plain system call with numbers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    let _ = outcome.write_all(&[0]);
    memory::watch(order.policy.memory, order.channel);
    let status = reap_until(command, connections);
    let _ = outcome.write_all(&status.into_raw().to_ne_bytes());
    0
}

/// The outer process died before its death could be noticed: nobody reads the outcome.
fn reader_is_gone(outcome: &io::PipeWriter) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(outcome.as_fd(), PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::ERR)
}

/// A pipe that only waiters hold open would keep its reader waiting.
fn close_standard_streams() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        for number in 0..=2 {
            // SAFETY: both descriptors are open, and nothing here reads or writes the replaced ones again.
            unsafe { libc::dup2(null.as_raw_fd(), number) };
        }
    }
}

/// Reaps every process that is handed to the first one, and answers their calls, until the command has ended and the
/// rest had its time.
fn reap_until(command: i32, mut connections: Option<Connections>) -> ExitStatus {
    let ends = Pid::from_raw(command).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut status = 0;
    loop {
        let flags = if connections.is_some() && ends.is_some() { libc::WNOHANG } else { 0 };
        let mut raw = 0;
        // SAFETY: `raw` is a valid place for a status.
        match unsafe { libc::waitpid(-1, &raw mut raw, flags) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return ExitStatus::from_raw(status),
            child if child == command => {
                status = raw;
                break;
            }
            0 => {
                // Once nobody can call, the end alone is waited for.
                if let Some(ends) = &ends {
                    connections.take_if(|calls| !calls.answer_for(REAPING, Some(ends.as_fd())));
                }
            }
            _ => {}
        }
    }
    let end = Instant::now() + LINGER;
    while Instant::now() < end {
        // SAFETY: a null status is allowed.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            -1 => break,
            0 => {
                connections.take_if(|calls| !calls.answer_for(Duration::ZERO, None));
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => {}
        }
    }
    ExitStatus::from_raw(status)
}

fn wait_for(child: i32) -> Setup<ExitStatus> {
    loop {
        let mut raw = 0;
        // SAFETY: `raw` is a valid place for a status.
        if unsafe { libc::waitpid(child, &raw mut raw, 0) } == child {
            return Ok(ExitStatus::from_raw(raw));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error).step("wait");
        }
    }
}

/// Ends this process as the command ended: by the same code or the same signal.
fn end_like(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal() {
        ignore_asking(false);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: plain system calls with valid arguments; a core dump of the waiting process helps nobody.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(SETUP_FAILED))
}

fn ignore_asking(ignore: bool) {
    let action = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    for signal in ASKING {
        // SAFETY: no handler is installed, only the two fixed actions.
        unsafe { libc::signal(*signal, action) };
    }
}

/// The last step: gives up every privilege and becomes the command. Returns only an error.
fn become_command(order: &Order, variables: &lan::Variables, first: Option<&UnixStream>) -> Setup<ExitCode> {
    let policy = &order.policy;
    if policy.mode == Mode::Namespaces {
        rustix::process::setsid().step("session")?;
    }
    if policy.terminal {
        privileges::take_terminal()?;
    }
    ignore_asking(false);
    std::env::set_current_dir(&policy.directory).step("the working directory")?;
    privileges::drop_all()?;
    rules::restrict(policy)?;
    install_filter(policy, first)?;
    let mut command = Command::new(&order.program);
    command.args(&order.arguments);
    command.envs(policy.environment.iter().map(|(name, value)| (name, value)));
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    for name in &policy.withheld {
        command.env_remove(name);
    }
    privileges::close_descriptors();
    Err(command.exec()).step(&order.program.to_string_lossy())
}

/// Local sockets exist only where the first process can decide about their connections.
fn install_filter(policy: &Policy, first: Option<&UnixStream>) -> Setup<()> {
    let families = families(policy);
    let listener = match first.filter(|_| connections::can_answer()) {
        Some(first) => filter::install_answered(&families)?.map(|listener| (first, listener)),
        None => None,
    };
    match listener {
        Some((first, listener)) => connections::send_listener(first, &listener).step("connections"),
        None => {
            let others: Vec<i32> = families.into_iter().filter(|family| *family != libc::AF_UNIX).collect();
            filter::install(&others)
        }
    }
}

/// Kinds of sockets that can be made. Without a mount namespace, local sockets would lead to every service of the
/// user's session.
fn families(policy: &Policy) -> Vec<i32> {
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    match (policy.mode, policy.network) {
        (Mode::Namespaces, _) => internet.into_iter().chain([libc::AF_UNIX]).collect(),
        (Mode::Landlock, Network::Open) => internet.to_vec(),
        (Mode::Landlock, Network::Closed | Network::Proxy) => Vec::new(),
    }
}

fn complain(text: &str) {
    // SAFETY: descriptor 2 is open for the life of the process or the write fails; it is not closed here.
    let mut stderr = std::mem::ManuallyDrop::new(File::from(unsafe { OwnedFd::from_raw_fd(2) }));
    let _ = stderr.write_all(format!("Dragoman: {text}").as_bytes());
}
