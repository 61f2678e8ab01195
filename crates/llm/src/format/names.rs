//! Names of tools and calls as providers accept them, and back.
//!
//! Invariant: a wire name depends on the original alone, so that it is the same in every request.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::ToolSpec;
use domain::model::{BlockKind, Prompt};

const LONGEST: usize = 64;

/// Maps the names on the wire back to the names the engine offered.
#[derive(Clone, Debug, Default)]
pub struct Names {
    changed: HashMap<String, String>,
    /// The tool that searches others, where the provider has a call of its own for it.
    pub search: Option<String>,
    /// The arguments of tools whose calls are plain text, by the name that the engine offered.
    texts: HashMap<String, &'static str>,
}

impl Names {
    pub fn of(tools: &[ToolSpec]) -> Self {
        let changed = tools
            .iter()
            .map(ToolSpec::offered_name)
            .filter_map(|name| match tool_name(&name) {
                Cow::Borrowed(_) => None,
                Cow::Owned(wire) => Some((wire, name)),
            })
            .collect();
        Self { changed, ..Self::default() }
    }

    /// The names of a prompt, with those of the tools that were found.
    pub fn of_prompt(prompt: &Prompt) -> Self {
        let texts = prompt.text_tools.iter().map(|(name, format)| (name.clone(), format.argument)).collect();
        let Some(deferred) = &prompt.deferred else { return Self { texts, ..Self::of(&prompt.tools) } };
        let mut names = Self::of(&deferred.found);
        names.changed.extend(Self::of(&prompt.tools).changed);
        Self { search: Some(deferred.search.clone()), texts, ..names }
    }

    /// The argument that the plain text of a call becomes.
    pub fn text_argument(&self, call: &BlockKind) -> &'static str {
        let known = match call {
            BlockKind::ToolCall { name, .. } => self.texts.get(name).copied(),
            BlockKind::Text | BlockKind::Reasoning | BlockKind::Citation { .. } => None,
        };
        known.unwrap_or("input")
    }

    /// The offered name of a tool that the model called.
    pub fn original(&self, wire: String) -> String {
        self.changed.get(&wire).cloned().unwrap_or(wire)
    }
}

/// A tool's name on the wire: letters, digits, `_` and `-`, at most 64, a letter first.
pub fn tool_name(name: &str) -> Cow<'_, str> {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if first && fits(name, LONGEST) {
        return Cow::Borrowed(name);
    }
    let mut wire: String = if first { String::new() } else { "t_".to_owned() };
    wire.extend(name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST - 12));
    wire.push_str(&format!("_{:08x}", hash(name) as u32));
    Cow::Owned(wire)
}

/// A call's id on the wire; ids made by one provider are not always valid for another.
pub fn call_id(id: &str, short: bool) -> Cow<'_, str> {
    if short {
        if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Cow::Borrowed(id);
        }
        return Cow::Owned(format!("{:09x}", hash(id) & 0xf_ffff_ffff));
    }
    if fits(id, LONGEST) { Cow::Borrowed(id) } else { Cow::Owned(format!("call_{:016x}", hash(id))) }
}

fn fits(name: &str, longest: usize) -> bool {
    !name.is_empty() && name.len() <= longest && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// FNV-1a: stable between processes and versions, which the standard hasher is not.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::tool_call::Origin;
    use serde_json::json;

    fn spec(server: &str, name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            server: server.to_owned(),
            origin: Origin::Mcp,
            description: String::new(),
            input_schema: json!({"type": "object"}),
            effect: domain::tool::ToolEffect::Reads,
        }
    }

    #[test]
    fn every_name_fits_and_comes_back() {
        let long = "x".repeat(200);
        for (server, name) in [
            ("eca", "read_file"),
            ("my server", "get.thing"),
            ("größe", "ü"),
            ("9lives", "a"),
            ("s", &long),
            ("", ""),
        ] {
            let spec = spec(server, name);
            let offered = spec.offered_name();
            let wire = tool_name(&offered).into_owned();
            assert!(wire.len() <= LONGEST && wire.chars().all(is_plain), "{wire}");
            assert!(!wire.starts_with(|c: char| c.is_ascii_digit()), "{wire}");
            assert_eq!(Names::of(&[spec]).original(wire), offered);
        }
        assert_ne!(tool_name("a b"), tool_name("a.b"));
    }

    #[test]
    fn ids_fit_the_shortest_rule() {
        assert_eq!(call_id("toolu_01A-b", false), "toolu_01A-b");
        assert_eq!(call_id("abcDEF123", true), "abcDEF123");
        for id in ["", "functions.read:0", &"y".repeat(65), "call_0123456789abcdef"] {
            let short = call_id(id, true);
            assert!(short.len() == 9 && short.bytes().all(|b| b.is_ascii_alphanumeric()), "{short}");
            assert!(fits(&call_id(id, false), 64));
        }
    }
}
