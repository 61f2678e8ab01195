//! Language servers of the machine, for front-ends that have none: diagnostics, definitions and references.
//!
//! Owns the programs, their processes and what they were sent. Knows no tool, no session and no settings file.
//! Invariants: a server is started by the first call that needs it and ends with the workspace or after ten minutes
//! without a call; it runs behind the sandbox's wall, without the network, and writes nothing but its own cache. Where
//! there is no such wall, servers run in trusted folders alone.

mod answers;
mod documents;
mod languages;
mod position;
mod server;
mod server_messages;
mod servers;
mod watched_files;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use process::sandbox::Sandbox;

pub use servers::LanguageServers;

/// What a workspace says about its language servers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders with programs, in their order.
    pub search_path: Vec<PathBuf>,
    /// Servers of the user's own, and changes of those that are known.
    pub configured: Vec<ConfiguredServer>,
    /// The wall; `None`: the user switched it off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Folders that servers must not change: those of the workspace.
    pub read_only: Vec<PathBuf>,
    /// Where builds that servers start may write, instead of the project.
    pub cache: PathBuf,
    /// The user trusts the folders, so that servers may run where no wall can be built.
    pub is_trusted: bool,
    /// Variables that servers do not see, because they hold secrets.
    pub withheld_environment: Vec<String>,
}

/// A server as the settings describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredServer {
    /// The name of a known program changes that one.
    pub name: String,
    pub command: Option<String>,
    pub args: Option<Vec<String>>,
    /// Endings of files, without the dot.
    pub extensions: Vec<String>,
    pub disabled: bool,
}
