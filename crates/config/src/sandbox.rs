//! `sandbox` and `sandboxGrants`: whether commands run behind the wall, and what every command is granted.
//! Invariant: a project's file never decides about the wall, not even in a trusted folder.

use domain::Level;
use serde_json::Value;

use crate::cursor::Cursor;
use crate::layer::{Authority, Layer};
use crate::origin::Origin;

#[derive(Debug, Clone, PartialEq)]
pub struct SandboxSettings {
    pub enabled: bool,
    /// Commands that the sandbox contains are asked about as all others are.
    pub asks: bool,
    /// Grants for every command, as they are written.
    pub grants: Vec<String>,
}

impl SandboxSettings {
    pub(crate) fn read(root: &Cursor) -> Self {
        for key in ["sandbox", "sandboxGrants", "shell"] {
            let cursor = root.get(key);
            if matches!(cursor.origin(), Origin::ProjectFile { .. }) {
                cursor.report(Level::Warning, "cannot be set by a project; it is ignored.");
            }
        }
        let layers = || root.scope().layers.iter().rev().filter(|layer| is_the_users(layer));
        let (enabled, asks) = match layers().find_map(|layer| layer.at(&["sandbox"])) {
            None => (true, false),
            Some(Value::String(text)) if text == "on" => (true, false),
            Some(Value::String(text)) if text == "ask" => (true, true),
            Some(Value::String(text)) if text == "off" => (false, true),
            Some(_) => {
                let problem =
                    "must be \"on\", \"ask\" or \"off\". The sandbox is on, and commands are asked.";
                root.get("sandbox").report(Level::Error, problem);
                (true, true)
            }
        };
        let grants = layers().find_map(|layer| layer.at(&["sandboxGrants"])?.as_array()).cloned();
        let texts =
            grants.unwrap_or_default().into_iter().filter_map(|grant| Some(grant.as_str()?.to_owned()));
        Self { enabled, asks, grants: texts.collect() }
    }
}

/// A layer that the user wrote, and no project.
pub(crate) fn is_the_users(layer: &Layer) -> bool {
    layer.authority == Authority::Full && !matches!(layer.origin, Origin::ProjectFile { .. })
}
