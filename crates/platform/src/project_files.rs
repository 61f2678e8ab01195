//! The one way to open files of a project: beneath a folder, or exactly one resolved path, never through a link that
//! leads out of it.
//!
//! Owns reading beneath a folder, and the names of files that matter for safety. Must not know tools, settings or sessions.
//! Invariants: a path is resolved first, the result is checked, and the checked path is opened without following a
//! link, so a link that appears in between makes the open fail. Only regular files are read, pipes and devices never
//! block, and every read has a limit.

mod git_index;
mod run_later;
mod secrets;
mod sensitive;

pub use git_index::tracked_paths;
pub use run_later::{RunLater, TABLE, may_run_later, run_later_at, run_later_below, runs_later};
pub use secrets::{Found, find_files};
pub use sensitive::{holds_secrets, is_secret, is_secret_folder};

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::resolve_links;

/// Reads a file of a project. A link to another file beneath `root` works; a link out of `root` is refused.
pub fn read_beneath(root: &Path, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let root = absolute(root)?;
    let whole = root.join(path);
    if whole.starts_with(&root)
        && let Some(opened) = open_without_links(&whole)
    {
        return read_open_file(opened?, limit);
    }
    let root = resolve_links(&root)?;
    let path = resolve_links(&root.join(path))?;
    if !path.starts_with(&root) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads out of its folder"));
    }
    read_open_file(open_regular(&path)?, limit)
}

/// Reads exactly the file that a person named, wherever its links lead.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let path = absolute(path)?;
    match open_without_links(&path) {
        Some(opened) => read_open_file(opened?, limit),
        None => read_open_file(open_regular(&resolve_links(&path)?)?, limit),
    }
}

/// Opens a path that has no link and no `..` in it, or finds that there is nothing, in one step where the system can. `None`:
/// the path must be resolved first.
fn open_without_links(path: &Path) -> Option<io::Result<File>> {
    let is_plain = path.components().all(|part| part != std::path::Component::ParentDir);
    // Elsewhere an open does not tell links from folders.
    if !is_plain || cfg!(not(unix)) {
        return None;
    }
    match open_regular(path) {
        Ok(file) => Some(Ok(file)),
        // Nothing before the missing part was a link.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Err(error)),
        Err(_) => None,
    }
}

/// Opens a resolved path for reading if it is a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = crate::open_file(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Reads a file to its end, which must come before the limit.
pub fn read_open_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The file may grow while it is read, and files of /proc report no length.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// Removes a file, a link or a folder with everything in it. A link on the way to it makes this fail, also one that
/// another process puts there meanwhile.
pub fn remove_entry(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    crate::Folder::open(parent)?.remove(name)
}

/// Gives a file, a link or a folder a name that no program looks for, and returns its new path. Nothing is overwritten.
pub fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = crate::Folder::open(parent)?;
    for number in 0..1_000 {
        let mut aside = name.to_owned();
        aside.push(".taken-back");
        if number > 0 {
            aside.push(format!("-{number}"));
        }
        let place = parent.join(&aside);
        if place.symlink_metadata().is_err() {
            folder.rename(name, &folder, &aside)?;
            return Ok(place);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// What a model reads about files that a command left behind and that other programs would run.
pub fn taken_back_sentence(paths: &[String], is_aside: bool) -> String {
    let what = if is_aside { "put aside, as" } else { "removed" };
    format!(
        "[The sandbox {what} {}: other programs would run it. To ask the user for it, repeat the call with grants: \
         run-later.]",
        paths.join(", ")
    )
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(std::env::current_dir()?.join(path)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        crate::symlink(target.as_ref(), link.as_ref())
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        (folder, root)
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("other/.git/hooks")).unwrap();
        std::fs::create_dir_all(root.join("work/real/.git/hooks")).unwrap();
        std::fs::write(root.join("work/real/.envrc"), "x").unwrap();
        symlink("../other", root.join("work/link")).unwrap();
        symlink("../../other/.git", root.join("work/real/.vscode")).unwrap();
        assert!(remove_entry(&root.join("work/link/.git")).is_err());
        for name in [".git", ".envrc", ".vscode"] {
            remove_entry(&root.join("work/real").join(name)).unwrap();
            assert!(root.join("work/real").join(name).symlink_metadata().is_err(), "{name}");
        }
        assert!(root.join("other/.git/hooks").is_dir());
    }

    #[test]
    fn a_link_may_lead_to_another_file_of_the_folder_and_nowhere_else() {
        let (_folder, base) = folder();
        let root = base.join("work");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::write(base.join("secret"), "secret").unwrap();
        std::fs::write(root.join("AGENTS.md"), "rules").unwrap();
        symlink("AGENTS.md", root.join("CLAUDE.md")).unwrap();
        symlink(root.join("AGENTS.md"), root.join("absolute")).unwrap();
        symlink("../AGENTS.md", root.join("docs/AGENTS.md")).unwrap();
        symlink("../secret", root.join("relative-out")).unwrap();
        symlink(base.join("secret"), root.join("absolute-out")).unwrap();
        symlink("/proc/self/environ", root.join("environment")).unwrap();
        symlink("docs/../../secret", root.join("dots-out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for good in ["AGENTS.md", "CLAUDE.md", "absolute", "docs/AGENTS.md"] {
            assert_eq!(read_beneath(&root, Path::new(good), 100).unwrap(), b"rules", "{good}");
        }
        let bad =
            ["relative-out", "absolute-out", "environment", "dots-out", "up/secret", "loop", "../secret"];
        for bad in bad {
            assert!(read_beneath(&root, Path::new(bad), 1 << 20).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[allow(clippy::disallowed_methods, reason = "no call that every Unix has makes a pipe with a name")]
    #[test]
    fn pipes_devices_folders_and_large_files_are_refused_without_waiting() {
        let (_folder, root) = folder();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("large"), "12345").unwrap();
        for bad in ["pipe", "folder", "large", "missing"] {
            assert!(read_beneath(&root, Path::new(bad), 4).is_err(), "{bad}");
        }
        assert!(read_named(Path::new("/dev/zero"), 4).is_err());
        assert_eq!(read_beneath(&root, Path::new("large"), 5).unwrap(), b"12345");
    }
}
