//! From an editor to the change of its file: planned first, shown by the caller, then applied.
//!
//! Invariant: `apply` writes exactly what the plan showed, or nothing.

use std::path::PathBuf;

use diffy::DiffOptions;

use crate::editors::{Change, Plugin};
use crate::record::{self, Record};
use crate::{Editor, Folders, SetupError, file, json, toml};

/// What `setup` would do.
#[derive(Debug)]
pub enum Plan {
    /// The file starts this Dragoman already.
    Done {
        file: PathBuf,
    },
    Edit(Edit),
    /// A text for the user to paste, with the reason why the file is not changed.
    Snippet {
        file: PathBuf,
        text: String,
        reason: String,
    },
}

/// A change of one file. Text that was not there is `None`.
#[derive(Debug)]
pub struct Edit {
    pub file: PathBuf,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Edit {
    /// The changed lines with two lines around them.
    pub fn diff(&self) -> String {
        let (before, after) = (self.before.as_deref().unwrap_or(""), self.after.as_deref().unwrap_or(""));
        let patch = DiffOptions::new().set_context_len(2).create_patch(before, after).to_string();
        // Without the names of files.
        patch.lines().skip(2).map(|line| format!("{line}\n")).collect()
    }
}

/// Plans the change that makes the editor start `command`.
pub fn plan(editor: &Editor, folders: &Folders, command: &str) -> Result<Plan, SetupError> {
    let path = editor.settings_file(folders);
    match &editor.change {
        Change::Snippet { plugins, .. } => {
            let text =
                Plugin::choose(plugins, folders).map(|plugin| (plugin.text)(command)).unwrap_or_default();
            let reason = "This file is a program, so it is yours to edit.".to_owned();
            Ok(Plan::Snippet { file: path, text, reason })
        }
        Change::Json { path: member, value, .. } => {
            let before = file::read(&path)?;
            let (mark, text) = without_mark(before.as_deref().unwrap_or(""));
            let unclear = |reason| SetupError::unclear(&path, reason);
            let value = value(command);
            if json::is_set(text, member, &value).map_err(unclear)? {
                return Ok(Plan::Done { file: path });
            }
            let after = json::set(text, member, &value).map_err(unclear)?;
            Ok(edit(path.clone(), before.clone(), Some(format!("{mark}{}", with_line_end(after)))))
        }
        Change::Toml { lines, .. } => {
            let (before, lines) = (file::read(&path)?, lines(command));
            match toml::append(before.as_deref().unwrap_or(""), &lines) {
                Ok(after) if before.as_ref() == Some(&after) => Ok(Plan::Done { file: path }),
                Ok(after) => Ok(edit(path, before, Some(after))),
                Err(reason) => Ok(Plan::Snippet {
                    file: path,
                    text: lines,
                    reason: format!("The file is not changed: {reason}."),
                }),
            }
        }
    }
}

/// Plans the way back: to the former text where the file is as we left it, else without our member alone.
pub fn plan_undo(editor: &Editor, folders: &Folders) -> Result<Plan, SetupError> {
    let record = Record::load(editor, folders)?.ok_or(SetupError::NothingToUndo)?;
    let path = record.file;
    let Some(current) = file::read(&path)? else { return Ok(Plan::Done { file: path }) };
    if current == record.after {
        return Ok(edit(path, Some(current), record.before));
    }
    let former = record.before.unwrap_or_default();
    let after = match &editor.change {
        Change::Json { path: member, .. } => {
            let (mark, text) = without_mark(&current);
            json::restore(text, member, without_mark(&former).1)
                .map(|after| format!("{mark}{after}"))
                .map_err(|reason| SetupError::unclear(&path, reason))?
        }
        Change::Toml { lines, .. } => toml::remove(&current, &lines("")).unwrap_or_else(|| current.clone()),
        Change::Snippet { .. } => current.clone(),
    };
    Ok(if after == current { Plan::Done { file: path } } else { edit(path, Some(current), Some(after)) })
}

/// Makes a planned change. Returns the copy of the former text.
pub fn apply(editor: &Editor, folders: &Folders, edit: &Edit) -> Result<Option<PathBuf>, SetupError> {
    check_unchanged(edit)?;
    let Some(after) = &edit.after else {
        return Err(SetupError::unwritable(&edit.file, "no text is planned"));
    };
    // A second change keeps the text before the first one, as long as nobody else wrote in between.
    let earlier = Record::load(editor, folders)?;
    let before = match earlier {
        Some(record) if record.file == edit.file && Some(&record.after) == edit.before.as_ref() => {
            record.before
        }
        _ => edit.before.clone(),
    };
    let copy = before.is_some().then(|| record::copy_path(editor, folders));
    Record { file: edit.file.clone(), before, after: after.clone() }.save(editor, folders)?;
    file::write(&edit.file, after)?;
    Ok(copy)
}

/// Makes a planned way back and forgets the record. Without an edit only the record goes.
pub fn apply_undo(editor: &Editor, folders: &Folders, edit: Option<&Edit>) -> Result<(), SetupError> {
    if let Some(edit) = edit {
        check_unchanged(edit)?;
        match &edit.after {
            Some(after) => file::write(&edit.file, after)?,
            None => file::remove(&edit.file)?,
        }
    }
    Record::delete(editor, folders)
}

fn check_unchanged(edit: &Edit) -> Result<(), SetupError> {
    match file::read(&edit.file)? == edit.before {
        true => Ok(()),
        false => Err(SetupError::Changed(edit.file.clone())),
    }
}

fn edit(file: PathBuf, before: Option<String>, after: Option<String>) -> Plan {
    Plan::Edit(Edit { file, before, after })
}

/// The byte order mark of some Windows editors, and the rest.
fn without_mark(text: &str) -> (&str, &str) {
    text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest))
}

fn with_line_end(text: String) -> String {
    if text.ends_with('\n') { text } else { text + "\n" }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Machine {
        _folder: tempfile::TempDir,
        folders: Folders,
    }

    impl Machine {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let home = folder.path().to_owned();
            let folders = Folders {
                config: home.join(".config"),
                applications: home.join(".config"),
                data: home.join(".local/share"),
                copies: home.join("copies"),
                home,
            };
            Self { _folder: folder, folders }
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.folders.home.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(&path, text).expect("written");
            path
        }
    }

    fn editor(name: &str) -> &'static Editor {
        Editor::named(name).expect("an editor")
    }

    fn planned(machine: &Machine, name: &str) -> Edit {
        match plan(editor(name), &machine.folders, "/opt/dragoman") {
            Ok(Plan::Edit(edit)) => edit,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn planned_undo(machine: &Machine, name: &str) -> Edit {
        match plan_undo(editor(name), &machine.folders) {
            Ok(Plan::Edit(edit)) => edit,
            other => panic!("{name}: {other:?}"),
        }
    }

    const FILES: &[(&str, &str, &str)] = &[
        ("zed", ".config/zed/settings.json", "// Zed settings\n{\n  \"vim_mode\": true, // yes\n}\n"),
        ("vscode", ".config/Code/User/settings.json", "{\n    \"editor.fontSize\": 14\n}"),
        ("vscodium", ".config/VSCodium/User/settings.json", "\u{feff}{}\r\n"),
        (
            "jetbrains",
            ".jetbrains/acp.json",
            "{\"default_mcp_settings\": {}, \"agent_servers\": {\"A\": {\"command\": \"a\"}}}",
        ),
        (
            "helix",
            ".config/helix/config.toml",
            "theme = \"onedark\"\n\n[editor]\nline-number = \"relative\"\n",
        ),
    ];

    #[test]
    fn the_places_of_windows_are_known() {
        let mut machine = Machine::new();
        machine.folders.applications = machine.folders.home.join("AppData/Roaming");
        for (name, path) in [
            ("zed", "AppData/Roaming/Zed/settings.json"),
            ("vscode", "AppData/Roaming/Code/User/settings.json"),
            ("cursor", "AppData/Roaming/Cursor/User/settings.json"),
            ("helix", "AppData/Roaming/helix/config.toml"),
            ("neovim", "AppData/Local/nvim/init.lua"),
            ("emacs", "AppData/Roaming/.emacs.d/init.el"),
        ] {
            let file = machine.write(path, "");
            assert_eq!(editor(name).settings_file(&machine.folders), file, "{name}");
        }
    }

    #[test]
    fn each_file_changes_once_and_comes_back_byte_for_byte() {
        for (name, path, text) in FILES {
            let machine = Machine::new();
            let path = machine.write(path, text);
            let edit = planned(&machine, name);
            assert_eq!(edit.file, path);
            assert!(edit.diff().contains("+"), "{}", edit.diff());
            let copy = apply(editor(name), &machine.folders, &edit).expect("applied").expect("a copy");
            assert_eq!(fs::read_to_string(copy).expect("the copy"), *text);
            assert!(matches!(plan(editor(name), &machine.folders, "/opt/dragoman"), Ok(Plan::Done { .. })));
            let undo = planned_undo(&machine, name);
            apply_undo(editor(name), &machine.folders, Some(&undo)).expect("undone");
            assert_eq!(fs::read_to_string(&path).expect("read"), *text, "{name}");
            assert!(matches!(plan_undo(editor(name), &machine.folders), Err(SetupError::NothingToUndo)));
        }
    }

    #[test]
    fn a_new_file_is_made_and_removed() {
        let machine = Machine::new();
        fs::create_dir_all(machine.folders.config.join("JetBrains")).expect("made");
        let edit = planned(&machine, "jetbrains");
        assert_eq!(apply(editor("jetbrains"), &machine.folders, &edit).expect("applied"), None);
        let path = machine.folders.home.join(".jetbrains/acp.json");
        assert!(fs::read_to_string(&path).expect("read").ends_with("}\n"));
        let undo = planned_undo(&machine, "jetbrains");
        apply_undo(editor("jetbrains"), &machine.folders, Some(&undo)).expect("undone");
        assert!(!path.exists());
    }

    #[test]
    fn undo_after_other_changes_removes_only_our_member() {
        let machine = Machine::new();
        let path = machine.write(".config/zed/settings.json", "{\n  \"a\": 1\n}\n");
        apply(editor("zed"), &machine.folders, &planned(&machine, "zed")).expect("applied");
        let text = fs::read_to_string(&path).expect("read").replace("\"a\": 1", "\"a\": 2 /* new */");
        fs::write(&path, text).expect("written");
        let undo = planned_undo(&machine, "zed");
        apply_undo(editor("zed"), &machine.folders, Some(&undo)).expect("undone");
        let text = fs::read_to_string(&path).expect("read");
        assert!(text.contains("2 /* new */") && !text.contains("agent_servers"), "{text}");
    }

    #[test]
    fn a_file_that_changed_since_the_plan_is_not_written() {
        let machine = Machine::new();
        let path = machine.write(".config/zed/settings.json", "{}");
        let edit = planned(&machine, "zed");
        fs::write(&path, "{\"by\": \"the editor\"}").expect("written");
        assert!(matches!(apply(editor("zed"), &machine.folders, &edit), Err(SetupError::Changed(_))));
        assert_eq!(fs::read_to_string(&path).expect("read"), "{\"by\": \"the editor\"}");
    }

    #[test]
    fn a_newer_program_replaces_the_path_and_undo_goes_to_the_beginning() {
        let machine = Machine::new();
        let path =
            machine.write(".config/Code/User/settings.json", "{\"eca.serverPath\": \"/usr/bin/eca\"}\n");
        apply(editor("vscode"), &machine.folders, &planned(&machine, "vscode")).expect("applied");
        let Ok(Plan::Edit(second)) = plan(editor("vscode"), &machine.folders, "/new/dragoman") else {
            panic!("a second edit")
        };
        apply(editor("vscode"), &machine.folders, &second).expect("applied");
        let undo = planned_undo(&machine, "vscode");
        apply_undo(editor("vscode"), &machine.folders, Some(&undo)).expect("undone");
        assert_eq!(fs::read_to_string(path).expect("read"), "{\"eca.serverPath\": \"/usr/bin/eca\"}\n");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_modes_stay_and_copies_are_private() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let machine = Machine::new();
        let real = machine.write("dotfiles/zed.json", "{}\n");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("set");
        fs::create_dir_all(machine.folders.config.join("zed")).expect("made");
        let link = machine.folders.config.join("zed/settings.json");
        symlink("../../dotfiles/zed.json", &link).expect("a link");
        let copy = apply(editor("zed"), &machine.folders, &planned(&machine, "zed"))
            .expect("applied")
            .expect("copy");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert!(fs::read_to_string(&real).expect("read").contains("Dragoman"));
        let mode = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&real), mode(&copy)), (0o640, 0o600));
    }

    #[test]
    fn programs_get_a_snippet_for_the_installed_plugin() {
        let machine = Machine::new();
        machine.write(".config/nvim/init.lua", "-- mine\n");
        let snippet = |name: &str| match plan(editor(name), &machine.folders, "/opt/my \"d\"") {
            Ok(Plan::Snippet { text, .. }) => text,
            other => panic!("{other:?}"),
        };
        assert!(
            snippet("neovim").contains("require(\"eca\").setup({ server_path = \"/opt/my \\\"d\\\"\" })")
        );
        machine.write(".local/share/nvim/lazy/codecompanion.nvim/README.md", "");
        assert!(snippet("neovim").contains("codecompanion"));
        assert!(snippet("emacs").contains("eca-custom-command"));
        machine.write(".emacs.d/elpa/agent-shell-0.25.1/agent-shell.el", "");
        assert!(snippet("emacs").contains("agent-shell-make-agent-config"));
    }
}
