//! Files that other programs run by themselves: a change of one needs an approval of its own.
//!
//! Knows names of files and folders, and the part of `package.json` that package managers run. Ordinary source and
//! build files are not among them: running those is what is asked about. Letters in another case count as the same.

use std::path::Path;

use domain::Review;
use serde_json::Value;

use crate::paths::ResolvedPath;

/// Folders whose files run, or decide what runs: git's own, of editors, of hooks, of continuous integration, of
/// assistants, of the session of a user.
const FOLDERS: &[&str] = &[
    ".azure-pipelines",
    ".buildkite",
    ".circleci",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".dragoman",
    ".eca",
    ".emacs.d",
    ".gemini",
    ".git",
    ".githooks",
    ".gitlab",
    ".helix",
    ".husky",
    ".idea",
    ".lefthook",
    ".mise",
    ".nvim",
    ".semaphore",
    ".ssh",
    ".teamcity",
    ".vim",
    ".vscode",
    ".woodpecker",
    ".yarn",
    ".zed",
];

/// The same with the folder above.
const NESTED_FOLDERS: &[(&str, &str)] = &[
    (".cargo", "bin"),
    (".config", "autostart"),
    (".config", "dragoman"),
    (".config", "eca"),
    (".config", "environment.d"),
    (".config", "fish"),
    (".config", "git"),
    (".config", "mise"),
    (".config", "nvim"),
    (".config", "systemd"),
    (".forgejo", "workflows"),
    (".gitea", "workflows"),
    (".github", "actions"),
    (".github", "workflows"),
    (".local", "bin"),
];

const FILES: &[&str] = &[
    ".appveyor.yml",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".inputrc",
    ".kshrc",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".mise.toml",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".overcommit.yml",
    ".pam_environment",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".profile",
    ".pythonrc",
    ".rprofile",
    ".screenrc",
    ".simple-git-hooks.json",
    ".tcshrc",
    ".tmux.conf",
    ".travis.yml",
    ".vimrc",
    ".woodpecker.yml",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "cloudbuild.yaml",
    "jenkinsfile",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "mise.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Parts of `package.json` that package managers and hooks run.
const SCRIPTS: &[&str] = &["gypfile", "husky", "lint-staged", "pre-commit", "scripts", "simple-git-hooks"];

/// Makes the review ask where the file at this path runs later. `texts` are its contents before and after.
pub(crate) fn require_approval(path: &ResolvedPath, texts: Option<(&str, &str)>, review: &mut Review) {
    let is_package = path.path().file_name().is_some_and(|name| name.eq_ignore_ascii_case("package.json"));
    let reason = if runs_later(path.path()) {
        "Other programs run this file, or read from it what they run."
    } else if is_package && texts.is_none_or(|(old, new)| scripts(old) != scripts(new)) {
        "It changes what package managers run."
    } else {
        return;
    };
    review.must_ask = Some(reason.to_owned());
    let path = path.path().to_owned();
    if !review.outside.contains(&path) {
        review.outside.push(path);
    }
}

fn runs_later(path: &Path) -> bool {
    let names: Vec<String> =
        path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase()).collect();
    let Some((file, folders)) = names.split_last() else { return false };
    FILES.contains(&file.as_str())
        || FOLDERS.contains(&file.as_str())
        || file.ends_with(".code-workspace")
        || is_cargo_configuration(file, folders)
        || folders.iter().any(|folder| FOLDERS.contains(&folder.as_str()))
        || names.windows(2).any(|pair| NESTED_FOLDERS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// Names the programs that cargo starts in place of others.
fn is_cargo_configuration(file: &str, folders: &[String]) -> bool {
    matches!(file, "config" | "config.toml") && folders.last().is_some_and(|folder| folder == ".cargo")
}

/// What of a `package.json` runs; `None` for text that is not understood, which differs from everything.
fn scripts(text: &str) -> Result<Vec<Option<Value>>, Unparsed> {
    if text.trim().is_empty() {
        return Ok(vec![None; SCRIPTS.len()]);
    }
    let value: Value = serde_json::from_str(text).map_err(|_| Unparsed)?;
    Ok(SCRIPTS.iter().map(|part| value.get(part).cloned()).collect())
}

#[derive(Debug)]
struct Unparsed;

impl PartialEq for Unparsed {
    fn eq(&self, _: &Self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_later_are_known_by_name() {
        for path in [
            "/w/.vscode/tasks.json",
            "/w/sub/.VSCode/tasks.json",
            "/w/.envrc",
            "/w/.husky/pre-commit",
            "/w/.github/workflows/ci.yml",
            "/w/.gitlab-ci.yml",
            "/w/.dragoman/config.json",
            "/w/.eca/config.json",
            "/w/.git/hooks/pre-commit",
            "/w/.bashrc",
            "/w/.config/fish/config.fish",
            "/w/.cargo/config.toml",
            "/w/.mcp.json",
            "/w/a.code-workspace",
        ] {
            assert!(runs_later(Path::new(path)), "{path}");
        }
        for path in [
            "/w/Makefile",
            "/w/Cargo.toml",
            "/w/build.rs",
            "/w/src/main.rs",
            "/w/.github/ISSUE_TEMPLATE.md",
            "/w/config.toml",
            "/w/.gitignore",
            "/w/docs/git/x",
        ] {
            assert!(!runs_later(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn only_the_scripts_of_a_package_run_later() {
        let same = |old: &str, new: &str| scripts(old) == scripts(new);
        assert!(same(r#"{"scripts":{"a":"b"}}"#, r#"{"version":"2","scripts":{"a":"b"}}"#));
        assert!(!same(r#"{"scripts":{"a":"b"}}"#, r#"{"scripts":{"a":"b","postinstall":"x"}}"#));
        assert!(!same("{}", "{ broken"));
        assert!(!same("{ broken", "{ broken"));
        assert!(same("", r#"{"name":"x"}"#));
    }
}
