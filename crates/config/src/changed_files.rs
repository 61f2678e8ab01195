//! Settings files that changed after they were read, so that a program which runs on can say so.
//!
//! Invariant: only what would change settings counts, not comments or order; what this process wrote itself, and rules for one
//! project that another one wrote, do not count.

use std::path::{Path, PathBuf};

use crate::jsonc;
use crate::layer::{Layer, Object};
use crate::resolve::Resolved;
use crate::seen_file::{is_own_write, stamp};

/// The key below which rules are added while a chat is open.
const OWN_RULES: &str = "projects";

impl Resolved {
    /// The files whose settings are other ones now.
    pub fn changed_files(&self) -> Vec<PathBuf> {
        let touched = self.seen_files.iter().filter(|seen| stamp(&seen.path) != seen.stamp);
        let paths = touched.map(|seen| &seen.path).filter(|path| !is_own_write(path));
        paths.filter(|path| is_changed(&self.layers, path)).cloned().collect()
    }
}

fn is_changed(layers: &[Layer], path: &Path) -> bool {
    let before = layers.iter().filter(|layer| layer.origin.file() == Some(path));
    let before = before.filter_map(|layer| layer.text.clone()).next();
    let Ok(now) = jsonc::read(path) else { return true };
    match (values(before), values(now)) {
        (Some(before), Some(now)) => before != now,
        // One of them cannot be read.
        _ => true,
    }
}

fn values(text: Option<String>) -> Option<Object> {
    let mut values = jsonc::parse(text.as_deref().unwrap_or_default()).ok()?;
    values.remove(OWN_RULES);
    Some(values)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::environment::Environment;
    use crate::resolve::{Inputs, resolve};

    #[test]
    fn a_file_that_changes_settings_is_named_and_others_are_not() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        fs::create_dir_all(project.join(".dragoman")).unwrap();
        let environment = Environment::new(home.path(), std::iter::empty::<(String, String)>());
        let own = environment.config_dir().join("config.json");
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::write(&own, r#"{"defaultModel": "a/b"}"#).unwrap();
        let inputs = Inputs { workspace_roots: vec![project.clone()], ..Inputs::default() };
        let resolved = resolve(&environment, &inputs);
        assert!(resolved.changed_files().is_empty());
        fs::write(&own, "{\n  // the same\n  \"projects\": {\"/x\": {}}, \"defaultModel\": \"a/b\"}")
            .unwrap();
        assert!(resolved.changed_files().is_empty(), "neither comments nor own rules count");
        fs::write(&own, r#"{"defaultModel": "a/c"}"#).unwrap();
        assert_eq!(resolved.changed_files(), std::slice::from_ref(&own));
        crate::seen_file::note_own_write(&own);
        assert!(resolved.changed_files().is_empty(), "the program knows what it wrote itself");
        fs::write(&own, r#"{"defaultModel": "a/other"}"#).unwrap();
        let of_project = project.canonicalize().unwrap().join(".dragoman/config.json");
        fs::write(&of_project, r#"{"chat": {}}"#).unwrap();
        assert_eq!(resolved.changed_files(), [own.clone(), of_project]);
        fs::write(&own, "{broken").unwrap();
        assert!(resolved.changed_files().contains(&own));
        fs::remove_file(&own).unwrap();
        assert!(resolved.changed_files().contains(&own));
    }
}
