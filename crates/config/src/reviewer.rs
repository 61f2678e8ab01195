//! `toolCall.approval.reviewer`: the model that looks at calls before a person is asked.
//!
//! Invariant: only the user's own settings or the administrator name one; a project or a plugin never does.

use domain::Level;

use crate::cursor::Cursor;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::sandbox::is_the_users;

const PATH: [&str; 3] = ["toolCall", "approval", "reviewer"];

/// The model as `provider/model`; `None`: nobody reviews.
pub(crate) fn read(root: &Cursor) -> Option<String> {
    let cursor = PATH.iter().fold(root.clone(), |cursor, key| cursor.get(key));
    if matches!(cursor.origin(), Origin::ProjectFile { .. }) {
        cursor.report(Level::Warning, "cannot be set by a project; it is ignored.");
    }
    let managed = root.scope().environment.managed().and_then(|managed| managed.rules.reviewer.clone());
    if let Some(managed) = managed {
        return (managed != "off").then_some(managed);
    }
    let own = root.scope().layers.iter().rev().filter(|layer| is_the_users(layer));
    let value = own.filter_map(|layer| layer.at(&PATH)).next()?;
    let model = value.as_str().filter(|model| {
        model.split_once('/').is_some_and(|(one, other)| !one.is_empty() && !other.is_empty())
    });
    if model.is_none() && !value.is_null() {
        cursor.report(
            Level::Error,
            "must be \"provider/model\". No model reviews calls until it is corrected.",
        );
    }
    model.map(str::to_owned)
}

/// Takes it out of a plugin's settings.
pub(crate) fn remove(layer: &mut Layer) -> bool {
    let section = layer.values.get_mut(PATH[0]).and_then(|value| value.get_mut(PATH[1]));
    section.and_then(|value| value.as_object_mut()).is_some_and(|section| section.remove(PATH[2]).is_some())
}
