//! `chatInline`: chats that an editor shows inside a file.

use crate::cursor::Cursor;

/// Chats that an editor shows inside a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineChatSettings {
    pub model: Option<String>,
    pub agent: Option<String>,
    pub variant: Option<String>,
}

impl InlineChatSettings {
    pub(crate) fn read(section: &Cursor) -> Self {
        let text = |name| section.get(name).text();
        Self { model: text("model"), agent: text("agent"), variant: text("variant") }
    }
}
