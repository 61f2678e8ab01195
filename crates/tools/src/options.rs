//! What can be set about the built-in tools. Plain data: who fills it from a configuration file is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::host::LanguageServices;
use domain::tool::Scope;
use process::sandbox::{Grant, ProjectGrants, Sandbox};

use crate::custom_tool::CustomTool;
use crate::jobs::JobsObserver;
use crate::outputs::OutputFolder;
use crate::web::search::SearchBackend;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bare names of tools that are not offered.
    pub disabled: BTreeSet<String>,
    /// What `~` means; `None`: it is refused.
    pub home: Option<PathBuf>,
    pub limits: Limits,
    /// Hosts that may be fetched though they are on this machine or in a private network.
    pub private_hosts: Vec<String>,
    /// Program and leading arguments that run a shell line instead of bash. Lines for another shell cannot be
    /// analyzed, so each must be asked.
    pub shell: Option<Vec<String>>,
    /// Variables that commands do not see, because they hold secrets.
    pub withheld_environment: Vec<String>,
    /// The wall that commands run behind; `None`: the user switched it off.
    pub sandbox: Option<Confine>,
    /// Tools of the user's own. One with the name of a built-in tool is left out.
    pub custom_tools: Vec<CustomTool>,
    /// Shell lines that format a text from their input, by ending of files.
    pub formatters: BTreeMap<String, String>,
    /// Where outputs that are too long for a result are kept.
    pub outputs: OutputFolder,
    /// Called when a job in the background begins or ends.
    pub jobs_observer: JobsObserver,
    /// Language servers of the machine, for front-ends without any.
    pub language_services: LanguageServicesHandle,
    /// What `web_search` asks; without it the tool is not offered.
    pub web_search: Option<SearchBackend>,
}

/// Language servers, or none.
#[derive(Clone, Default)]
pub struct LanguageServicesHandle(pub Option<Arc<dyn LanguageServices>>);

impl fmt::Debug for LanguageServicesHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "LanguageServices" } else { "None" })
    }
}

/// A sandbox and what every command in it is granted.
#[derive(Clone, Debug)]
pub struct Confine {
    pub sandbox: Arc<Sandbox>,
    pub grants: Vec<Grant>,
    /// Commands that the sandbox contains are asked about as all others are.
    pub asks: bool,
    /// What people granted to projects.
    pub given: ProjectGrants,
}

impl Confine {
    /// The grants of the project that a call is for.
    pub(crate) fn given_to(&self, scope: &Scope) -> Vec<Grant> {
        scope.roots.first().map(|root| self.given.of(root)).unwrap_or_default()
    }

    /// Keeps grants for the project. What cannot be kept holds for the session.
    pub(crate) fn give_to(&self, scope: &Scope, grants: &[Grant]) {
        if let Some(root) = scope.roots.first() {
            let _ = self.given.add(root, grants);
        }
    }
}

/// Bounds of what a call may read, run and return.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Text that one result may hold.
    pub output_bytes: usize,
    /// Lines that `read_file` returns when it is not told how many.
    pub read_lines: usize,
    /// Larger files are read in part and not edited.
    pub file_bytes: u64,
    pub image_bytes: u64,
    /// Matching lines of `grep`.
    pub matches: usize,
    /// Paths that `glob` lists.
    pub paths: usize,
    pub tree_entries: usize,
    /// The same for the map of a workspace.
    pub map_entries: usize,
    /// Entries of one folder of a map, the topmost excepted.
    pub map_entries_per_folder: usize,
    /// How long a search or walk may take.
    pub walk_time: Duration,
    pub shell_time: Duration,
    pub max_shell_time: Duration,
    pub background_jobs: usize,
    pub host_time: Duration,
    pub language_server_time: Duration,
    pub fetch_bytes: usize,
    pub fetch_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output_bytes: 48 * 1024,
            read_lines: 2_000,
            file_bytes: 16 * 1024 * 1024,
            image_bytes: 5 * 1024 * 1024,
            matches: 100,
            paths: 300,
            tree_entries: 1_000,
            map_entries: 400,
            map_entries_per_folder: usize::MAX,
            walk_time: Duration::from_secs(20),
            shell_time: Duration::from_secs(120),
            max_shell_time: Duration::from_secs(600),
            background_jobs: 8,
            host_time: Duration::from_secs(10),
            language_server_time: Duration::from_secs(30),
            fetch_bytes: 2 * 1024 * 1024,
            fetch_time: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// No setting raises a size above these: a project could otherwise fill the memory.
    pub fn within_ceilings(self) -> Self {
        Self {
            output_bytes: self.output_bytes.min(1 << 20),
            read_lines: self.read_lines.min(50_000),
            file_bytes: self.file_bytes.min(64 << 20),
            image_bytes: self.image_bytes.min(20 << 20),
            matches: self.matches.min(10_000),
            paths: self.paths.min(10_000),
            tree_entries: self.tree_entries.min(10_000),
            map_entries: self.map_entries.min(10_000),
            map_entries_per_folder: self.map_entries_per_folder,
            walk_time: self.walk_time.min(Duration::from_secs(120)),
            shell_time: self.shell_time.min(MAX_SHELL_TIME),
            max_shell_time: self.max_shell_time.min(MAX_SHELL_TIME),
            background_jobs: self.background_jobs.min(64),
            host_time: self.host_time.min(Duration::from_secs(600)),
            language_server_time: self.language_server_time.min(Duration::from_secs(600)),
            fetch_bytes: self.fetch_bytes.min(16 << 20),
            fetch_time: self.fetch_time.min(Duration::from_secs(300)),
        }
    }
}

const MAX_SHELL_TIME: Duration = Duration::from_secs(3_600);
