//! Snapshots of plugin sources: a clone without its repository, checked before anything reads it.
//!
//! Invariants: git runs no hook and no program of the source; no link of a snapshot leads out of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Environment;
use config::plugins::{self, PluginPin, PluginSource};
use domain::{CancellationToken, Failure};
use process::{Finished, OutputLimit, Spawn};

const GIT_TIMEOUT: Duration = Duration::from_secs(300);
const OUTPUT_BYTES: usize = 4 << 20;
/// More files than this are no collection of plugins.
const MOST_FILES: usize = 20_000;

/// A version of a source that nothing uses yet.
pub(super) struct Snapshot {
    /// `None`: a folder of this machine.
    pub(super) commit: Option<String>,
    place: Place,
}

enum Place {
    Local(PathBuf),
    /// Deleted unless it is kept.
    Cloned(tempfile::TempDir),
}

impl Snapshot {
    pub(super) fn folder(&self) -> &Path {
        match &self.place {
            Place::Local(folder) => folder,
            Place::Cloned(folder) => folder.path(),
        }
    }

    /// Moves it to its place and pins the source to it.
    pub(super) fn keep(self, environment: &Environment, source: &PluginSource) -> Result<(), Failure> {
        let Self { commit, place } = self;
        let folder = match place {
            Place::Local(folder) => folder,
            Place::Cloned(folder) => {
                let is_plain = |it: &char| it.is_ascii_alphanumeric() || "-_".contains(*it);
                let name: String = source.name.chars().filter(is_plain).collect();
                let parent = plugins::snapshots_folder(environment).join(name);
                let target = parent.join(commit.as_deref().unwrap_or("unknown"));
                let failed = |error: std::io::Error| {
                    Failure::user(format!("{} cannot be written: {error}.", target.display()))
                };
                platform::create_private_folder(&parent).map_err(failed)?;
                // What is there may be half of a copy that was interrupted.
                let _ = fs::remove_dir_all(&target);
                copy(folder.path(), &target).map_err(failed)?;
                target
            }
        };
        plugins::pin(environment, &source.location, &PluginPin { commit, folder })
    }
}

/// An address with a scheme: git also writes `user@host:path`.
fn address_of(location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let place = location.split_once(':').map_or(location, |(place, _)| place);
    format!("ssh://{place}/")
}

/// The newest version of a source.
pub(super) async fn fetch(source: &PluginSource) -> Result<Snapshot, Failure> {
    if source.is_local {
        let folder = Path::new(&source.location).canonicalize();
        let folder = folder.map_err(|error| Failure::user(format!("{}: {error}.", source.location)))?;
        return Ok(Snapshot { commit: None, place: Place::Local(folder) });
    }
    domain::hosts::check_address(&address_of(&source.location))?;
    let failed = |why: String| Failure::user(format!("{} cannot be fetched: {why}", source.location));
    let folder =
        tempfile::Builder::new().prefix("dragoman-").tempdir().map_err(|error| failed(error.to_string()))?;
    let text =
        folder.path().to_str().ok_or_else(|| failed("the temporary folder has no usable name.".into()))?;
    let arguments = ["clone", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--template="];
    let arguments = [&arguments[..], &["--", &source.location, text]].concat();
    git(None, &arguments).await.map_err(failed)?;
    let commit = git(Some(folder.path()), &["rev-parse", "HEAD"]).await.map_err(failed)?;
    fs::remove_dir_all(folder.path().join(".git")).map_err(|error| failed(error.to_string()))?;
    check_links(folder.path()).map_err(failed)?;
    Ok(Snapshot { commit: Some(commit.trim().to_owned()), place: Place::Cloned(folder) })
}

/// What differs between two snapshots, as a text.
pub(super) async fn changes(before: &Path, after: &Path) -> Result<String, Failure> {
    let (Some(before), Some(after)) = (before.to_str(), after.to_str()) else {
        return Err(Failure::user("The folders have no usable names."));
    };
    let arguments =
        ["diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--", before, after];
    let finished = spawn(None, &arguments).await.map_err(Failure::user)?;
    let text = String::from_utf8_lossy(&finished.stdout.head).into_owned();
    // Too long to be judged: a person must look at it elsewhere.
    if finished.stdout.dropped > 0 {
        return Err(Failure::user("The changes are too large to be shown.")
            .hint("Look at them in the repository, then remove the pin and install the plugin anew."));
    }
    Ok(text.replace(after, "").replace(before, ""))
}

/// The files below a folder, by their paths in it.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            if found.len() >= MOST_FILES {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.extend(entry.path().strip_prefix(folder).map(Path::to_owned)),
            }
        }
    }
    found.sort();
    found
}

fn check_links(folder: &Path) -> Result<(), String> {
    let root = folder.canonicalize().map_err(|error| error.to_string())?;
    let files = files_below(folder);
    if files.len() >= MOST_FILES {
        return Err("it has too many files.".to_owned());
    }
    for file in files {
        let path = folder.join(&file);
        let is_link = path.symlink_metadata().is_ok_and(|kind| kind.is_symlink());
        if is_link && !path.canonicalize().is_ok_and(|target| target.starts_with(&root)) {
            return Err(format!("{} is a link that leads out of it.", file.display()));
        }
    }
    Ok(())
}

/// Links inside are copied as what they lead to.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for file in files_below(from) {
        let (source, target) = (from.join(&file), to.join(&file));
        if let Some(parent) = target.parent() {
            platform::create_private_folder(parent)?;
        }
        if source.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

async fn git(folder: Option<&Path>, arguments: &[&str]) -> Result<String, String> {
    let finished = spawn(folder, arguments).await?;
    if finished.success() {
        return Ok(String::from_utf8_lossy(&finished.stdout.head).into_owned());
    }
    let said = String::from_utf8_lossy(&finished.stderr.head);
    let line = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("git failed");
    Err(format!("{}.", line.trim().trim_end_matches('.')))
}

async fn spawn(folder: Option<&Path>, arguments: &[&str]) -> Result<Finished, String> {
    let settings = [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false"), ("core.pager", "cat")];
    let mut spawn = Spawn::new("git")
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", "https:ssh:git:file")
        .env("GIT_CONFIG_COUNT", settings.len().to_string())
        .deadline(GIT_TIMEOUT)
        .limit(OutputLimit { head: OUTPUT_BYTES, tail: 0 });
    for (number, (key, value)) in settings.iter().enumerate() {
        spawn = spawn
            .env(format!("GIT_CONFIG_KEY_{number}"), key)
            .env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    if let Some(folder) = folder {
        spawn = spawn.directory(folder);
    }
    spawn.run(&CancellationToken::new()).await.map_err(|error| error.to_string())
}
