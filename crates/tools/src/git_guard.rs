//! Keeps git from running programs that a repository names, and from reading a repository that is somewhere else, when
//! a command only looks.
//!
//! Owns the environment of such commands. Does not parse git's files: git itself says which settings hold and where
//! the repository is. Invariant: when git cannot say so, the command does not run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::CancellationToken;
use domain::tool::Scope;
use git::hardened;
use platform::project_files;
use platform::resolve_links;
use process::{Finished, OutputLimit, ProcessError, Spawn};

const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: usize = 4 << 20;

/// The environment for a line whose uses of git only look, in the folders where git may start.
pub(crate) async fn environment(
    folders: &[PathBuf],
    scope: &Scope,
    cancel: &CancellationToken,
) -> Result<Vec<(String, String)>, String> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        match check_location(folder, scope, cancel).await {
            Ok(true) => {}
            // Not a repository, or no git: the command itself will say so.
            Ok(false) => continue,
            Err(problem) => return Err(problem),
        }
        settings.extend(hardened::overrides_for(&own_settings(folder, cancel).await?));
    }
    Ok(hardened::variables(&settings))
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

/// The settings of the repository itself, and of files in its working tree that git-lfs reads.
async fn own_settings(folder: &Path, cancel: &CancellationToken) -> Result<Vec<(String, String)>, String> {
    let query = ["config", "--list", "--includes", "--null", "--show-scope"];
    let Some(listed) = ask(folder, &query, cancel).await? else { return Err(unreadable(folder)) };
    let mut settings = Vec::new();
    let mut has_large_files = false;
    let mut fields = listed.split('\0');
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        has_large_files |= key.starts_with("filter.lfs.");
        if matches!(scope, "local" | "worktree") {
            settings.push((key.to_owned(), value.to_owned()));
        }
    }
    if !has_large_files {
        return Ok(settings);
    }
    let query = ["config", "--blob", "HEAD:.lfsconfig", "--list", "--null"];
    let committed = ask(folder, &query, cancel).await?;
    let top = ask(folder, &["rev-parse", "--show-toplevel"], cancel).await?.unwrap_or_default();
    let file = Path::new(&top).join(".lfsconfig");
    let in_tree = match file.to_str().filter(|_| file.exists()) {
        Some(file) => ask(folder, &["config", "--file", file, "--list", "--null"], cancel).await?,
        None => None,
    };
    for entry in [committed, in_tree].iter().flatten().flat_map(|listed| listed.split('\0')) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        settings.push((key.to_owned(), value.to_owned()));
    }
    Ok(settings)
}

/// One question to git. `None` where it fails, as it does where there is no repository.
async fn ask(
    folder: &Path,
    arguments: &[&str],
    cancel: &CancellationToken,
) -> Result<Option<String>, String> {
    let finished = Spawn::new("git")
        .args(arguments)
        .directory(folder)
        .envs(hardened::variables(&[]))
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
