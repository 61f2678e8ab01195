//! Programs that lie where the sandbox puts something else: below `/tmp`, `/run`, or in our own folder of settings. A
//! program that somebody named by its path is shown with its folder, read-only.
//!
//! Invariants: neither a whole replaced folder nor the home folder is shown; of our own folders nothing is shown but the folder of the program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::lists::REPLACED;
use crate::places::Sandbox;
use crate::policy::Policy;

/// Files that say where a project begins: a script of it needs the folders beside its own.
const PROJECT_FILES: &[&str] = &["package.json", "pyproject.toml", "setup.py", "go.mod"];

impl Sandbox {
    /// Shows the named programs and scripts, those on the search path, and the folder where the command starts.
    pub fn show_programs<'a>(&self, policy: &mut Policy, named: impl Iterator<Item = &'a Path>) {
        let facts = &self.facts;
        let mut named: Vec<PathBuf> = named.filter(|path| path.is_absolute()).map(Path::to_owned).collect();
        // Scripts may call this program.
        named.extend(facts.helper.canonicalize());
        let mut shown = Vec::new();
        for path in &named {
            // As it is written and where it leads: a link in a folder of programs is followed inside.
            for path in [Some(path.clone()), path.canonicalize().ok()].into_iter().flatten() {
                self.uncover(policy, &path);
                shown.extend(self.folder_of(&path));
                shown.push(path);
            }
        }
        let on_path = facts.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let homes = ["CARGO_HOME", "RUSTUP_HOME"].into_iter().filter_map(|name| facts.variables.get(name));
        let folders = std::env::split_paths(on_path).chain(homes.map(PathBuf::from));
        for folder in folders.chain([policy.directory.clone()]) {
            if folder.is_absolute() {
                shown.extend(self.folder_of(&folder.join("program")));
            }
        }
        shown.retain(|path| is_replaced(path) && path.exists());
        shown.sort();
        shown.dedup();
        policy.exposed.extend(shown);
    }

    /// The folder that a program needs around it; `None`: only the file itself can be shown.
    fn folder_of(&self, program: &Path) -> Option<PathBuf> {
        let is_plain = |folder: &Path| {
            let covers = |other: &Path| other.starts_with(folder);
            let hidden = self.facts.own_folders.iter().chain([&self.facts.home]);
            is_replaced(folder)
                && !REPLACED.iter().any(|replaced| covers(Path::new(replaced)))
                && !hidden.into_iter().any(|path| covers(path))
        };
        let parent = program.parent().filter(|parent| is_plain(parent))?;
        let above: Vec<&Path> = parent.ancestors().take_while(|folder| is_plain(folder)).collect();
        let is_named = |folder: &Path, name: &str| folder.file_name().is_some_and(|own| own == name);
        let modules = above.iter().rev().find(|folder| is_named(folder, "node_modules"));
        let project = above
            .iter()
            .find(|folder| PROJECT_FILES.iter().any(|name| folder.join(name).symlink_metadata().is_ok()));
        let installed = above.iter().find(|folder| ["bin", "sbin"].iter().any(|name| is_named(folder, name)));
        let installed = installed.and_then(|folder| folder.parent()).filter(|folder| is_plain(folder));
        Some(modules.or(project).copied().or(installed).unwrap_or(parent).to_owned())
    }

    /// A program in our own folder of settings, such as the script of a hook: the rest of that folder stays hidden.
    fn uncover(&self, policy: &mut Policy, program: &Path) {
        let Some(own) = self.facts.own_folders.iter().find(|own| program.starts_with(own)) else { return };
        if !program.is_file() || !policy.hidden.contains(own) {
            return;
        }
        policy.hidden.retain(|path| path != own);
        let mut folder = own.clone();
        for part in program.strip_prefix(own).unwrap_or(program).components() {
            let next = folder.join(part);
            let others = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_scripts = folder != *own && next == program;
            // A script may use the files beside it, unless they are our own.
            policy.hidden.extend(others.filter(|path| *path != next && !is_scripts));
            folder = next;
        }
    }
}

fn is_replaced(path: &Path) -> bool {
    REPLACED.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Facts;

    #[test]
    fn the_folder_that_a_program_needs() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["server/package.json", "server/dist/index.js", "venv/bin/python", "plain/run.sh"] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let facts = Facts { home: root.join("home/me"), ..Facts::default() };
        let sandbox = Sandbox::new(facts);
        for (program, shown) in [
            ("server/dist/index.js", Some("server")),
            ("venv/bin/python", Some("venv")),
            ("plain/run.sh", Some("plain")),
            ("x/node_modules/tool/cli.js", Some("x/node_modules")),
            // The home folder is not shown.
            ("home/run.sh", None),
        ] {
            let shown = shown.map(|path| root.join(path));
            assert_eq!(sandbox.folder_of(&root.join(program)), shown, "{program}");
        }
        assert_eq!(sandbox.folder_of(Path::new("/tmp/run.sh")), None);
        assert_eq!(sandbox.folder_of(Path::new("/usr/bin/env")), None);
    }
}
