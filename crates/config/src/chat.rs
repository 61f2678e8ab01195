//! `chat`: settings of chats and of the terminal that shows them.

use crate::cursor::Cursor;
use crate::origin::Origin;

/// How a terminal calls its user, beside commands.
const NOTIFIERS: [&str; 5] = ["bell", "osc9", "osc99", "osc777", "desktop"];

/// The longest time that chats are kept by the setting.
const MAX_DAYS: u64 = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub struct ChatSettings {
    pub welcome_message: String,
    /// Whether a model gives a new chat its title.
    pub title: bool,
    pub title_model: Option<String>,
    /// Whether new chats start trusted.
    pub default_trust: bool,
    /// Whether a turn that changed files without a check is asked to verify.
    pub verify_changes: bool,
    pub auto_compact_percentage: u64,
    /// A chat is summarized, too, when fewer tokens of the window are left.
    pub auto_compact_tokens_left: Option<u64>,
    /// Instructions are read anew for each prompt.
    pub auto_sync_system_prompt: bool,
    pub max_steps: u64,
    /// Days; `None` keeps chats.
    pub retention_days: Option<u64>,
    /// The colors of `dragoman chat`: `auto`, a built-in theme or the name of a file.
    pub theme: String,
    /// The input is edited with vi's keys.
    pub vi_mode: bool,
    /// The terminal's chat is drawn below the text of the terminal.
    pub inline: bool,
    /// The terminal reports the mouse to the chat.
    pub mouse: bool,
    /// The last line of `dragoman chat`: a template, or a command after an exclamation mark.
    pub status_line: Option<String>,
    /// Text that a screen reader can follow: no frames, nothing that moves.
    pub screen_reader: bool,
    /// Nothing moves by itself.
    pub reduced_motion: bool,
    /// How the terminal calls its user, and whether also while it has the focus.
    pub notify: Vec<String>,
    pub notify_always: bool,
    /// Keys of the user's own: `ctrl-p` and `up`, `f5` and `/review`.
    pub keys: Vec<(String, String)>,
}

impl ChatSettings {
    pub(crate) fn read(root: &Cursor) -> Self {
        let chat = root.get("chat");
        let welcome = root.get("welcomeMessage");
        Self {
            welcome_message: welcome.prompt().and_then(|text| welcome.now(&text)).unwrap_or_default(),
            title: chat.get("title").flag().unwrap_or_default(),
            title_model: chat.get("titleModel").text(),
            default_trust: chat.get("defaultTrust").flag().unwrap_or_default(),
            verify_changes: chat.get("verifyChanges").flag().unwrap_or_default(),
            auto_compact_percentage: root.get("autoCompactPercentage").number(1..=100).unwrap_or_default(),
            auto_compact_tokens_left: root.get("autoCompactTokensLeft").number(1..=u64::MAX),
            auto_sync_system_prompt: chat.get("autoSyncSystemPrompt").flag().unwrap_or_default(),
            max_steps: root.get("maxSteps").number(1..=100_000).unwrap_or_default(),
            retention_days: retention_days(&root.get("chatRetentionDays")),
            theme: chat.get("theme").text().unwrap_or_else(|| "auto".to_owned()),
            vi_mode: chat.get("viMode").flag().unwrap_or_default(),
            inline: chat.get("inline").flag().unwrap_or_default(),
            mouse: !is_chosen(&chat.get("mouse"), ["on", "off"]),
            status_line: chat.get("statusLine").text(),
            screen_reader: chat.get("screenReader").flag().unwrap_or_default(),
            reduced_motion: chat.get("reducedMotion").flag().unwrap_or_default(),
            notify: read_notify(&chat.get("notify")),
            notify_always: is_chosen(&chat.get("notifyWhen"), ["away", "always"]),
            keys: chat
                .get("keys")
                .entries()
                .iter()
                .filter_map(|key| Some((key.name().to_owned(), key.text()?)))
                .collect(),
        }
    }
}

/// Whether the second of two words is set, and not the first, which is the default.
fn is_chosen(cursor: &Cursor, [default, other]: [&str; 2]) -> bool {
    match cursor.text() {
        Some(word) if word == other => true,
        Some(word) if word != default => {
            cursor.report_invalid(&format!("must be {default} or {other}"));
            false
        }
        Some(_) | None => false,
    }
}

fn read_notify(cursor: &Cursor) -> Vec<String> {
    let (known, unknown): (Vec<String>, Vec<String>) = cursor
        .texts()
        .into_iter()
        .partition(|name| NOTIFIERS.contains(&name.as_str()) || name.trim_start_matches('!') != name);
    if let Some(name) = unknown.first() {
        let all = NOTIFIERS.join(", ");
        cursor.report_invalid(&format!("has {name:?}, which is neither one of {all} nor a !command"));
    }
    known
}

/// Zero keeps chats. A project does not decide about the chats of other projects.
fn retention_days(cursor: &Cursor) -> Option<u64> {
    if let Origin::ProjectFile { .. } = cursor.origin() {
        cursor.report(domain::Level::Warning, "is ignored: only your own settings may delete chats.");
        return None;
    }
    cursor.number(0..=MAX_DAYS).filter(|days| *days > 0)
}
