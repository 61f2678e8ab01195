//! The folder in which the program works: the current one, `--cwd` and `--add-dir`.

use std::path::{Path, PathBuf};

use domain::Failure;

/// Works in another folder from now on (`--cwd`).
pub(crate) fn change_folder(folder: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    std::env::set_current_dir(folder)
        .map_err(|error| Failure::user(format!("{} is not a folder to work in: {error}.", folder.display())))
}

/// The current folder and those of `--add-dir`.
pub(crate) fn roots(added: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut roots = current_folder();
    if roots.is_empty() {
        return Err(Failure::user("The current folder no longer exists. Change to another one."));
    }
    for folder in added {
        match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => roots.push(folder),
            Ok(_) | Err(_) => return Err(Failure::user(format!("{} is not a folder.", folder.display()))),
        }
    }
    Ok(roots)
}

/// The current folder as a list of workspace roots.
pub(crate) fn current_folder() -> Vec<PathBuf> {
    std::env::current_dir().into_iter().collect()
}
