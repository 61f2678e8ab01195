//! When the chats of a behavior are summarized: its own settings, else those of all chats.

use crate::settings::Settings;

impl Settings {
    pub fn auto_compact_percentage(&self, behavior: &str) -> u64 {
        let own = self.behavior(behavior).and_then(|own| own.auto_compact_percentage);
        own.unwrap_or(self.chat.auto_compact_percentage)
    }

    /// The tokens that must be left in the window of a chat.
    pub fn auto_compact_tokens_left(&self, behavior: &str) -> Option<u64> {
        let own = self.behavior(behavior).and_then(|own| own.auto_compact_tokens_left);
        own.or(self.chat.auto_compact_tokens_left)
    }
}
