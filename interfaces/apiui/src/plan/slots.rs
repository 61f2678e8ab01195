//! Slots: the places of an interface that free changes fill with code of their own.
//!
//! Owns their names. Everything else of an interface follows from the plan, so a free change in a slot leaves every later
//! wish as small as the first. The code of a slot is checked with the whole module before it is used.

use serde::{Deserialize, Serialize};

/// The code of one slot, as it was wished for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SlotCode {
    pub slot: String,
    /// A function component with the slot's name and `Slot` behind it, or a style sheet.
    pub code: String,
}

/// A place in the interface: its name, what its component gets, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub name: &'static str,
    pub properties: &'static str,
    pub place: &'static str,
}

/// The slot that holds a style sheet.
pub const STYLES: &str = "Styles";

pub const SLOTS: [Slot; 5] = [
    Slot { name: "Top", properties: "ui", place: "in the bar at the top" },
    Slot { name: "Overview", properties: "ui", place: "on the first page, below its title" },
    Slot {
        name: "List",
        properties: "ui, resource, items",
        place: "above the rows of each list; items are the rows that are loaded, as data",
    },
    Slot {
        name: "Item",
        properties: "ui, resource, item",
        place: "below the fields of each item; item is data or undefined",
    },
    Slot { name: "Foot", properties: "ui", place: "at the end of each page" },
];

/// The longest code of a slot, in bytes.
pub const MAX_SLOT: usize = 32 * 1024;

/// What is wrong with the code of a slot before the checker looks at it.
pub fn problem(slot: &str, code: &str) -> Option<String> {
    if slot != STYLES && !SLOTS.iter().any(|one| one.name == slot) {
        let names: Vec<&str> = SLOTS.iter().map(|one| one.name).chain([STYLES]).collect();
        return Some(format!("There is no slot {slot}. There are: {}.", names.join(", ")));
    }
    if code.len() > MAX_SLOT {
        return Some(format!("The code of a slot can have {} KB.", MAX_SLOT / 1024));
    }
    let head = format!("function {slot}Slot(");
    if slot != STYLES && !code.contains(&head) {
        return Some(format!("The code of the slot {slot} must hold “{head}…”."));
    }
    None
}
