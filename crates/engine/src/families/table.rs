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
    /// Bare names of tools that are not shown.
    pub(super) without: &'static [&'static str],
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

/// Names of Anthropic's own text editor tool, which Claude has learned.
const STR_REPLACE: &[ArgumentName] = &[
    ("edit_file", "original_content", "old_str"),
    ("edit_file", "new_content", "new_str"),
    ("write_file", "content", "file_text"),
];

/// What most rows have.
const PLAIN: Family = Family {
    name: "other",
    patterns: &["*"],
    prompt: "",
    edits: EditFormat::Replace,
    without: &[],
    arguments: &[],
    parallel: true,
    effort: None,
    tasks: true,
};

/// The first row whose pattern fits counts; the last one fits all.
pub(super) const FAMILIES: &[Family] = &[
    Family { name: "embedded", patterns: &["local/*"], parallel: false, tasks: false, ..PLAIN },
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
        without: &["background_job", "compact_chat", "fetch_url", "move_file", "spawn_agent"],
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
