//! The ids of tool calls as a client sees them: those of the provider, where they are harmless and not taken.
//!
//! Must not know contents. Invariants: an id names one call of a chat; the id of the item is always understood too; an id of a
//! provider is text for the client alone, never a path or a key of the engine.

use std::collections::HashMap;

use domain::ItemId;

const MAX_LENGTH: usize = 128;
/// How the ids of items begin.
const ITEM_PREFIX: &str = "item-";

#[derive(Default)]
pub(crate) struct CallIds {
    by_item: HashMap<ItemId, String>,
    by_id: HashMap<String, ItemId>,
}

impl CallIds {
    /// Gives a call its id, when it is first seen.
    pub(crate) fn assign(&mut self, item: ItemId, given: &str) -> String {
        if let Some(known) = self.by_item.get(&item) {
            return known.clone();
        }
        let is_free = is_harmless(given) && !self.by_id.contains_key(given);
        let id = if is_free { given.to_owned() } else { item.to_string() };
        self.by_item.insert(item, id.clone());
        self.by_id.insert(id.clone(), item);
        id
    }

    /// The id of a call, or of an item that is none.
    pub(crate) fn of(&self, item: ItemId) -> String {
        self.by_item.get(&item).cloned().unwrap_or_else(|| item.to_string())
    }

    /// The call that a client means.
    pub(crate) fn find(&self, id: &str) -> Option<ItemId> {
        self.by_id.get(id).copied().or_else(|| ItemId::parse(id))
    }
}

/// Short, of letters that no client treats in a special way, and not like the id of an item.
fn is_harmless(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    !id.is_empty() && id.len() <= MAX_LENGTH && id.bytes().all(is_plain) && !id.starts_with(ITEM_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_provider_is_used_once_and_only_if_it_is_harmless() {
        let mut ids = CallIds::default();
        for (item, given, expected) in [
            (1, "call_1", "call_1"),
            (1, "another", "call_1"),
            (2, "call_1", "item-2"),
            (3, "toolu_01:x.y-z", "toolu_01:x.y-z"),
            (4, "../../etc", "item-4"),
            (5, "", "item-5"),
            (6, "item-1", "item-6"),
            (7, "a\u{202e}b", "item-7"),
            (8, &"x".repeat(129), "item-8"),
        ] {
            assert_eq!(ids.assign(ItemId(item), given), expected);
        }
        assert_eq!(ids.find("call_1"), Some(ItemId(1)));
        assert_eq!((ids.find("item-2"), ids.find("item-1")), (Some(ItemId(2)), Some(ItemId(1))));
        assert_eq!((ids.find("nonsense"), ids.of(ItemId(9))), (None, "item-9".to_owned()));
    }
}
