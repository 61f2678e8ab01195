//! Names of files that matter for safety: those that other programs run by themselves, and those that hold secrets.
//!
//! Knows names alone and opens nothing. Letters in another case count as the same. Ordinary source and build files are
//! not among those that run later: running them is what is asked about.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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

/// Folders with the keys of a user.
const SECRET_FOLDERS: &[&str] =
    &[".aws", ".azure", ".gnupg", ".kube", ".password-store", ".secrets", ".ssh", "keyrings"];

const SECRET_NESTED_FOLDERS: &[(&str, &str)] = &[
    (".config", "gcloud"),
    (".config", "gh"),
    (".config", "op"),
    (".docker", "config.json"),
    (".mozilla", "firefox"),
];

const SECRET_FILES: &[&str] = &[
    ".dockercfg",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "auth.json",
    "credentials",
    "environ",
    "kubeconfig",
    "master.key",
    "shadow",
    "terraform.tfstate",
    "wallet.dat",
];

/// Beginnings of names, whatever follows.
const SECRET_STEMS: &[&str] =
    &["credentials.", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa", "secret.", "secrets.", "service-account"];

const SECRET_ENDINGS: &[&str] =
    &[".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk", ".tfvars"];

/// Endings of examples, which hold no secret.
const EXAMPLES: &[&str] = &[".dist", ".example", ".sample", ".template", ".pub"];

/// Whether other programs run this file by themselves, or read from it what they run.
pub fn runs_later(path: &Path) -> bool {
    let names = lower_names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    FILES.contains(&file.as_str())
        || FOLDERS.contains(&file.as_str())
        || file.ends_with(".code-workspace")
        || is_cargo_configuration(file, folders)
        || folders.iter().any(|folder| FOLDERS.contains(&folder.as_str()))
        || names.windows(2).any(|pair| NESTED_FOLDERS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// Whether an entry of this name may run later or hold something that does. Quick, for walks over many names.
pub fn may_run_later(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_plain_file =
        |file: &&str| !file.starts_with('.') && file.len() == name.len() && file.eq_ignore_ascii_case(name);
    name.starts_with('.') || name.ends_with(".code-workspace") || FILES.iter().any(is_plain_file)
}

/// What of this entry runs later: itself, or folders and files that it holds. They need not exist.
pub fn run_later_at(path: &Path) -> Vec<PathBuf> {
    if runs_later(path) {
        return vec![path.to_owned()];
    }
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let nested = NESTED_FOLDERS.iter().filter(|(above, _)| above.eq_ignore_ascii_case(name));
    let mut found: Vec<PathBuf> = nested.map(|(_, below)| path.join(below)).collect();
    if name.eq_ignore_ascii_case(".cargo") {
        found.extend(["config", "config.toml"].map(|file| path.join(file)));
    }
    found
}

/// Names the programs that cargo starts in place of others.
fn is_cargo_configuration(file: &str, folders: &[String]) -> bool {
    matches!(file, "config" | "config.toml") && folders.last().is_some_and(|folder| folder == ".cargo")
}

/// Whether a file of this name usually holds keys or passwords.
pub fn is_secret(path: &Path) -> bool {
    let names = lower_names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    if EXAMPLES.iter().any(|ending| file.ends_with(ending)) {
        return false;
    }
    file == ".env"
        || file.starts_with(".env.")
        || file.ends_with(".env")
        || SECRET_FILES.contains(&file.as_str())
        || SECRET_STEMS.iter().any(|stem| file.starts_with(stem))
        || SECRET_ENDINGS.iter().any(|ending| file.ends_with(ending))
        || folders.iter().any(|folder| SECRET_FOLDERS.contains(&folder.as_str()))
        || names.windows(2).any(|pair| SECRET_NESTED_FOLDERS.contains(&(pair[0].as_str(), pair[1].as_str())))
}

fn lower_names(path: &Path) -> Vec<String> {
    path.components().map(|name| name.as_os_str().to_string_lossy().to_lowercase()).collect()
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
    fn a_walk_finds_what_runs_later() {
        for name in [".vscode", ".github", "Jenkinsfile", "mise.toml", "a.code-workspace", ".git"] {
            assert!(may_run_later(OsStr::new(name)), "{name}");
        }
        for name in ["src", "main.rs", "config.toml", "workflows"] {
            assert!(!may_run_later(OsStr::new(name)), "{name}");
        }
        assert_eq!(run_later_at(Path::new("/w/a/.vscode")), [Path::new("/w/a/.vscode")]);
        let github = run_later_at(Path::new("/w/.github"));
        assert_eq!(github, [Path::new("/w/.github/actions"), Path::new("/w/.github/workflows")]);
        assert!(run_later_at(Path::new("/w/.cargo")).contains(&PathBuf::from("/w/.cargo/config.toml")));
        assert!(run_later_at(Path::new("/w/.eslintrc")).is_empty());
    }

    #[test]
    fn files_with_secrets_are_known_by_name() {
        for path in [
            "/w/.env",
            "/w/.env.production",
            "/w/deploy/prod.env",
            "/w/certs/server.pem",
            "/home/a/.ssh/config",
            "/home/a/.aws/credentials",
            "/w/config/Secrets.yml",
            "/w/ID_RSA",
            "/proc/self/environ",
        ] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in ["/w/.env.example", "/w/src/key.rs", "/w/id_rsa.pub", "/w/README.md", "/w/environment.ts"]
        {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }
}
