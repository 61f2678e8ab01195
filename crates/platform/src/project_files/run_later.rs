//! Names of files that other programs run by themselves, or read from what they run or obey. One table, by program, each
//! with the page that says so.
//!
//! Knows names alone and opens nothing. Letters in another case count as the same. Ordinary source and build files are
//! not among them: running them is what is asked about. Instructions for assistants are, because the next chat obeys them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::sensitive::lower_names;

/// What one program, or one kind of programs, runs. Names in small letters.
pub struct RunLater {
    pub program: &'static str,
    /// Where its documentation says so.
    pub source: &'static str,
    /// Folders of which every file counts.
    pub folders: &'static [&'static str],
    /// Folders or files inside of a folder of that name.
    pub nested: &'static [(&'static str, &'static str)],
    pub files: &'static [&'static str],
    /// Endings of file names.
    pub endings: &'static [&'static str],
}

const fn entry(program: &'static str, source: &'static str) -> RunLater {
    RunLater { program, source, folders: &[], nested: &[], files: &[], endings: &[] }
}

/// The table.
#[rustfmt::skip]
pub const TABLE: &[RunLater] = &[
    // Version control
    RunLater {
        folders: &[".git", ".githooks"],
        nested: &[(".config", "git")],
        files: &[".gitconfig", ".gitmodules"],
        ..entry("git", "https://git-scm.com/docs/githooks")
    },
    RunLater { folders: &[".husky"], ..entry("husky", "https://typicode.github.io/husky/") },
    RunLater {
        folders: &[".lefthook"],
        files: &[
            ".lefthook.yaml", ".lefthook.yml", "lefthook.json", "lefthook.toml", "lefthook.yaml", "lefthook.yml",
        ],
        ..entry("lefthook", "https://lefthook.dev/configuration/")
    },
    RunLater {
        files: &[".pre-commit-config.yaml", ".overcommit.yml", ".simple-git-hooks.json"],
        ..entry("hook managers", "https://pre-commit.com/")
    },
    // Assistants
    RunLater {
        folders: &[".dragoman", ".eca"],
        nested: &[(".config", "dragoman"), (".config", "eca")],
        files: &["agents.md", "skill.md"],
        ..entry("Dragoman", "dragoman docs instructions")
    },
    RunLater {
        folders: &[".agents"],
        files: &["agent.md", "agents.override.md"],
        ..entry("AGENTS.md", "https://agents.md/")
    },
    RunLater {
        folders: &[".claude"],
        files: &["claude.md", "claude.local.md", ".mcp.json"],
        ..entry("Claude Code", "https://code.claude.com/docs/en/memory")
    },
    RunLater { folders: &[".codex"], ..entry("Codex", "https://developers.openai.com/codex/config-reference") },
    RunLater {
        folders: &[".gemini"],
        files: &["gemini.md"],
        ..entry("Gemini CLI", "https://geminicli.com/docs/cli/gemini-md/")
    },
    RunLater {
        folders: &[".qwen"],
        files: &["qwen.md"],
        ..entry("Qwen Code", "https://qwenlm.github.io/qwen-code-docs/")
    },
    RunLater {
        folders: &[".opencode"],
        files: &["opencode.json", "opencode.jsonc"],
        ..entry("opencode", "https://opencode.ai/docs/config/")
    },
    RunLater {
        files: &[".aider.conf.yml", ".aider.model.settings.yml"],
        ..entry("aider", "https://aider.chat/docs/config/aider_conf.html")
    },
    RunLater {
        folders: &[".cursor"],
        files: &[".cursorrules"],
        ..entry("Cursor", "https://cursor.com/docs/context/rules")
    },
    RunLater {
        folders: &[".windsurf", ".codeium"],
        files: &[".windsurfrules"],
        ..entry("Windsurf", "https://docs.windsurf.com/windsurf/cascade/memories")
    },
    RunLater {
        folders: &[".continue"],
        files: &[".continuerc.json", ".continuerules"],
        ..entry("Continue", "https://docs.continue.dev/customize/deep-dives/rules")
    },
    RunLater {
        folders: &[".roo"],
        files: &[".roomodes", ".roorules"],
        ..entry("Roo Code", "https://docs.roocode.com/features/custom-instructions")
    },
    RunLater {
        folders: &[".cline", ".clinerules"],
        ..entry("Cline", "https://docs.cline.bot/features/cline-rules")
    },
    RunLater {
        folders: &[".kilocode"],
        files: &[".kilocodemodes"],
        ..entry("Kilo Code", "https://kilocode.ai/docs/")
    },
    RunLater { folders: &[".kiro"], ..entry("Kiro", "https://kiro.dev/docs/steering/") },
    RunLater { folders: &[".junie"], ..entry("Junie", "https://www.jetbrains.com/help/junie/") },
    RunLater { folders: &[".trae"], ..entry("Trae", "https://docs.trae.ai/ide/rules") },
    RunLater {
        folders: &[".augment"],
        files: &[".augment-guidelines"],
        ..entry("Augment", "https://docs.augmentcode.com/setup-augment/guidelines")
    },
    RunLater { folders: &[".factory"], ..entry("Droid", "https://docs.factory.ai/cli/configuration/settings") },
    RunLater { folders: &[".openhands"], ..entry("OpenHands", "https://docs.openhands.dev/") },
    RunLater {
        folders: &[".crush"],
        files: &["crush.json", ".crush.json", "crush.md"],
        ..entry("Crush", "https://github.com/charmbracelet/crush")
    },
    RunLater { folders: &[".goose"], files: &[".goosehints"], ..entry("Goose", "https://block.github.io/goose/") },
    RunLater {
        nested: &[
            (".github", "instructions"), (".github", "prompts"), (".github", "chatmodes"), (".github", "agents"),
            (".github", "copilot-instructions.md"), (".github", "hooks"), (".github", "skills"),
        ],
        files: &["copilot-instructions.md"],
        ..entry("GitHub Copilot", "https://docs.github.com/en/copilot/how-tos/configure-custom-instructions")
    },
    // Editors
    RunLater {
        folders: &[".vscode"],
        endings: &[".code-workspace"],
        ..entry("Visual Studio Code", "https://code.visualstudio.com/docs/debugtest/tasks")
    },
    RunLater {
        folders: &[".idea", ".run", ".fleet"],
        ..entry("JetBrains", "https://www.jetbrains.com/help/idea/run-debug-configuration.html")
    },
    RunLater { folders: &[".vs"], ..entry("Visual Studio", "https://learn.microsoft.com/visualstudio/ide/customize-build-and-debug-tasks-in-visual-studio") },
    RunLater {
        endings: &[".sublime-project", ".sublime-workspace"],
        ..entry("Sublime Text", "https://www.sublimetext.com/docs/projects.html")
    },
    RunLater { folders: &[".zed"], ..entry("Zed", "https://zed.dev/docs/tasks") },
    RunLater { folders: &[".helix"], ..entry("Helix", "https://docs.helix-editor.com/configuration.html") },
    RunLater {
        folders: &[".nvim", ".vim"],
        nested: &[(".config", "nvim")],
        files: &[".exrc", ".nvim.lua", ".nvimrc", ".vimrc"],
        ..entry("Vim and Neovim", "https://neovim.io/doc/user/options.html#'exrc'")
    },
    RunLater {
        folders: &[".emacs.d"],
        files: &[".dir-locals-2.el", ".dir-locals.el", ".emacs"],
        ..entry("Emacs", "https://www.gnu.org/software/emacs/manual/html_node/emacs/Directory-Variables.html")
    },
    RunLater {
        folders: &[".devcontainer"],
        files: &[".devcontainer.json", ".gitpod.yml", ".replit"],
        ..entry("development containers", "https://containers.dev/implementors/spec/")
    },
    // Continuous integration
    RunLater {
        nested: &[(".github", "actions"), (".github", "workflows")],
        ..entry("GitHub Actions", "https://docs.github.com/en/actions")
    },
    RunLater {
        nested: &[(".forgejo", "workflows"), (".gitea", "workflows")],
        ..entry("Forgejo and Gitea", "https://forgejo.org/docs/latest/user/actions/")
    },
    RunLater {
        folders: &[".gitlab"],
        files: &[".gitlab-ci.yml"],
        ..entry("GitLab", "https://docs.gitlab.com/ci/yaml/")
    },
    RunLater { folders: &[".circleci"], ..entry("CircleCI", "https://circleci.com/docs/configuration-reference/") },
    RunLater { folders: &[".buildkite"], ..entry("Buildkite", "https://buildkite.com/docs/pipelines") },
    RunLater {
        folders: &[".woodpecker"],
        files: &[".woodpecker.yml", ".drone.yml"],
        ..entry("Woodpecker and Drone", "https://woodpecker-ci.org/docs/usage/workflow-syntax")
    },
    RunLater {
        folders: &[".azure-pipelines"],
        files: &["azure-pipelines.yml"],
        ..entry("Azure Pipelines", "https://learn.microsoft.com/azure/devops/pipelines/yaml-schema/")
    },
    RunLater { files: &[".cirrus.yml", ".cirrus.star"], ..entry("Cirrus CI", "https://cirrus-ci.org/guide/writing-tasks/") },
    RunLater { folders: &[".tekton"], ..entry("Tekton", "https://pipelinesascode.com/docs/guide/authoringprs/") },
    RunLater {
        files: &["buildspec.yml", "buildspec.yaml"],
        ..entry("AWS CodeBuild", "https://docs.aws.amazon.com/codebuild/latest/userguide/build-spec-ref.html")
    },
    RunLater { files: &["cloudbuild.yaml"], ..entry("Google Cloud Build", "https://cloud.google.com/build/docs/build-config-file-schema") },
    RunLater {
        folders: &[".semaphore", ".teamcity"],
        files: &[
            ".appveyor.yml", ".travis.yml", "appveyor.yml", "bitbucket-pipelines.yml", "codefresh.yml", "jenkinsfile",
            "screwdriver.yaml", "wercker.yml",
        ],
        ..entry("other continuous integration", "https://www.jenkins.io/doc/book/pipeline/jenkinsfile/")
    },
    // Package managers and languages
    RunLater {
        folders: &[".yarn"],
        files: &[".npmrc", ".pnp.cjs", ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml"],
        ..entry("npm, pnpm and yarn", "https://yarnpkg.com/configuration/yarnrc")
    },
    RunLater {
        nested: &[(".cargo", "bin"), (".cargo", "config"), (".cargo", "config.toml")],
        ..entry("cargo", "https://doc.rust-lang.org/cargo/reference/config.html")
    },
    RunLater {
        files: &[".pythonrc", "sitecustomize.py", "usercustomize.py", ".rprofile"],
        ..entry("interpreters", "https://docs.python.org/3/library/site.html")
    },
    RunLater { files: &[".gdbinit", ".lldbinit"], ..entry("debuggers", "https://sourceware.org/gdb/current/onlinedocs/gdb.html/gdbinit-man.html") },
    // Shells and the session of a user
    RunLater {
        folders: &[".mise"],
        nested: &[(".config", "mise")],
        files: &[".envrc", ".mise.toml", "mise.toml"],
        ..entry("direnv and mise", "https://direnv.net/man/direnv.1.html")
    },
    RunLater {
        nested: &[(".config", "fish"), (".local", "bin")],
        files: &[
            ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc", ".inputrc", ".kshrc",
            ".login", ".profile", ".screenrc", ".tcshrc", ".tmux.conf", ".zlogin", ".zlogout", ".zprofile", ".zshenv",
            ".zshrc",
        ],
        ..entry("shells", "https://www.gnu.org/software/bash/manual/html_node/Bash-Startup-Files.html")
    },
    RunLater {
        folders: &[".ssh"],
        nested: &[(".config", "autostart"), (".config", "environment.d"), (".config", "systemd")],
        files: &[".pam_environment", ".xinitrc", ".xprofile", ".xsession"],
        ..entry("sessions", "https://specifications.freedesktop.org/autostart-spec/latest/")
    },
];

/// The table by kind of name, for walks over many files.
struct Names {
    folders: HashSet<&'static str>,
    nested: HashSet<(&'static str, &'static str)>,
    files: HashSet<&'static str>,
    endings: Vec<&'static str>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
    folders: TABLE.iter().flat_map(|entry| entry.folders).copied().collect(),
    nested: TABLE.iter().flat_map(|entry| entry.nested).copied().collect(),
    files: TABLE.iter().flat_map(|entry| entry.files).copied().collect(),
    endings: TABLE.iter().flat_map(|entry| entry.endings).copied().collect(),
});

/// Whether other programs run this file by themselves, or read from it what they run.
pub fn runs_later(path: &Path) -> bool {
    let names = lower_names(path);
    let Some((file, folders)) = names.split_last() else { return false };
    let table = &*NAMES;
    table.files.contains(file.as_str())
        || table.folders.contains(file.as_str())
        || table.endings.iter().any(|ending| file.ends_with(ending))
        || folders.iter().any(|folder| table.folders.contains(folder.as_str()))
        || names.windows(2).any(|pair| table.nested.contains(&(pair[0].as_str(), pair[1].as_str())))
}

/// Whether an entry of this name may run later or hold something that does. Quick, for walks over many names.
pub fn may_run_later(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let table = &*NAMES;
    name.starts_with('.')
        || table.endings.iter().any(|ending| name.ends_with(ending))
        || name.len() <= LONGEST_NAME && table.files.contains(name.to_ascii_lowercase().as_str())
}

/// No name of the table is longer.
const LONGEST_NAME: usize = 40;

/// What of this entry runs later: itself, or folders and files that it holds. They need not exist.
pub fn run_later_at(path: &Path) -> Vec<PathBuf> {
    if runs_later(path) {
        return vec![path.to_owned()];
    }
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let nested = NAMES.nested.iter().filter(|(above, _)| above.eq_ignore_ascii_case(name));
    let mut found: Vec<PathBuf> = nested.map(|(_, below)| path.join(below)).collect();
    found.sort();
    found
}

/// Everything of the table directly in a folder, git's own left out, as it is usually written. It need not exist.
pub fn run_later_below(folder: &Path) -> Vec<PathBuf> {
    let table = &*NAMES;
    let direct = table.folders.iter().chain(&table.files).filter(|name| **name != ".git");
    let direct = direct.map(|name| folder.join(written(name)));
    let nested = table.nested.iter().map(|(above, below)| folder.join(above).join(below));
    let mut found: Vec<PathBuf> = direct.chain(nested).collect();
    found.sort();
    found
}

/// Some names are written in capital letters.
fn written(name: &str) -> String {
    match name.strip_suffix(".md") {
        Some(stem @ ("agents" | "agent" | "claude" | "gemini" | "qwen" | "skill" | "crush")) => {
            format!("{}.md", stem.to_uppercase())
        }
        _ if name == "claude.local.md" => "CLAUDE.local.md".to_owned(),
        _ if name == "agents.override.md" => "AGENTS.override.md".to_owned(),
        _ if name == "jenkinsfile" => "Jenkinsfile".to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_its_sources_and_each_name_once() {
        let mut seen = HashSet::new();
        for entry in TABLE {
            let RunLater { program, source, folders, nested, files, endings } = entry;
            assert!(
                source.starts_with("https://") || source.starts_with("dragoman docs "),
                "{program}: {source}"
            );
            let nested = nested.iter().map(|(above, below)| format!("{above}/{below}"));
            let names: Vec<String> = folders
                .iter()
                .chain(*files)
                .chain(*endings)
                .map(|name| (*name).to_owned())
                .chain(nested)
                .collect();
            assert!(!names.is_empty(), "{program}");
            for name in names {
                assert_eq!(name, name.to_lowercase(), "{program}");
                assert!(name.len() <= LONGEST_NAME, "{name}");
                assert!(seen.insert(name.clone()), "{name} is there twice");
            }
        }
    }

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
        assert!(github.contains(&PathBuf::from("/w/.github/actions")), "{github:?}");
        assert!(github.contains(&PathBuf::from("/w/.github/workflows")), "{github:?}");
        assert!(run_later_at(Path::new("/w/.cargo")).contains(&PathBuf::from("/w/.cargo/config.toml")));
        assert!(run_later_at(Path::new("/w/.eslintrc")).is_empty());
    }

    /// Instructions and settings of assistants, and continuous integration, wherever they are.
    #[test]
    fn what_the_next_chat_obeys_runs_later() {
        for name in [
            "AGENTS.md",
            "CLAUDE.md",
            "GEMINI.md",
            "docs/SKILL.md",
            "opencode.json",
            ".opencode/agent/x.md",
            ".aider.conf.yml",
            ".roo/rules/x.md",
            ".kiro/steering/x.md",
            ".windsurf/rules/x.md",
            ".continue/config.yaml",
            "copilot-instructions.md",
            ".github/copilot-instructions.md",
            ".cirrus.yml",
            ".tekton/x.yaml",
            "buildspec.yml",
            ".run/x.xml",
            ".fleet/run.json",
            ".vs/tasks.vs.json",
            "shop.sublime-project",
            ".cursorrules",
        ] {
            let path = Path::new("/w/packages").join(name);
            assert!(runs_later(&path), "{name}");
            let first = Path::new(name).components().next().unwrap();
            assert!(may_run_later(first.as_os_str()) || name.starts_with("docs"), "{name}");
        }
        let below = run_later_below(Path::new("/w"));
        for path in ["/w/AGENTS.md", "/w/.github/workflows", "/w/.vscode", "/w/Jenkinsfile"] {
            assert!(below.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
