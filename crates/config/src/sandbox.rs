//! `sandbox` and its like: whether commands run behind the wall, whether they need one, and what every command is granted.
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
    /// Where there is no wall, commands are refused.
    pub required: bool,
    /// Megabytes of memory for all processes of a command together; 0: no limit. `None`: as the machine has it.
    pub memory_megabytes: Option<u64>,
}

impl SandboxSettings {
    pub(crate) fn read(root: &Cursor) -> Self {
        for key in ["sandbox", "sandboxGrants", "sandboxMemoryMegabytes", "sandboxRequired", "shell"] {
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
        let required = match layers().find_map(|layer| layer.at(&["sandboxRequired"])) {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => {
                let problem = "must be true or false. Until it is, commands need a sandbox.";
                root.get("sandboxRequired").report(Level::Error, problem);
                true
            }
        };
        if required && !enabled {
            root.get("sandbox")
                .report(Level::Error, "is \"off\", but `sandboxRequired` is true. The sandbox is on.");
        }
        let memory = layers().find_map(|layer| layer.at(&["sandboxMemoryMegabytes"]));
        let memory_megabytes = memory.and_then(Value::as_u64);
        if memory.is_some() && memory_megabytes.is_none() {
            root.get("sandboxMemoryMegabytes").report_invalid("must be a whole number");
        }
        let grants = layers().find_map(|layer| layer.at(&["sandboxGrants"])?.as_array()).cloned();
        let texts =
            grants.unwrap_or_default().into_iter().filter_map(|grant| Some(grant.as_str()?.to_owned()));
        let enabled = enabled || required;
        Self { enabled, asks, grants: texts.collect(), required, memory_megabytes }
    }
}

/// A layer that the user wrote, and no project.
pub(crate) fn is_the_users(layer: &Layer) -> bool {
    layer.authority == Authority::Full && !matches!(layer.origin, Origin::ProjectFile { .. })
}
