//! The rows. Adding a family is adding one; nothing else names families.

use config::EditFormat;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    /// Patterns of names of models in lower case; `*` stands for anything. The first row that fits counts.
    pub(super) patterns: &'static [&'static str],
    /// What its system prompt says beside that of the behavior.
    pub(super) prompt: &'static str,
    pub(super) edits: EditFormat,
    /// Bare names of the built-in tools that are shown; empty: all.
    pub(super) only: &'static [&'static str],
    /// Bare names of tools that are not shown.
    pub(super) without: &'static [&'static str],
    /// Arguments that are not shown: tool, name.
    pub(super) hidden: &'static [HiddenArgument],
    /// Descriptions in the place of the tools' own.
    pub(super) descriptions: &'static [(&'static str, &'static str)],
    /// Names of arguments: tool, its own name, the name that is shown.
    pub(super) arguments: &'static [ArgumentName],
    /// Several calls in one answer.
    pub(super) parallel: bool,
    /// The reasoning effort where nobody has chosen one.
    pub(super) effort: Option<&'static str>,
    /// The task list is offered.
    pub(super) tasks: bool,
}

pub(super) type ArgumentName = (&'static str, &'static str, &'static str);
pub(super) type HiddenArgument = (&'static str, &'static str);

/// Names of Anthropic's own text editor tool, which Claude has learned.
const STR_REPLACE: &[ArgumentName] = &[
    ("edit_file", "original_content", "old_str"),
    ("edit_file", "new_content", "new_str"),
    ("write_file", "content", "file_text"),
];

/// What a small model can choose among: reading, changing, running, searching. Skills and rules are there where the user
/// has some, the preview in behaviors that change nothing.
const FEW_TOOLS: &[&str] = &[
    "read_file",
    "edit_file",
    "write_file",
    "shell_command",
    "grep",
    "directory_tree",
    "preview_file_change",
    "load_skill",
    "fetch_rule",
];

/// Models of the embedded kind search where they should read, so they list and search by commands.
const FEWEST_TOOLS: &[&str] = &[
    "read_file",
    "edit_file",
    "write_file",
    "shell_command",
    "preview_file_change",
    "load_skill",
    "fetch_rule",
];

/// Small models fill every argument that they are shown.
const RARE_ARGUMENTS: &[HiddenArgument] = &[
    ("read_file", "limit"),
    ("edit_file", "all_occurrences"),
    ("edit_file", "edits"),
    ("shell_command", "working_directory"),
    ("shell_command", "timeout"),
    ("shell_command", "background"),
    ("grep", "include"),
    ("grep", "context"),
    ("grep", "files_only"),
    ("grep", "max_results"),
    ("directory_tree", "max_depth"),
];

const SHORT_DESCRIPTIONS: &[(&str, &str)] = &[
    ("read_file", "Read a file."),
    ("edit_file", "Change a file: replace original_content, copied from the file, by new_content."),
    ("write_file", "Create a file, or replace all of it."),
    ("shell_command", "Run a command in the project's folder, such as its tests."),
    ("grep", "Search the files of the project for a pattern."),
    ("directory_tree", "List the files of a folder."),
];

/// What most rows have.
const PLAIN: Family = Family {
    name: "other",
    patterns: &["*"],
    prompt: "",
    edits: EditFormat::Replace,
    only: &[],
    without: &[],
    hidden: &[],
    descriptions: &[],
    arguments: &[],
    parallel: true,
    effort: None,
    tasks: true,
};

/// The first row whose pattern fits counts; the last one fits all.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "embedded",
        patterns: &["local/*"],
        edits: EditFormat::Whole,
        only: FEWEST_TOOLS,
        hidden: RARE_ARGUMENTS,
        descriptions: SHORT_DESCRIPTIONS,
        parallel: false,
        tasks: false,
        ..PLAIN
    },
    Family {
        name: "gpt",
        patterns: &["gpt-*", "chatgpt*", "codex*", "*-codex*", "o1*", "o3*", "o4*"],
        edits: EditFormat::Patch,
        prompt: "Work on until the request is settled; do not stop to announce a plan.",
        ..PLAIN
    },
    Family { name: "claude", patterns: &["*claude*"], arguments: STR_REPLACE, ..PLAIN },
    Family {
        name: "gemini",
        patterns: &["gemini*", "*/gemini*"],
        prompt: "Copy text for edits from the file to the letter, without line numbers.",
        ..PLAIN
    },
    Family {
        name: "small",
        patterns: &[
            "*-0.5b*",
            "*:0.5b*",
            "*-0.6b*",
            "*:0.6b*",
            "*-1b*",
            "*:1b*",
            "*-1.5b*",
            "*:1.5b*",
            "*-1.7b*",
            "*:1.7b*",
            "*-2b*",
            "*:2b*",
            "*-3b*",
            "*:3b*",
            "*-4b*",
            "*:4b*",
            "*-6.7b*",
            "*:6.7b*",
            "*-7b*",
            "*:7b*",
            "*-8b*",
            "*:8b*",
            "*-9b*",
            "*:9b*",
            "*phi-*-mini*",
            "*smollm*",
        ],
        edits: EditFormat::Whole,
        prompt: "Make one tool call at a time. Write files of less than 150 lines whole with write_file.",
        only: FEW_TOOLS,
        hidden: RARE_ARGUMENTS,
        descriptions: SHORT_DESCRIPTIONS,
        parallel: false,
        tasks: false,
        ..PLAIN
    },
    Family {
        name: "open",
        patterns: &[
            "*qwen*",
            "*deepseek*",
            "*glm*",
            "*kimi*",
            "*llama*",
            "*mistral*",
            "*devstral*",
            "*codestral*",
            "*minimax*",
            "*gemma*",
            "*gpt-oss*",
            "*granite*",
            "*nemotron*",
            "*seed*",
        ],
        prompt: "Call tools by their interface, never in text.",
        ..PLAIN
    },
    PLAIN,
];
