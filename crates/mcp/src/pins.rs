//! Definitions pinned by hash: what a server's tools were when they were first listed.
//!
//! Chosen: the pin is set by the first listing, not by the first use, because a changed description already speaks to
//! the model before any call. A crash and a restart keep the pins, and so does the kept list for the next process; only the
//! user's own *stop* forgets them.
//! Invariant: a definition under a pinned name is offered only while its hash is the pinned one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::definitions::{KeptList, ToolDefinition};
use crate::digest::{DefinitionHash, Digest};

/// A server that names ever new tools fills no memory.
const MAX_PINS: usize = 4096;

#[derive(Default)]
pub(crate) struct Pins {
    tools: HashMap<String, Digest>,
    instructions: Option<Digest>,
}

impl Pins {
    /// The pins of an earlier process.
    pub(crate) fn of_kept(kept: &KeptList) -> Self {
        let mut pins = Self::default();
        for tool in kept.tools.iter().take(MAX_PINS) {
            pins.tools.insert(tool.spec.name.clone(), tool.digest);
        }
        if !kept.tools.is_empty() {
            pins.check_instructions(kept.instructions.clone());
        }
        pins
    }

    /// The definitions that may be offered, and the names of those that changed.
    pub(crate) fn check_tools(
        &mut self,
        definitions: Vec<ToolDefinition>,
    ) -> (Vec<Arc<ToolDefinition>>, Vec<String>) {
        let (mut admitted, mut withheld) = (Vec::new(), Vec::new());
        for definition in definitions {
            let name = &definition.spec.name;
            let room = self.tools.len() < MAX_PINS;
            let known = self.tools.get(name).copied();
            if known.is_none() && room {
                self.tools.insert(name.clone(), definition.digest);
            }
            if known.map_or(room, |digest| digest == definition.digest) {
                admitted.push(Arc::new(definition));
            } else {
                withheld.push(name.clone());
            }
        }
        (admitted, withheld)
    }

    /// The same for the server's instructions, which go into the system prompt.
    pub(crate) fn check_instructions(&mut self, instructions: Option<String>) -> Option<String> {
        let digest = DefinitionHash::new().text(instructions.as_deref().unwrap_or_default()).done();
        let first = *self.instructions.get_or_insert(digest);
        instructions.filter(|_| first == digest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_order_of_members_changes_nothing_and_everything_else_does() {
        let hash = |value: Value| DefinitionHash::new().value(&value).done();
        let first = hash(json!({"a": 1, "b": [1, {"c": "x", "d": null}]}));
        assert_eq!(first, hash(json!({"b": [1, {"d": null, "c": "x"}], "a": 1})));
        for other in [
            json!({"a": 1, "b": [1, {"c": "y", "d": null}]}),
            json!({"a": 1, "b": [{"c": "x", "d": null}, 1]}),
            json!({"a": "1", "b": [1, {"c": "x", "d": null}]}),
            json!({"a": 1}),
        ] {
            assert_ne!(first, hash(other));
        }
        assert_ne!(
            DefinitionHash::new().text("ab").text("c").done(),
            DefinitionHash::new().text("a").text("bc").done()
        );
    }
}
