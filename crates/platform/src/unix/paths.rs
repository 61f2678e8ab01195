//! Where a path leads on Unix.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

const MAX_LINKS: usize = 40;

/// Follows every symbolic link and `..` as the system would. Names that do not exist stay as they are written; on macOS
/// names that exist are written as the disk has them, whatever case and form of Unicode the path has.
#[allow(clippy::wildcard_enum_match_arm, reason = "the enum belongs to the standard library and grows")]
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let mut pending: Vec<OsString> = Vec::new();
    push_reversed(&mut pending, path);
    let mut links = 0;
    let mut exists = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            resolved.pop();
            exists = exists.min(resolved.components().count());
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
            Ok(_) => {
                resolved = next;
                exists = resolved.components().count();
            }
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => resolved = next,
                _ => return Err(error),
            },
        }
    }
    Ok(as_on_disk(resolved, exists))
}

/// The first `exists` components as the disk has them.
#[cfg(target_vendor = "apple")]
fn as_on_disk(path: PathBuf, exists: usize) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{Mode, OFlags};
    let known: PathBuf = path.components().take(exists).collect();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let written = rustix::fs::open(&known, flags, Mode::empty()).and_then(rustix::fs::getpath);
    match written {
        Ok(written) => {
            let mut real = PathBuf::from(OsString::from_vec(written.into_bytes()));
            real.extend(path.components().skip(exists));
            real
        }
        // A file that cannot be opened keeps the name it was given.
        Err(_) => path,
    }
}

#[cfg(not(target_vendor = "apple"))]
fn as_on_disk(path: PathBuf, _exists: usize) -> PathBuf {
    path
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
