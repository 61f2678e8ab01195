//! Settings of agents of other vendors that appear while such an agent works: they are moved aside, never deleted.
//!
//! Must not know agents. Invariant: what was there before a prompt stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_client::SettingsWatch;
use platform::project_files;

/// Moves settings aside that appear while an agent works: the vendor's own program would obey them later.
pub(crate) fn watch(kept: Vec<PathBuf>) -> SettingsWatch {
    Arc::new(move || {
        let missing = kept.iter().filter(|path| path.symlink_metadata().is_err()).cloned();
        let missing: Vec<PathBuf> = missing.collect();
        Box::new(move || missing.iter().filter_map(|path| move_aside(path)).collect())
    })
}

/// A sentence where there was something to move.
fn move_aside(path: &Path) -> Option<String> {
    path.symlink_metadata().ok()?;
    let mut name = path.file_name()?.to_owned();
    name.push(".left-by-agent");
    let place = path.with_file_name(name);
    let _ = project_files::remove_entry(&place);
    let shown = path.display();
    Some(match std::fs::rename(path, &place) {
        Ok(()) => format!(
            "{shown} appeared while the agent worked. Its own program would obey it later, so it was renamed to {}. Rename it \
             back if you made it.",
            place.display()
        ),
        Err(error) => format!(
            "{shown} appeared while the agent worked. Its own program will obey it; it could not be renamed: {error}."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_appears_meanwhile_is_moved_and_nothing_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("old.json"), "of the user").unwrap();
        let watch = watch(vec![path("old.json"), path("new.json"), path("hooks")]);
        let look = watch();
        std::fs::write(path("new.json"), "of the agent").unwrap();
        let told = look();
        assert!(told.len() == 1 && told[0].contains("new.json.left-by-agent"), "{told:?}");
        let read = |name: &str| std::fs::read_to_string(path(name)).ok();
        assert_eq!(read("new.json"), None);
        assert_eq!(read("new.json.left-by-agent").as_deref(), Some("of the agent"));
        // Made between two prompts, so it is the user's.
        std::fs::write(path("new.json"), "of the user").unwrap();
        assert_eq!(watch()(), [""; 0]);
        assert_eq!(
            (read("old.json").as_deref(), read("new.json").as_deref()),
            (Some("of the user"), Some("of the user"))
        );
    }
}
