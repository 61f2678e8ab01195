//! Names of tools in other programs, and the tools here that do the same.

/// Names of tools in all programs, in lower case, and our tools that do the same or a part of it.
const THEIRS: [(&[&str], &[&str]); 13] = [
    (
        &["bash", "bashoutput", "killshell", "killbash", "shell", "run_shell_command", "shelltool"],
        &["shell_command", "background_job"],
    ),
    (
        &["edit", "multiedit", "notebookedit", "replace", "edittool", "patch", "apply_patch"],
        &["edit_file", "preview_file_change"],
    ),
    (&["write", "write_file", "writefiletool"], &["write_file"]),
    (
        &["read", "notebookread", "read_file", "read_many_files", "readfiletool", "readmanyfilestool"],
        &["read_file"],
    ),
    (&["ls", "list", "list_directory", "lstool"], &["directory_tree"]),
    (&["glob", "globtool"], &["glob"]),
    (&["grep", "search_file_content", "grep_search", "greptool", "ripgreptool"], &["grep"]),
    (&["lsp"], &["editor_diagnostics", "editor_definition", "editor_references"]),
    (&["webfetch", "web_fetch", "webfetchtool"], &["fetch_url"]),
    (&["websearch", "codesearch", "google_web_search", "websearchtool"], &["web_search"]),
    (&["task", "agent"], &["spawn_agent"]),
    (&["skill"], &["skill"]),
    (
        &[
            "todowrite",
            "todoread",
            "askuserquestion",
            "question",
            "exitplanmode",
            "savememory",
            "save_memory",
        ],
        &[],
    ),
];

/// Our tools for one of theirs; `None` where there is no such tool.
pub(super) fn ours(name: &str) -> Option<&'static [&'static str]> {
    let name = name.trim().to_lowercase();
    THEIRS.iter().find(|(theirs, _)| theirs.contains(&name.as_str())).map(|(_, ours)| *ours)
}

/// The targets of rules for one of their tools.
pub(super) fn targets(tool: &str) -> Vec<String> {
    let tools: Vec<&str> = match tool {
        // It covers every change of a file there.
        "edit" => vec!["edit_file", "write_file", "apply_patch", "move_file"],
        _ => ours(tool).unwrap_or_default().to_vec(),
    };
    tools.iter().map(|tool| format!("eca__{tool}")).collect()
}
