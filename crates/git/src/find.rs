//! Whether git would take a folder for a git directory, by git's own rules.
//!
//! Reads small files alone. Invariant: where git says yes, so does this.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// git reads no longer line from these files.
const LONGEST: u64 = 8192;

/// A valid HEAD, and objects and refs in the folder or in the one that `commondir` names.
pub fn is_git_directory(folder: &Path) -> bool {
    if !is_head(&folder.join("HEAD")) {
        return false;
    }
    let shared = match folder.join("commondir").symlink_metadata() {
        Ok(_) => match read_small(&folder.join("commondir")) {
            Some(text) => folder.join(text.trim_end_matches(['\n', '\r'])),
            None => return false,
        },
        Err(_) => folder.to_owned(),
    };
    // git asks whether they can be entered, not whether they are folders.
    shared.join("objects").exists() && shared.join("refs").exists()
}

fn is_head(path: &Path) -> bool {
    let Ok(kind) = path.symlink_metadata() else { return false };
    if kind.is_symlink() {
        return fs::read_link(path).is_ok_and(|target| target.starts_with("refs"));
    }
    let Some(text) = read_small(path) else { return false };
    match text.strip_prefix("ref:") {
        Some(name) => name.trim_start().starts_with("refs/"),
        None => text.len() >= 40 && text.bytes().take(40).all(|byte| byte.is_ascii_hexdigit()),
    }
}

/// The folder that a file `.git` leads to.
pub fn linked_folder(link: &Path) -> Option<PathBuf> {
    let text = read_small(link)?;
    let target = text.strip_prefix("gitdir:")?.trim_start().trim_end_matches(['\n', '\r']);
    link.parent()?.join(target).canonicalize().ok()
}

/// A regular file of a few lines; pipes are not waited for.
pub(crate) fn read_small(path: &Path) -> Option<String> {
    let kind = fs::metadata(path).ok()?;
    if !kind.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_git_directory_is_known_by_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, head, is_one) in [
            ("branch", "ref: refs/heads/main\n", true),
            ("blanks", "ref:   refs/heads/main", true),
            ("detached", "0123456789012345678901234567890123456789\n", true),
            ("word", "HEAD\n", false),
            ("outside", "ref: ../x\n", false),
            ("short", "0123", false),
        ] {
            write(&at(name).join("HEAD"), head);
            assert!(!is_git_directory(&at(name)), "{name} has no objects");
            fs::create_dir_all(at(name).join("objects")).unwrap();
            fs::create_dir_all(at(name).join("refs")).unwrap();
            assert_eq!(is_git_directory(&at(name)), is_one, "{name}");
        }
        // The rest may be somewhere else.
        write(&at("linked/HEAD"), "ref: refs/heads/x");
        write(&at("linked/commondir"), "../branch\n");
        assert!(is_git_directory(&at("linked")));
        write(&at("linked/commondir"), "../word\n");
        write(&at("work/.git"), "gitdir: ../linked\n");
        assert_eq!(linked_folder(&at("work/.git")), at("linked").canonicalize().ok());
        platform::symlink(Path::new("refs/heads/main"), &at("by-link")).unwrap();
        fs::create_dir_all(at("old/objects")).unwrap();
        fs::create_dir_all(at("old/refs")).unwrap();
        fs::rename(at("by-link"), at("old/HEAD")).unwrap();
        assert!(is_git_directory(&at("old")));
    }
}
