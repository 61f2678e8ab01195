//! The files of a project that bring settings, skills and commands: which of them count, and why another does not.

use std::path::PathBuf;

use serde_json::Value;

use crate::claude;
use crate::layer::Layer;
use crate::trust::{Folder, Trust};
use crate::untrusted::needs_trust;

/// One file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    /// What it brings, or why it does not count.
    pub state: PlaceState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceState {
    /// In force, with what it brings.
    Counts(String),
    /// Not in force, or not all of it, with the reason.
    LeftOut(String),
}

impl Place {
    /// A line for people.
    pub fn line(&self) -> String {
        let (word, why) = match &self.state {
            PlaceState::Counts(what) => ("counts", what),
            PlaceState::LeftOut(why) => ("does not count", why),
        };
        format!("{} {word}: {why}", self.path.display())
    }
}

pub(crate) fn of_folder(folder: &Folder, layers: &[Layer], unused: Vec<(PathBuf, String)>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for layer in layers.iter().filter(|layer| !layer.values.is_empty()) {
        let Some(path) = layer.origin.file() else { continue };
        let part = needs_trust(&layer.values);
        let needed = names(&part);
        let is_held_back = !folder.is_trusted() && !part.is_empty();
        let all = names(&layer.values);
        let rest: Vec<String> =
            all.iter().filter(|name| !is_held_back || !needed.contains(name)).cloned().collect();
        if !rest.is_empty() {
            places.push(Place { path: path.to_owned(), state: PlaceState::Counts(rest.join(", ")) });
        }
        if is_held_back {
            let why = format!("{} {}", needed.join(", "), why_untrusted(folder));
            places.push(Place { path: path.to_owned(), state: PlaceState::LeftOut(why) });
        }
    }
    places.extend(unused.into_iter().map(|(path, why)| Place { path, state: PlaceState::LeftOut(why) }));
    places
}

/// The skills and commands of a folder in the places of other assistants. Reads folders.
pub(crate) fn of_texts(folder: &Folder) -> Vec<Place> {
    let place = |(line, path, _): (String, PathBuf, String)| {
        let state = match folder.is_trusted() {
            true => PlaceState::Counts(line),
            false => PlaceState::LeftOut(format!("{line} {}", why_untrusted(folder))),
        };
        Place { path, state }
    };
    claude::texts(&folder.root).into_iter().map(place).collect()
}

fn why_untrusted(folder: &Folder) -> &'static str {
    match folder.trust {
        Trust::Changed => "(changed since you trusted this folder)",
        Trust::Untrusted | Trust::Trusted => "(you have not trusted this folder)",
    }
}

/// `mcpServers (2)`, `deny rules` …, in the words of the settings.
fn names(values: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in values {
        let approval = value.get("approval").filter(|_| key == "toolCall").and_then(Value::as_object);
        match (approval, value) {
            (Some(lists), _) => names.extend(lists.keys().map(|list| format!("{list} rules"))),
            (None, Value::Object(entries)) => names.push(format!("{key} ({})", entries.len())),
            (None, _) => names.push(key.clone()),
        }
    }
    names
}
