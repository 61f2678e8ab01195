//! Owns the wall around a child process: what it may write, which files it cannot see, which hosts it may reach.
//! It must not know tools, servers, settings or chats. `process` alone uses it, because nothing else spawns.
//!
//! Invariant: a command runs inside the policy it was started with, or it does not run at all. The wall is built by
//! our own program, started again with a hidden first argument (`helper`): one thread, so that `fork` is sound.

mod caches;
mod connect;
mod due;
mod git_access;
mod git_view;
pub mod grant;
mod guard;
mod guarded;
#[cfg(target_os = "linux")]
mod helper;
mod host_filter;
pub mod launch;
mod lists;
mod memory;
mod opening;
mod own_ports;
pub mod places;
pub mod policy;
mod project_grants;
pub mod proxy;
mod real_path;
pub mod registries;
mod registry_credentials;
mod repositories;
pub mod seatbelt;
mod shown;
pub mod stopped;
pub mod suite;
pub mod support;
mod temporary;
mod watch;

pub use git_view::GitAccess;
pub use grant::Grant;
pub use guard::{Guard, Leftovers, finish_looks};
pub use host_filter::HostFilter;
pub use launch::{HELPER_ARGUMENT, run_helper};
pub use places::{Allowance, Facts, Sandbox};
pub use policy::{GitCopy, Mode, Network, Policy};
pub use project_grants::ProjectGrants;
pub use registry_credentials::is_credential_variable;
pub use repositories::work_tree;
pub use support::Support;
