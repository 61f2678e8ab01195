//! Whether a repository's own configuration makes git run programs when it only reads: what comes with a folder must
//! not decide what runs without being asked.
//!
//! Reads files and starts nothing. Invariant: a line that is not understood counts as one that runs something.

use std::fs;
use std::path::{Path, PathBuf};

const LARGEST: u64 = 1024 * 1024;
const MOST_MODULES: usize = 200;

/// Settings by section and name that name programs which reading commands run.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("diff", &["command", "external", "textconv"]),
    ("filter", &["clean", "process", "smudge"]),
    ("gpg", &["program"]),
    ("remote", &["receivepack", "uploadpack", "vcs"]),
];

/// True where git, run in `folder`, would find such settings.
pub fn names_programs(folder: &Path) -> bool {
    let Some(store) = folder.ancestors().find_map(store) else { return false };
    let common = fs::read_to_string(store.join("commondir"))
        .map_or_else(|_| store.clone(), |text| store.join(text.trim()));
    let own = [store.join("config.worktree"), common.join("config"), common.join("config.worktree")];
    let mut left = MOST_MODULES;
    own.iter().any(|file| is_dangerous(file, false)) || modules(&common.join("modules"), &mut left)
}

/// Where a working tree keeps its repository.
fn store(folder: &Path) -> Option<PathBuf> {
    let entry = folder.join(".git");
    let metadata = entry.metadata().ok()?;
    if metadata.is_dir() {
        return Some(entry);
    }
    let text = fs::read_to_string(&entry).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Submodules: git starts itself in them and forgets what it was told not to run.
fn modules(folder: &Path, left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if *left == 0 {
            return true;
        }
        *left -= 1;
        let path = entry.path();
        let is_store = path.join("HEAD").exists();
        if is_store && ["config", "config.worktree"].iter().any(|name| is_dangerous(&path.join(name), true)) {
            return true;
        }
        let deeper = if is_store { path.join("modules") } else { path };
        if modules(&deeper, left) {
            return true;
        }
    }
    false
}

fn is_dangerous(file: &Path, of_module: bool) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return true;
    }
    match fs::read(file) {
        Ok(bytes) => text_is_dangerous(&String::from_utf8_lossy(&bytes), of_module),
        Err(_) => true,
    }
}

fn text_is_dangerous(text: &str, of_module: bool) -> bool {
    let mut section = String::new();
    for line in text.trim_start_matches('\u{feff}').lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            match header(line) {
                Some(name) if name != "include" && name != "includeif" => section = name,
                _ => return true,
            }
            continue;
        }
        let end = line.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(line.len());
        let (key, value) =
            (line[..end].to_ascii_lowercase(), line[end..].trim_start_matches([' ', '\t', '=']));
        let named = PROGRAMS.iter().any(|(of, keys)| *of == section && keys.contains(&key.as_str()))
            && !(section == "filter" && is_large_file_storage(value));
        let monitored = of_module && section == "core" && key == "fsmonitor";
        if named || monitored && !["", "true", "false"].contains(&value) {
            return true;
        }
    }
    false
}

/// `git lfs install --local` sets its own program, which is looked for where all programs are.
fn is_large_file_storage(value: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || " -%_".contains(char);
    value.starts_with("git-lfs ") && value.chars().all(plain)
}

/// The section of `[section]` or `[section "name"]`; `None` for a line that holds anything more.
fn header(line: &str) -> Option<String> {
    let inner = line.strip_prefix('[')?;
    let end = inner.find(|char: char| !char.is_ascii_alphanumeric() && !"-.".contains(char))?;
    let (name, mut rest) = (&inner[..end], inner[end..].trim_start());
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut escaped = false;
        let close = quoted.find(|char: char| {
            let closes = char == '"' && !escaped;
            escaped = char == '\\' && !escaped;
            closes
        })?;
        rest = quoted[close + 1..].trim_start();
    }
    let section = name.split('.').next().unwrap_or_default();
    (rest == "]").then(|| section.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::text_is_dangerous;

    #[test]
    fn settings_that_run_programs_are_seen() {
        for (text, dangerous) in [
            (
                "[core]\n\tbare = false\n\tfsmonitor = /x\n[remote \"origin\"]\n\turl = a\n\tfetch = +x\n",
                false,
            ),
            ("[branch \"clean\"]\n\tremote = external\n", false),
            ("[diff]\n\texternal = x\n", true),
            ("[DIFF]\nExternal=x\n", true),
            ("[diff \"a=b]\"]\n  textconv = x\n", true),
            ("[diff.a]\ncommand = x\n", true),
            ("[diff] external = x\n", true),
            ("[diff \"a\\\"]\"] textconv = x]\n", true),
            ("[filter \"x\"]\n\tprocess = x\n", true),
            ("[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n\tclean = git-lfs clean -- %f\n", false),
            ("[filter \"lfs\"]\n\tprocess = git-lfs x; evil\n", true),
            ("[include]\n\tpath = x\n", true),
            ("[includeIf \"gitdir:x\"]\n\tpath = x\n", true),
            ("[remote \"o\"]\n\tuploadpack = x\n", true),
            ("\u{feff}[diff]\r\n\texternal = x\r\n", true),
            ("# [diff]\n; external = x\n[user]\n\tname = external\n", false),
        ] {
            assert_eq!(text_is_dangerous(text, false), dangerous, "{text:?}");
        }
        assert!(text_is_dangerous("[core]\n\tfsmonitor = /x\n", true), "in a submodule");
        assert!(!text_is_dangerous("[core]\n\tfsmonitor = true\n", true));
    }
}
