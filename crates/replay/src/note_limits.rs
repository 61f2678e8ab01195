//! Notes that a replay cannot come to by itself. Pure.

use std::collections::BTreeMap;

use domain::ItemId;
use domain::item::ItemKind;
use domain::note::NoteAbout;

use super::answer_script::ItemRecord;
use super::turn_end::Unreplayable;

const BY_GOAL: &str = "The turn worked toward a goal, and its checks do not run in a replay.";
const BY_NOTE: &str =
    "Instructions had changed or old results were left out, which a replay does not find out again.";

/// What the engine finds out at the time of a turn, about files and clocks, is not in a journal.
pub(super) fn refuse(items: &BTreeMap<ItemId, ItemRecord>) -> Result<(), Unreplayable> {
    let about = items.values().find_map(|record| match &record.last.kind {
        ItemKind::Note(note) => match note.about {
            NoteAbout::Goal(_) => Some(BY_GOAL),
            NoteAbout::Instructions | NoteAbout::ResultsCleared { .. } => Some(BY_NOTE),
            NoteAbout::Verification | NoteAbout::Review | NoteAbout::Report => None,
        },
        _ => None,
    });
    about.map_or(Ok(()), |reason| Err(Unreplayable(reason)))
}
