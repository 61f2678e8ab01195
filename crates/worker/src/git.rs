//! git for workers: what a repository configures runs no program, nothing waits for a person, and only https and ssh reach
//! the network.
//!
//! Invariant: a repository that a model has worked in never decides how git talks to the network: that happens from a
//! repository of our own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::CancellationToken;
use process::{OutputLimit, Spawn};

/// A checkout of a large repository takes its time.
const TIMEOUT: Duration = Duration::from_secs(600);
const MAX_OUTPUT: usize = 32 << 20;

/// For every use of git.
const VARIABLES: &[(&str, &str)] =
    &[("GIT_TERMINAL_PROMPT", "0"), ("GIT_LFS_SKIP_SMUDGE", "1"), ("LC_ALL", "C")];
/// For git that reaches the network: the user's own settings say how, and no repository's.
const NETWORK_SETTINGS: &[&str] = &[
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.ext.allow=never",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "http.followRedirects=initial",
];

/// git in one folder, without anything that its repository could have run.
pub(super) struct Git {
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Git {
    /// Looks at what the repository configures now.
    pub(super) async fn open(folder: &Path) -> Result<Self, String> {
        let variables = tools::git_environment(folder, &CancellationToken::new()).await?;
        Ok(Self { folder: folder.to_owned(), variables })
    }

    /// The same with another index.
    pub(super) fn with_index(&self, index: &Path) -> Self {
        let mut variables = self.variables.clone();
        variables.push(("GIT_INDEX_FILE".to_owned(), index.to_string_lossy().into_owned()));
        Self { folder: self.folder.clone(), variables }
    }

    /// What git prints, without the end of its last line.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let bytes = self.run(arguments, Vec::new()).await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    pub(super) async fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Vec<u8>, String> {
        finish(spawn(&self.folder).args(arguments).envs(self.variables.clone()).input(input)).await
    }
}

/// git over the network.
pub(crate) struct Network {
    /// `network.caCertFile`: certificates of servers are verified by it instead of by those that the system trusts.
    authority: Option<String>,
}

impl Network {
    pub(super) fn new(authority: Option<&Path>) -> Self {
        Self { authority: authority.map(|file| format!("http.sslCAInfo={}", file.display())) }
    }

    /// In a folder whose settings nobody else wrote.
    pub(super) async fn run(&self, folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let settings = NETWORK_SETTINGS.iter().copied().chain(self.authority.as_deref());
        let settings = settings.flat_map(|setting| ["-c", setting]);
        finish(spawn(folder).env("GIT_ALLOW_PROTOCOL", "https:ssh").args(settings).args(arguments)).await
    }

    /// A clone without files, settings and hooks of others.
    pub(super) async fn clone_into(&self, folder: &Path, address: &str) -> Result<(), String> {
        let parent = folder.parent().ok_or("The checkout has no parent.")?;
        let folder = folder.to_str().ok_or("The path of the checkout is not text.")?;
        let options = ["clone", "--quiet", "--no-checkout", "--no-recurse-submodules", "--template=", "--"];
        self.run(parent, &[&options[..], &[address, folder]].concat()).await.map(drop)
    }
}

fn spawn(folder: &Path) -> Spawn {
    Spawn::new("git")
        .directory(folder)
        .envs(VARIABLES.iter().copied())
        .without_env(["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS"])
        .deadline(TIMEOUT)
        .limit(OutputLimit { head: MAX_OUTPUT, tail: 0 })
}

/// An error is what git said.
async fn finish(spawn: Spawn) -> Result<Vec<u8>, String> {
    let finished = spawn.run(&CancellationToken::new()).await.map_err(|error| error.to_string())?;
    if finished.success() && finished.stdout.dropped == 0 {
        return Ok(finished.stdout.head);
    }
    if finished.success() {
        return Err(format!("The output is larger than {} MiB.", MAX_OUTPUT >> 20));
    }
    let said = String::from_utf8_lossy(&finished.stderr.head).into_owned();
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed");
    Err(format!("{}.", line.trim().trim_end_matches('.')))
}
