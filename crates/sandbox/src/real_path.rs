//! Real paths of what may not exist.

use std::path::{Path, PathBuf};

/// The path without links, if it leads to something. Most paths in the lists lead to nothing: one look shows that, where
/// resolving them looks at each folder above.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    path.symlink_metadata().ok()?;
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_what_leads_nowhere_has_no_real_path() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nothing", at("broken")).unwrap();
        assert_eq!(real_path(&at("link")), at("file").canonicalize().ok());
        assert_eq!((real_path(&at("broken")), real_path(&at("nothing"))), (None, None));
    }
}
