//! The only place that spawns. It owns what a child must never do to us or to the user: outlive its
//! purpose, hang, flood memory, or leave a zombie. It knows nothing of tools, servers or settings.
//!
//! Invariants:
//! - Every child (but one that has the user's terminal, `foreground`) leads its own session and process group, and one long-lived thread (`reaper`) forks,
//!   ends and reaps all of them: Linux fires a parent-death signal when the *forking thread* ends.
//! - Stopping, a passed deadline and dropping the handle all end the whole tree: SIGTERM, a short grace,
//!   SIGKILL, also for descendants that left the group (`tree`).
//! - Output kept in memory is bounded; what is left out is counted.
//! - A child that ends by itself takes its process group with it; a daemon that made a session of its own
//!   (gpg-agent, a build server) is left alone, because that is what its user expects. Behind the sandbox's wall
//!   nothing outlives the child.

mod child;
#[cfg(unix)]
mod child_tree;
#[cfg_attr(windows, path = "windows/confine.rs")]
mod confine;
mod descent;
mod environment;
mod error;
mod escapes;
mod exit;
mod foreground;
#[cfg(unix)]
mod group_killer;
mod nesting;
mod output;
#[cfg_attr(windows, path = "windows/parent.rs")]
mod parent;
#[cfg(windows)]
#[path = "windows/parents.rs"]
mod parents;
#[cfg_attr(windows, path = "windows/pipes.rs")]
mod pipes;
#[cfg_attr(windows, path = "windows/pty.rs")]
mod pty;
#[cfg_attr(windows, path = "windows/reaper.rs")]
mod reaper;
mod run;
mod shell;
#[cfg_attr(windows, path = "windows/signals.rs")]
mod signals;
mod spawn;
#[cfg(unix)]
mod tree;
#[cfg(all(test, windows))]
#[path = "windows/tests.rs"]
mod windows_tests;

pub use child::Child;
pub use confine::{known_sandbox_support, sandbox_support};
pub use descent::{is_below_dragoman, is_inside_child};
pub use environment::{SecretTest, hide_own_environment, withhold_environment};
pub use error::ProcessError;
pub use escapes::{Lane, run_escapes};
pub use exit::Exit;
pub use foreground::foreground;
pub use nesting::enter_nesting;
pub use output::{Captured, OutputLimit};
pub use parent::{ParentEnd, watch_parent};
pub use pipes::{Receiver as OutputPipe, Sender as InputPipe};
pub use reaper::shutdown;
pub use run::{End, Finished, Source};
pub use sandbox;
pub use shell::{ShellLanguage, shell_command, shell_language};
pub use signals::{ShutdownSignal, shutdown_signal, suspend};
pub use spawn::Spawn;
