//! The paths that a repository tracks, from its index. Reads one file and runs nothing.
//!
//! Invariant: an index that cannot be read is `None`, never an empty list.

use std::path::{Path, PathBuf};

use super::read_named;

/// A larger index is not read.
const LARGEST: u64 = 256 << 20;

/// The tracked paths of the repository whose working tree is `root`, as bytes of the file turned to text. `Some` and empty:
/// there is no repository, or nothing is tracked yet.
pub fn tracked_paths(root: &Path) -> Option<Vec<String>> {
    let place = root.join(".git");
    let folder = match place.symlink_metadata() {
        Err(_) => return Some(Vec::new()),
        Ok(kind) if kind.is_dir() => place,
        Ok(_) => linked(&place)?,
    };
    let index = folder.join("index");
    if index.symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    parse(&read_named(&index, LARGEST).ok()?)
}

/// The folder that a `.git` file names.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(read_named(file, 8192).ok()?).ok()?;
    let target = text.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(target))
}

fn parse(bytes: &[u8]) -> Option<Vec<String>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (number(4)?, number(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut paths = Vec::new();
    let mut previous: Vec<u8> = Vec::new();
    let mut at = 12;
    // Times, device, inode, mode, owner, size and hash come before the flags.
    const FIXED: usize = 62;
    for _ in 0..count {
        let flags = u16::from_be_bytes(bytes.get(at + 60..at + FIXED)?.try_into().ok()?);
        let extended = if version >= 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        let mut name = at + FIXED + extended;
        let path = if version == 4 {
            let removed = variable(bytes, &mut name)?;
            let end = name + bytes.get(name..)?.iter().position(|byte| *byte == 0)?;
            let mut path = previous.get(..previous.len().checked_sub(removed)?)?.to_vec();
            path.extend_from_slice(bytes.get(name..end)?);
            at = end + 1;
            path
        } else {
            let end = name + bytes.get(name..)?.iter().position(|byte| *byte == 0)?;
            // Entries are filled up with zeros to a multiple of eight.
            at += (end - at + 8) & !7;
            bytes.get(name..end)?.to_vec()
        };
        paths.push(String::from_utf8_lossy(&path).into_owned());
        previous = path;
    }
    // A split index keeps most entries in another file.
    while let (Some(name), Some(size)) = (bytes.get(at..at + 4), number(at + 4)) {
        if name == b"link" {
            return None;
        }
        at = at.checked_add(8)?.checked_add(size as usize)?;
    }
    Some(paths)
}

/// A number of seven bits a byte, as packs have it.
fn variable(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut byte = *bytes.get(*at)?;
    *at += 1;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the real index is written by git")]
    fn git(folder: &Path, arguments: &[&str]) -> bool {
        let mut git = std::process::Command::new("git");
        git.args(arguments).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.output().is_ok_and(|output| output.status.success())
    }

    #[test]
    fn tracked_paths_are_read_in_every_version() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tracked_paths(folder.path()), Some(Vec::new()));
        if !git(folder.path(), &["init", "-q"]) {
            return;
        }
        let expected = [".env", "a/long/name-of-a-file.txt", "a/long/name-of-another.txt", "b"];
        for path in expected {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        assert_eq!(tracked_paths(folder.path()), Some(Vec::new()));
        assert!(git(folder.path(), &["add", "-f", "."]));
        for version in ["2", "3", "4"] {
            assert!(git(folder.path(), &["update-index", "--index-version", version]));
            assert_eq!(tracked_paths(folder.path()).unwrap(), expected, "version {version}");
        }
        std::fs::write(folder.path().join(".git/index"), "DIRCxxxx").unwrap();
        assert_eq!(tracked_paths(folder.path()), None);
    }
}
