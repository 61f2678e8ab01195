//! The texts of a chat that can be searched.

use domain::{Fact, ItemKind};

/// The text of a fact that can be searched: what people and models said.
pub fn searchable(fact: &Fact) -> Option<&str> {
    let Fact::ItemEnded { item } = fact else { return None };
    let (ItemKind::UserMessage { text, .. } | ItemKind::AgentMessage { text, .. }) = &item.kind else {
        return None;
    };
    (!text.trim().is_empty()).then_some(text)
}
