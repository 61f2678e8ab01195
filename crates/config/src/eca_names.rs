//! Names of servers and providers in ECA's spelling: `test-mcp` of an ECA file is the server `testMcp`, `myProvider` is
//! the provider `my-provider`.
//!
//! Must not know what the names stand for. Invariants: a name of our own files changes only where it names the same thing as a
//! name of an ECA file, so that both still describe one server; two names of one file never become one.

use domain::names::{camel_case, is_same_name, kebab_case};
use serde_json::Value;

use crate::layer::{Layer, Object};

type Spelling = fn(&str) -> String;

const SECTIONS: [(&str, Spelling); 2] = [("mcpServers", camel_case), ("providers", kebab_case)];

/// Rewrites the names of all layers.
pub(crate) fn spell(layers: &mut [Layer]) {
    for (section, spelling) in SECTIONS {
        let mut spelled: Vec<String> = Vec::new();
        for layer in layers.iter_mut().filter(|layer| layer.origin.is_of_eca()) {
            spelled.extend(rename(layer, section, |name| Some(spelling(name))));
        }
        if spelled.is_empty() {
            continue;
        }
        for layer in layers.iter_mut().filter(|layer| !layer.origin.is_of_eca()) {
            rename(layer, section, |name| spelled.iter().find(|known| is_same_name(known, name)).cloned());
        }
    }
}

/// Renames the members of a section; returns the new names.
fn rename(layer: &mut Layer, section: &str, new_name: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let Some(Value::Object(members)) = layer.values.get_mut(section) else { return Vec::new() };
    let mut renamed = Vec::new();
    for name in members.keys() {
        let new = new_name(name).filter(|new| new != name && !members.contains_key(new));
        let is_taken = |new: &String| renamed.iter().any(|(known, _)| known == new);
        renamed.extend(new.filter(|new| !is_taken(new)).map(|new| (new, name.clone())));
    }
    if renamed.is_empty() {
        return Vec::new();
    }
    let of_new =
        |name: String| renamed.iter().find(|(_, old)| *old == name).map_or(name, |(new, _)| new.clone());
    *members =
        std::mem::take(members).into_iter().map(|(name, value)| (of_new(name), value)).collect::<Object>();
    let names = renamed.iter().map(|(new, _)| new.clone()).collect();
    layer.written_names.extend(renamed);
    names
}
