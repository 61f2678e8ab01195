//! Files only their owner may read, replaced as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use platform::OpenOptionsExt;

/// Writes `path` (mode 0600, its directory 0700 when it is made) so that a reader sees the old or the new
/// content, also after a crash.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = directory(path)?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| platform::replace_file(&temporary, path)) {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    platform::sync_folder(directory)
}

/// Holds off every other process that wants to change `path`, until it is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    directory(path)?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .private()
        // Another user may have left a link here, where the folder is shared.
        .no_follow()
        .open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn directory(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    platform::create_private_folder(directory)?;
    Ok(directory)
}

fn create(path: &Path) -> io::Result<File> {
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).private().open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
        platform::symlink(target.as_ref(), link.as_ref())
    }

    #[test]
    fn links_of_another_user_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let path = folder.path().join("shared/file.json");
        fs::create_dir(folder.path().join("shared")).unwrap();
        symlink(&victim, path.with_extension("lock")).unwrap();
        symlink(&victim, path.with_extension(format!("{}.new", std::process::id()))).unwrap();
        symlink(&victim, &path).unwrap();
        assert!(lock(&path).is_err());
        write(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!path.is_symlink() && fs::read_to_string(&path).unwrap() == "new");
        fs::remove_file(path.with_extension("lock")).unwrap();
        symlink(folder.path().join("not-there"), path.with_extension("lock")).unwrap();
        assert!(lock(&path).is_err() && !folder.path().join("not-there").exists());
    }
}
