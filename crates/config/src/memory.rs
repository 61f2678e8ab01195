//! `memory`: whether facts are kept across chats, and who may keep them.

use crate::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySettings {
    pub enabled: bool,
    /// The model may propose entries.
    pub may_propose: bool,
    /// With a chat go the entries that came from it.
    pub delete_with_chats: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, may_propose: true, delete_with_chats: false }
    }
}

impl MemorySettings {
    pub(crate) fn read(section: &Cursor) -> Self {
        let mode = section.get("writeMode");
        let may_propose = match mode.text().as_deref() {
            None | Some("agent") => true,
            Some("explicit") => false,
            Some(_) => {
                mode.report(
                    domain::Level::Warning,
                    "must be \"agent\" or \"explicit\"; the stricter one is used.",
                );
                false
            }
        };
        Self {
            enabled: section.get("enabled").flag().unwrap_or(true),
            may_propose,
            delete_with_chats: section.get("deleteWithChats").flag().unwrap_or(false),
        }
    }
}
