//! The one way to open files of a project: beneath a folder, or exactly one resolved path, never through a link that
//! leads out of it.
//!
//! Owns resolving symbolic links and opening without following any, and the names of files that matter for safety. Must not know tools, settings or sessions.
//! Invariants: a path is resolved first, the result is checked, and the checked path is opened without following a
//! link, so a link that appears in between makes the open fail. Only regular files are read, pipes and devices never
//! block, and every read has a limit.

mod sensitive;

pub use sensitive::{is_secret, may_run_later, run_later_at, runs_later};

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

const MAX_LINKS: usize = 40;

/// Reads a file of a project. A link to another file beneath `root` works; a link out of `root` is refused.
pub fn read_beneath(root: &Path, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let root = resolve_links(&absolute(root)?)?;
    let path = resolve_links(&root.join(path))?;
    if !path.starts_with(&root) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it leads out of its folder"));
    }
    read_open_file(open_regular(&path)?, limit)
}

/// Reads exactly the file that a person named, wherever its links lead.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open_file(open_regular(&resolve_links(&absolute(path)?)?)?, limit)
}

/// Opens a resolved path for reading if it is a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::from(open(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
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

/// Opens a path without following any symbolic link, wherever it stands in the path.
pub fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            // Old kernels and some containers do not have the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            other => return other.map_err(describe_error),
        }
    }
    open_by_walk(path, flags)
}

/// Removes a file, a link or a folder with everything in it. A link on the way to it makes this fail, also one that
/// another process puts there meanwhile.
pub fn remove_entry(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = open(parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let kind = FileType::from_raw_mode(rustix::fs::statat(&folder, name, flags)?.st_mode);
    if kind != FileType::Directory {
        return Ok(rustix::fs::unlinkat(&folder, name, AtFlags::empty())?);
    }
    // The open folder, wherever its path leads by now.
    let place = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let place = if cfg!(target_os = "linux") { place } else { parent.to_owned() };
    std::fs::remove_dir_all(place.join(name))
}

/// For systems without `openat2`: opens one folder after the other, each without following a link.
fn open_by_walk(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names: Vec<&OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::other("the path is not resolved"));
            }
        }
    }
    let start = if path.is_absolute() { "/" } else { "." };
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some((last, folders)) = names.split_last() else {
        return rustix::fs::openat(CWD, start, flags, Mode::empty()).map_err(describe_error);
    };
    let mut folder = rustix::fs::openat(CWD, start, folder_flags, Mode::empty())?;
    for name in folders {
        let flags = folder_flags | OFlags::NOFOLLOW;
        folder = rustix::fs::openat(&folder, *name, flags, Mode::empty()).map_err(describe_error)?;
    }
    rustix::fs::openat(&folder, *last, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(describe_error)
}

fn describe_error(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => io::Error::other("a symbolic link has come into its path"),
        other => other.into(),
    }
}

/// Follows every symbolic link and `..` as the system would. Names that do not exist stay as they are written.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to the standard library and grows")]
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let mut pending: Vec<OsString> = Vec::new();
    push_reversed(&mut pending, path);
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&name);
        match next.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                let target = next.read_link()?;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                push_reversed(&mut pending, &target);
            }
            Ok(_) => resolved = next,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => resolved = next,
                _ => return Err(error),
            },
        }
    }
    Ok(resolved)
}

fn push_reversed(pending: &mut Vec<OsString>, path: &Path) {
    let start = pending.len();
    for component in path.components() {
        match component {
            Component::Normal(name) => pending.push(name.to_owned()),
            Component::ParentDir => pending.push("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    pending[start..].reverse();
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(std::env::current_dir()?.join(path)) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

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
        std::os::unix::fs::symlink("../other", root.join("work/link")).unwrap();
        std::os::unix::fs::symlink("../../other/.git", root.join("work/real/.vscode")).unwrap();
        assert!(remove_entry(&root.join("work/link/.git")).is_err());
        for name in [".git", ".envrc", ".vscode"] {
            remove_entry(&root.join("work/real").join(name)).unwrap();
            assert!(root.join("work/real").join(name).symlink_metadata().is_err(), "{name}");
        }
        assert!(root.join("other/.git/hooks").is_dir());
    }

    #[test]
    fn neither_way_of_opening_follows_a_link() {
        let (_folder, root) = folder();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("real/file", root.join("link")).unwrap();
        for (path, opens) in [("real/file", true), ("folder/file", false), ("link", false)] {
            assert_eq!(open_by_walk(&root.join(path), OFlags::RDONLY).is_ok(), opens, "{path}");
            assert_eq!(open(&root.join(path), OFlags::RDONLY).is_ok(), opens, "{path}");
        }
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

    #[test]
    fn pipes_devices_folders_and_large_files_are_refused_without_waiting() {
        let (_folder, root) = folder();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(CWD, root.join("pipe"), mode).unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(root.join("large"), "12345").unwrap();
        for bad in ["pipe", "folder", "large", "missing"] {
            assert!(read_beneath(&root, Path::new(bad), 4).is_err(), "{bad}");
        }
        assert!(read_named(Path::new("/dev/zero"), 4).is_err());
        assert_eq!(read_beneath(&root, Path::new("large"), 5).unwrap(), b"12345");
    }
}
