//! The folder that commands have for `/tmp`: of this process, of this user alone, gone when it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = "dragoman-tmp-";

/// A folder with `tmp` and `var` in it. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    pub(crate) fn make(parent: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        remove_abandoned(parent);
        let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().subsec_nanos();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}-{nanoseconds:08x}", std::process::id()));
        // Fails if it exists: another user cannot prepare it.
        platform::create_new_private_folder(&path)?;
        let path = path.canonicalize()?;
        for name in ["tmp", "var"] {
            platform::create_new_private_folder(&path.join(name))?;
        }
        Ok(Self(path))
    }

    /// In the folder that the environment names, or in the first other one that works.
    pub(crate) fn make_in_any(wanted: &Path, cache: &Path) -> io::Result<Self> {
        let own = cache.join("sandbox/tmp");
        let first = match Self::make(wanted) {
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        let others = ["/tmp", "/var/tmp"].map(Path::new).into_iter().filter(|other| *other != wanted);
        for other in others {
            if let Ok(made) = Self::make(other) {
                return Ok(made);
            }
        }
        let made = fs::create_dir_all(&own).and_then(|()| Self::make(&own));
        made.map_err(|_| io::Error::new(first.kind(), format!("{}: {first}", wanted.display())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        take_over_copies(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Folders of processes that were killed before they could remove theirs.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let pid = rest.split('-').next().unwrap_or_default();
        let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
        let is_ours = entry.metadata().is_ok_and(|kind| kind.is_dir() && platform::is_own(&kind));
        if is_number && is_ours && !Path::new("/proc").join(pid).exists() && Path::new("/proc/self").exists()
        {
            // No command sees these two, so nobody but a Dragoman that was killed made what is in them.
            if ["/tmp", "/var/tmp"].iter().any(|shared| Path::new(shared) == parent) {
                take_over_copies(&entry.path());
            }
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What commands committed to copies of git directories is not lost with the folder.
fn take_over_copies(_folder: &Path) {
    #[cfg(target_os = "linux")]
    crate::helper::left::take_over_all(_folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_replaced_by_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let made =
            Temporary::make_in_any(&folder.path().join("missing"), &folder.path().join("cache")).unwrap();
        assert!(made.path().join("tmp").is_dir() && made.path().join("var").is_dir());
    }
}
