//! What the user wants with each thing that was found: use it where it is, copy it, or leave it out. Pure.
//!
//! Invariant: a choice for a folder holds for everything in it, unless something in it has a choice of its own.

use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    InPlace,
    Copy,
    LeaveOut,
}

impl Choice {
    /// What to do, for people and scripts.
    pub fn words(self) -> &'static str {
        match self {
            Self::InPlace => "use in place",
            Self::Copy => "copy",
            Self::LeaveOut => "leave out",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Copy everything that has no choice of its own.
    copies_all: bool,
    chosen: Vec<(PathBuf, Choice)>,
}

impl Choices {
    pub fn new(copies_all: bool) -> Self {
        Self { copies_all, chosen: Vec::new() }
    }

    /// A later choice for the same path takes the place of the earlier one.
    pub fn choose(&mut self, path: PathBuf, choice: Choice) {
        self.chosen.retain(|(known, _)| *known != path);
        self.chosen.push((path, choice));
    }

    /// `None`: the usual one.
    pub(super) fn of(&self, path: &Path) -> Option<Choice> {
        let around = self.chosen.iter().filter(|(known, _)| path.starts_with(known));
        let deepest = around.max_by_key(|(known, _)| known.components().count());
        deepest.map(|(_, choice)| *choice).or(self.copies_all.then_some(Choice::Copy))
    }

    /// Paths with a choice that lead to nothing of what was found.
    pub(super) fn unused<'a>(&'a self, found: &[PathBuf]) -> Vec<&'a Path> {
        let leads = |path: &Path| found.iter().any(|found| found.starts_with(path));
        self.chosen.iter().map(|(path, _)| path.as_path()).filter(|path| !leads(path)).collect()
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// A file, or the folder of a skill.
    pub path: PathBuf,
    /// What can be done with it; the usual first.
    pub choices: &'static [Choice],
}

/// The thing that a file belongs to: a skill is one with all its files.
pub(super) fn thing_of(file: &Path) -> PathBuf {
    let skill = file
        .ancestors()
        .find(|folder| folder.parent().and_then(Path::file_name).is_some_and(|name| name == "skills"));
    skill.unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_choice_counts() {
        let mut choices = Choices::default();
        assert_eq!(choices.of(Path::new("/w/.claude/agents/a.md")), None);
        choices.choose("/w/.claude".into(), Choice::Copy);
        choices.choose("/w/.claude/agents".into(), Choice::LeaveOut);
        choices.choose("/w/.claude/agents/a.md".into(), Choice::InPlace);
        let of = |path: &str| choices.of(Path::new(path));
        assert_eq!(of("/w/.claude/settings.json"), Some(Choice::Copy));
        assert_eq!(of("/w/.claude/agents/b.md"), Some(Choice::LeaveOut));
        assert_eq!(of("/w/.claude/agents/a.md"), Some(Choice::InPlace));
        assert_eq!(of("/w/.claude.json"), None);
        let found = ["/w/.claude/agents/a.md".into()];
        assert!(choices.unused(&found).is_empty());
        choices.choose("/w/other".into(), Choice::Copy);
        assert_eq!(choices.unused(&found), [Path::new("/w/other")]);
        choices.copies_all = true;
        assert_eq!(choices.of(Path::new("/w/.mcp.json")), Some(Choice::Copy));
    }

    #[test]
    fn a_skill_is_one_thing_with_all_its_files() {
        for file in ["/w/.claude/skills/s/SKILL.md", "/w/.claude/skills/s/scripts/run.sh"] {
            assert_eq!(thing_of(Path::new(file)), Path::new("/w/.claude/skills/s"));
        }
        assert_eq!(thing_of(Path::new("/w/CLAUDE.md")), Path::new("/w/CLAUDE.md"));
    }
}
