//! Finds skills: folders with a `SKILL.md`, of the user and of trusted projects.
//!
//! Must not know how a model loads them. Invariants: a link in a project never leads out of it; folders without trust
//! are not looked at; a file that is too large or has no name and description is no skill.

use std::path::{Path, PathBuf};

use config::plugins::Plugin;
use config::trust::Folder;
use engine::Skill;
use platform::project_files;
use serde_json::Value;

const FILE: &str = "SKILL.md";
const MAX_BYTES: u64 = 256 << 10;
/// Folders that are looked at in one place.
const MAX_FOLDERS: usize = 500;

/// The user's own first, then those of trusted projects, then those that the settings name; a later one of the same name
/// takes the place of an earlier one.
pub(crate) fn read(own: &[PathBuf], folders: &[Folder], named: &[PathBuf], roots: &[PathBuf]) -> Vec<Skill> {
    let mut found: Vec<Skill> = Vec::new();
    for folder in own {
        found.extend(skills_below(&folder.join("skills"), None));
    }
    for folder in folders.iter().filter(|folder| folder.is_trusted()) {
        for hidden in [".agents", ".claude", ".eca", ".dragoman"] {
            found.extend(skills_below(&folder.root.join(hidden).join("skills"), Some(&folder.root)));
        }
    }
    for path in named {
        if path.is_absolute() {
            found.extend(skills_below(path, None));
        } else {
            found.extend(roots.iter().flat_map(|root| skills_below(&root.join(path), Some(root))));
        }
    }
    let mut skills: Vec<Skill> = Vec::new();
    for skill in found {
        skills.retain(|known| known.name != skill.name);
        skills.push(skill);
    }
    skills
}

/// The installed plugins, and those that lie in trusted projects.
pub(crate) fn usable_plugins(resolved: &config::Resolved) -> Vec<Plugin> {
    let trusted = resolved.folders.iter().filter(|folder| folder.is_trusted());
    let of_projects = trusted.flat_map(|folder| config::plugins::of_project(&folder.root));
    of_projects.chain(resolved.plugins.installed.iter().cloned()).collect()
}

/// Skills of plugins have the name of the plugin before their own.
pub(crate) fn of_plugins(plugins: &[Plugin]) -> Vec<Skill> {
    let skills = plugins.iter().flat_map(|plugin| {
        let skills = skills_below(&plugin.folder.join("skills"), Some(&plugin.folder));
        skills.into_iter().map(|skill| Skill { name: plugin.prefixed(&skill.name), ..skill })
    });
    skills.collect()
}

/// The skill of a folder, or those of the folders in it.
fn skills_below(folder: &Path, root: Option<&Path>) -> Vec<Skill> {
    if let Some(skill) = skill_in(folder, root) {
        return vec![skill];
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.take(MAX_FOLDERS).filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders.iter().filter_map(|folder| skill_in(folder, root)).collect()
}

fn skill_in(folder: &Path, root: Option<&Path>) -> Option<Skill> {
    let file = folder.join(FILE);
    let bytes = match root {
        Some(root) => project_files::read_beneath(root, file.strip_prefix(root).ok()?, MAX_BYTES),
        None => project_files::read_named(&file, MAX_BYTES),
    };
    let text = String::from_utf8(bytes.ok()?).ok()?;
    let (values, body) = config::front_matter::split(&text);
    let value =
        |key: &str| values.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let name = value("name").or_else(|| folder.file_name()?.to_str())?;
    let is_plain =
        |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | ':' | '.');
    if !name.chars().all(is_plain) {
        return None;
    }
    Some(Skill {
        name: name.to_owned(),
        description: value("description")?.to_owned(),
        text: body.to_owned(),
        folder: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use config::trust::Trust;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), text).unwrap();
    }

    #[test]
    fn skills_come_from_the_user_and_from_trusted_folders_alone() {
        let (home, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let skill = |name: &str| format!("---\nname: {name}\ndescription: for {name}\n---\nDo {name}.\n");
        write(&home.path().join("skills"), "lint", &skill("lint"));
        write(&home.path().join("skills"), "nameless", "no front matter");
        write(&root.path().join(".eca/skills"), "deploy", &skill("deploy"));
        write(home.path(), "elsewhere", &skill("stolen"));
        platform::symlink(&home.path().join("elsewhere"), &root.path().join(".eca/skills/link")).unwrap();
        let names = |trust| {
            let folders = [Folder { root: root.path().to_owned(), trust }];
            let skills = read(&[home.path().to_owned()], &folders, &[], &[]);
            skills.into_iter().map(|skill| skill.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Trust::Untrusted), ["lint"]);
        assert_eq!(names(Trust::Trusted), ["lint", "deploy"], "a link out of the project is not followed");
        let named = [home.path().join("elsewhere")];
        assert_eq!(read(&[], &[], &named, &[])[0].text, "Do stolen.\n");
    }
}
