//! Keeps git from running programs that a repository names, and from reading a repository that is somewhere else, when
//! a command only looks.
//!
//! Owns the environment of such commands. Does not parse git's files: git itself says which settings hold and where
//! the repository is. Invariant: when git cannot say so, the command does not run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::CancellationToken;
use domain::tool::Scope;
use process::{Finished, OutputLimit, ProcessError, Spawn};
use project_files::resolve_links;

const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: usize = 4 << 20;

/// Settings that make git run programs, reach the network or enter other repositories when it only looks, with the
/// value that switches each off.
const OVERRIDES: &[(&str, &str)] = &[
    ("blame.ignoreRevsFile", ""),
    ("core.alternateRefsCommand", ""),
    ("core.askPass", "false"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("diff.ignoreSubmodules", "all"),
    ("diff.submodule", "short"),
    ("gpg.program", "false"),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
];

/// Variables that hold for every such command.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
];

/// The environment for a line whose uses of git only look, in the folders where git may start.
pub(crate) async fn environment(
    folders: &[PathBuf],
    scope: &Scope,
    cancel: &CancellationToken,
) -> Result<Vec<(String, String)>, String> {
    let mut settings: Vec<(String, String)> =
        OVERRIDES.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        match check_location(folder, scope, cancel).await {
            Ok(true) => {}
            // Not a repository, or no git: the command itself will say so.
            Ok(false) => continue,
            Err(problem) => return Err(problem),
        }
        for key in drivers(folder, cancel).await? {
            if !settings.iter().any(|(known, _)| *known == key) {
                let value = if key.to_ascii_lowercase().ends_with(".required") { "false" } else { "" };
                settings.push((key, value.to_owned()));
            }
        }
    }
    Ok(variables(&settings))
}

/// The same for git's own work on a folder, outside of a chat.
pub async fn git_environment(
    folder: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<(String, String)>, String> {
    let folder = folder.to_owned();
    let scope = crate::contexts::workspace_scope(std::slice::from_ref(&folder));
    environment(&[folder], &scope, cancel).await
}

fn variables(settings: &[(String, String)]) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    variables.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
    for (number, (key, value)) in settings.iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{number}"), key.clone()));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.clone()));
    }
    variables
}

/// Refuses a repository whose files or history are somewhere else. False where there is no repository.
async fn check_location(folder: &Path, scope: &Scope, cancel: &CancellationToken) -> Result<bool, String> {
    let Some(found) = ask(folder, &["rev-parse", "--absolute-git-dir"], cancel).await? else {
        return Ok(false);
    };
    let store = resolved(&found)?;
    let common = ask(folder, &["rev-parse", "--path-format=absolute", "--git-common-dir"], cancel).await?;
    let common = resolved(&common.ok_or_else(|| unreadable(folder))?)?;
    let top = ask(folder, &["rev-parse", "--show-toplevel"], cancel).await?;
    let top = resolved(&top.ok_or_else(|| unreadable(folder))?)?;
    let from = resolve_links(folder).map_err(|_| unreadable(folder))?;
    if !from.starts_with(&top) {
        return Err(elsewhere(folder, &top));
    }
    // The folder that git takes for the working tree must lead back to the same repository.
    let back = ask(&top, &["rev-parse", "--absolute-git-dir"], cancel).await?;
    if back.map(|back| resolved(&back)).transpose()?.as_ref() != Some(&store) {
        return Err(elsewhere(folder, &top));
    }
    let is_near =
        |path: &Path| path.starts_with(&top) || scope.roots.iter().any(|root| path.starts_with(root));
    if is_near(&store) && is_near(&common) {
        return Ok(true);
    }
    // A linked working tree or a submodule: its repository is elsewhere, and names this working tree itself.
    if store.starts_with(&common) && names_working_tree(&store, &top, cancel).await? {
        return Ok(true);
    }
    Err(elsewhere(folder, &store))
}

/// The repository, not the folder that points to it, says that this is one of its working trees.
async fn names_working_tree(store: &Path, top: &Path, cancel: &CancellationToken) -> Result<bool, String> {
    let linked = project_files::read_beneath(store, Path::new("gitdir"), 4096).ok();
    let linked = linked.and_then(|bytes| String::from_utf8(bytes).ok());
    let linked = linked.map(|text| store.join(text.trim_end_matches('\n')));
    if linked.and_then(|path| resolve_links(&path).ok()).is_some_and(|path| path == top.join(".git")) {
        return Ok(true);
    }
    let file = store.join("config");
    let Some(file) = file.to_str() else { return Ok(false) };
    let query = ["config", "--file", file, "--get", "core.worktree"];
    let Some(named) = ask(store, &query, cancel).await? else { return Ok(false) };
    Ok(resolve_links(&store.join(named)).is_ok_and(|path| path == top))
}

/// The settings of the repository itself that name programs by a name of their own: filters and kinds of differences.
async fn drivers(folder: &Path, cancel: &CancellationToken) -> Result<Vec<String>, String> {
    let query = ["config", "--list", "--includes", "--null", "--show-scope"];
    let Some(listed) = ask(folder, &query, cancel).await? else { return Err(unreadable(folder)) };
    let mut keys = Vec::new();
    let mut fields = listed.split('\0');
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let section = key.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let own = matches!(scope, "local" | "worktree");
        if own && section == "filter" && !is_large_file_storage(value) {
            keys.push(key.to_owned());
        }
    }
    Ok(keys)
}

/// `git lfs install --local` sets its own program, which is looked for where all programs are.
fn is_large_file_storage(value: &str) -> bool {
    ["git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs filter-process", "true"].contains(&value)
}

/// One question to git. `None` where it fails, as it does where there is no repository.
async fn ask(
    folder: &Path,
    arguments: &[&str],
    cancel: &CancellationToken,
) -> Result<Option<String>, String> {
    let settings: Vec<(String, String)> =
        OVERRIDES.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let finished = Spawn::new("git")
        .args(arguments)
        .directory(folder)
        .envs(variables(&settings))
        .deadline(QUERY_TIMEOUT)
        .limit(OutputLimit { head: MAX_OUTPUT, tail: 0 })
        .run(cancel)
        .await;
    match finished {
        Ok(finished) if finished.success() && finished.stdout.dropped == 0 => Ok(Some(text(&finished))),
        Ok(finished) if finished.success() => Err(unreadable(folder)),
        Ok(_) | Err(ProcessError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn text(finished: &Finished) -> String {
    let text = String::from_utf8_lossy(&finished.stdout.head).into_owned();
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}

fn resolved(path: &str) -> Result<PathBuf, String> {
    resolve_links(Path::new(path)).map_err(|error| format!("{path} cannot be resolved: {error}."))
}

fn elsewhere(folder: &Path, place: &Path) -> String {
    format!(
        "The repository of {} leads to {}, which is somewhere else, so git was not run. Name that folder with git -C to \
         ask for it.",
        folder.display(),
        place.display()
    )
}

fn unreadable(folder: &Path) -> String {
    format!("Git cannot say what it would do in {}, so it was not run.", folder.display())
}
