//! The table of editors: where each keeps its settings, and what it needs to start Dragoman.
//!
//! Invariant: an editor is found by a folder that only the editor itself creates.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Folders;

/// One editor that can start Dragoman.
#[derive(Debug)]
pub struct Editor {
    /// The word on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// The part of the editor that speaks our protocols: built in, or a plugin to install.
    pub needs: &'static str,
    /// Names under which a shell starts it.
    pub programs: &'static [&'static str],
    /// Folders or files of an installed editor, the most usual first.
    places: &'static [(Base, &'static str)],
    pub(crate) change: Change,
}

#[derive(Clone, Copy, Debug)]
enum Base {
    Home,
    Config,
    Applications,
}

/// What makes an editor start Dragoman.
#[derive(Debug)]
pub(crate) enum Change {
    /// A member of a JSON file with comments. `file` is beneath the editor's folder, or beneath home.
    Json { file: SettingsFile, path: &'static [&'static str], value: fn(&str) -> Value },
    /// Lines at the end of a TOML file beneath the editor's folder.
    Toml { file: &'static str, lines: fn(&str) -> String },
    /// A program: the user pastes the text, because nothing can edit a program safely.
    Snippet { files: &'static [&'static str], plugins: &'static [Plugin] },
}

#[derive(Debug)]
pub(crate) enum SettingsFile {
    InFolder(&'static str),
    InHome(&'static str),
}

/// A plugin that starts Dragoman, and the text that it needs. The first of a list is the default.
#[derive(Debug)]
pub(crate) struct Plugin {
    /// Its folder begins with this.
    pub folder: &'static str,
    pub text: fn(&str) -> String,
}

pub const EDITORS: &[Editor] = &[
    Editor {
        name: "zed",
        title: "Zed",
        needs: "nothing more: Zed speaks ACP",
        programs: &["zed", "zeditor"],
        places: &[
            (Base::Config, "zed"),
            (Base::Home, ".var/app/dev.zed.Zed/config/zed"),
            (Base::Applications, "Zed"),
        ],
        change: Change::Json {
            file: SettingsFile::InFolder("settings.json"),
            path: &["agent_servers", "Dragoman"],
            value: |command| json!({"type": "custom", "command": command, "args": ["acp"], "env": {}}),
        },
    },
    code("vscode", "VS Code", &["code"], &[(Base::Applications, "Code")]),
    code(
        "vscode-insiders",
        "VS Code Insiders",
        &["code-insiders"],
        &[(Base::Applications, "Code - Insiders")],
    ),
    code("vscodium", "VSCodium", &["codium"], &[(Base::Applications, "VSCodium")]),
    code("cursor", "Cursor", &["cursor"], &[(Base::Applications, "Cursor")]),
    code("windsurf", "Windsurf", &["windsurf"], &[(Base::Applications, "Windsurf")]),
    Editor {
        name: "jetbrains",
        title: "JetBrains IDEs",
        needs: "the AI Assistant plugin, which speaks ACP",
        programs: &["idea", "pycharm", "webstorm", "goland", "clion", "rustrover", "phpstorm", "rider"],
        places: &[(Base::Applications, "JetBrains"), (Base::Home, ".jetbrains")],
        change: Change::Json {
            file: SettingsFile::InHome(".jetbrains/acp.json"),
            path: &["agent_servers", "Dragoman"],
            value: |command| json!({"command": command, "args": ["acp"], "env": {}}),
        },
    },
    Editor {
        name: "helix",
        title: "Helix",
        needs: "nothing more: `space o r` sends the selection to `dragoman run`",
        programs: &["hx", "helix"],
        places: &[(Base::Config, "helix"), (Base::Applications, "helix")],
        change: Change::Toml { file: "config.toml", lines: helix },
    },
    Editor {
        name: "neovim",
        title: "Neovim",
        needs: "the plugin eca-nvim (ECA) or codecompanion.nvim (ACP)",
        programs: &["nvim"],
        places: &[(Base::Config, "nvim"), (Base::Home, "AppData/Local/nvim")],
        change: Change::Snippet {
            files: &["init.lua", "init.vim"],
            plugins: &[
                Plugin { folder: "eca", text: eca_nvim },
                Plugin { folder: "codecompanion", text: codecompanion },
            ],
        },
    },
    Editor {
        name: "emacs",
        title: "Emacs",
        needs: "the package eca (ECA) or agent-shell (ACP)",
        programs: &["emacs"],
        places: &[
            (Base::Config, "emacs"),
            (Base::Config, "doom"),
            (Base::Home, ".doom.d"),
            (Base::Home, ".emacs.d"),
            (Base::Home, ".emacs"),
            (Base::Applications, ".emacs.d"),
        ],
        change: Change::Snippet {
            files: &["init.el", "config.el"],
            plugins: &[
                Plugin { folder: "eca", text: eca_emacs },
                Plugin { folder: "agent-shell", text: agent_shell },
            ],
        },
    },
];

/// VS Code and the editors made from it keep one file of settings each.
const fn code(
    name: &'static str,
    title: &'static str,
    programs: &'static [&'static str],
    places: &'static [(Base, &'static str)],
) -> Editor {
    Editor {
        name,
        title,
        needs: "the extension editor-code-assistant.eca",
        programs,
        places,
        change: Change::Json {
            file: SettingsFile::InFolder("User/settings.json"),
            path: &["eca.serverPath"],
            value: |command| Value::String(command.to_owned()),
        },
    }
}

impl Editor {
    /// Finds an editor by its name on the command line.
    pub fn named(name: &str) -> Option<&'static Editor> {
        EDITORS.iter().find(|editor| editor.name == name)
    }

    /// The folder or file that shows that the editor is installed.
    pub fn find(&self, folders: &Folders) -> Option<PathBuf> {
        self.candidates(folders).find(|path| path.exists())
    }

    /// The file that changes, or that the user edits.
    pub fn settings_file(&self, folders: &Folders) -> PathBuf {
        let found = self.find(folders);
        let folder =
            found.or_else(|| self.candidates(folders).next()).unwrap_or_else(|| folders.home.clone());
        match &self.change {
            Change::Json { file: SettingsFile::InHome(file), .. } => folders.home.join(file),
            Change::Json { file: SettingsFile::InFolder(file), .. } | Change::Toml { file, .. } => {
                folder.join(file)
            }
            Change::Snippet { .. } if folder.is_file() => folder,
            Change::Snippet { files, .. } => {
                let there = files.iter().map(|file| folder.join(file)).find(|file| file.exists());
                there.unwrap_or_else(|| folder.join(files.first().copied().unwrap_or_default()))
            }
        }
    }

    fn candidates(&self, folders: &Folders) -> impl Iterator<Item = PathBuf> {
        self.places.iter().map(|(base, path)| match base {
            Base::Home => folders.home.join(path),
            Base::Config => folders.config.join(path),
            Base::Applications => folders.applications.join(path),
        })
    }
}

impl Plugin {
    /// Picks the plugin that is installed, else the first one.
    pub(crate) fn choose<'p>(plugins: &'p [Plugin], folders: &Folders) -> Option<&'p Plugin> {
        let roots = [
            folders.data.join("nvim/lazy"),
            folders.data.join("nvim/site/pack"),
            folders.home.join("AppData/Local/nvim-data/lazy"),
            folders.applications.join(".emacs.d/elpa"),
            folders.home.join(".emacs.d/elpa"),
            folders.config.join("emacs/elpa"),
            folders.home.join(".emacs.d/straight/repos"),
            folders.config.join("emacs/.local/straight/repos"),
        ];
        let names: Vec<String> = roots
            .iter()
            .filter_map(|root| std::fs::read_dir(root).ok())
            .flat_map(|entries| entries.flatten())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        let installed = |plugin: &&Plugin| {
            names.iter().any(|name| {
                name == plugin.folder
                    || name.strip_prefix(plugin.folder).is_some_and(|rest| rest.starts_with(['-', '.']))
            })
        };
        plugins.iter().find(installed).or_else(|| plugins.first())
    }
}

/// A string of Lua, Lisp and TOML: all three escape backslashes and quotes alike.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Helix versions differ in how they read quotes of a command, so the line has none where the path allows it.
fn helix(command: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let program = match command.chars().all(is_plain) {
        true => command.to_owned(),
        false => format!("'{}'", command.replace('\'', r"'\''")),
    };
    let key = quoted(&format!(":pipe {program} run -q Improve this code. Answer with the code only."));
    format!("[keys.normal.space.o]\nr = {key}\n\n[keys.select.space.o]\nr = {key}\n")
}

fn eca_nvim(command: &str) -> String {
    format!("require(\"eca\").setup({{ server_path = {} }})\n", quoted(command))
}

fn codecompanion(command: &str) -> String {
    format!(
        r#"require("codecompanion").setup({{
  adapters = {{
    acp = {{
      dragoman = function()
        return require("codecompanion.adapters").extend("opencode", {{
          name = "dragoman",
          formatted_name = "Dragoman",
          commands = {{ default = {{ {}, "acp" }} }},
        }})
      end,
    }},
  }},
  interactions = {{ chat = {{ adapter = "dragoman" }} }},
}})
"#,
        quoted(command)
    )
}

fn eca_emacs(command: &str) -> String {
    format!("(setq eca-custom-command '({} \"server\"))\n", quoted(command))
}

fn agent_shell(command: &str) -> String {
    format!(
        r#"(require 'agent-shell)
(add-to-list 'agent-shell-agent-configs
             (agent-shell-make-agent-config
              :identifier 'dragoman
              :mode-line-name "Dragoman"
              :buffer-name "Dragoman"
              :shell-prompt "Dragoman> "
              :shell-prompt-regexp "Dragoman> "
              :client-maker (lambda (buffer)
                              (acp-make-client :command {}
                                               :command-params '("acp")
                                               :context-buffer buffer))))
"#,
        quoted(command)
    )
}
