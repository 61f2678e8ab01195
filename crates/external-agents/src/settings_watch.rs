//! Settings of agents of other vendors that appear while such an agent runs: they are moved aside, never deleted.
//!
//! Must not know agents. Invariant: what was there before the agent was started stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_client::SettingsLook;

/// Names that are tried for a file that is moved aside.
const MOST_NAMES: usize = 1_000;

/// Looks for settings that were not there when the agent was started: the vendor's own program would obey them later. The
/// agent runs between prompts too, so nobody can tell whether it made them then.
pub(crate) fn watch(kept: &[PathBuf]) -> SettingsLook {
    let missing = kept.iter().filter(|path| path.symlink_metadata().is_err()).cloned();
    let missing: Vec<PathBuf> = missing.collect();
    Arc::new(move || missing.iter().filter_map(|path| move_aside(path)).collect())
}

/// A sentence where there was something to move.
fn move_aside(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    // Agents make folders for what they may find there. An empty one says nothing, and it is read-only from the next start on.
    if found.is_dir() && std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
        return None;
    }
    let shown = path.display();
    Some(match rename(path) {
        Ok(place) => format!(
            "{shown} appeared while the agent ran. Its own program would obey it later, so it was renamed to {}. If you made \
             it, rename it back when this chat is closed.",
            place.display()
        ),
        Err(error) => format!(
            "{shown} appeared while the agent ran. Its own program will obey it; it could not be renamed: {error}."
        ),
    })
}

/// Renames a file or folder to a name beside it that is free.
fn rename(path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    let place = |number: usize| {
        let mut name = name.to_owned();
        name.push(".left-by-agent");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        path.with_file_name(name)
    };
    let free = (1..=MOST_NAMES).map(place).find(|place| place.symlink_metadata().is_err());
    let free = free.ok_or_else(|| std::io::Error::other("there are too many of them"))?;
    std::fs::rename(path, &free).map(|()| free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_while_an_agent_runs_is_moved_and_nothing_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("old.json"), "of the user").unwrap();
        let look = watch(&[path("old.json"), path("new.json"), path("hooks")]);
        std::fs::create_dir(path("hooks")).unwrap();
        std::fs::write(path("new.json"), "first").unwrap();
        let told = look();
        assert!(told.len() == 1 && told[0].contains("new.json.left-by-agent"), "{told:?}");
        let read = |name: &str| std::fs::read_to_string(path(name)).ok();
        // Between two prompts.
        std::fs::write(path("new.json"), "second").unwrap();
        assert_eq!(look().len(), 1);
        assert_eq!(look(), [""; 0]);
        assert_eq!(read("new.json"), None);
        assert_eq!(read("new.json.left-by-agent").as_deref(), Some("first"));
        assert_eq!(read("new.json.left-by-agent-2").as_deref(), Some("second"));
        assert_eq!(read("old.json").as_deref(), Some("of the user"));
        std::fs::write(path("hooks/h.sh"), "run me").unwrap();
        assert_eq!(look().len(), 1, "an empty folder may stay, one with files may not");
    }
}
