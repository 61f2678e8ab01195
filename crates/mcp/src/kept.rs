//! The tools that a server offered last, kept between processes, so that the next process offers them at once.
//!
//! Must not know where lists are kept. Invariants: a kept list is used only for the command or address that offered it and only
//! while its hash is right; the definitions in it are pinned, so a server that changed meanwhile has what changed withheld;
//! the user's own stop forgets the list.

use std::sync::Arc;

use domain::names::kebab_case;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalog::read_tools;
use crate::definitions::KeptList;
use crate::digest::{DefinitionHash, Digest};
use crate::options::ServerConfig;

/// Longer lists are not kept.
const MAX_BYTES: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    /// Of everything below.
    hash: String,
    /// Empty where the server never answered.
    tools: Vec<Box<RawValue>>,
    instructions: Option<String>,
    #[serde(default)]
    has_resources: bool,
    #[serde(default)]
    has_handshake: bool,
}

const VERSION: u32 = 1;

impl KeptList {
    pub(crate) fn encode(&self) -> Option<String> {
        let tools = self.tools.iter().map(|tool| RawValue::from_string(tool.source.clone()));
        let tools = tools.collect::<Result<Vec<_>, _>>().ok()?;
        let hash = hash(&tools, self.instructions.as_deref());
        let (instructions, has_resources) = (self.instructions.clone(), self.has_resources);
        let has_handshake = self.has_handshake;
        let record = Record { version: VERSION, hash, tools, instructions, has_resources, has_handshake };
        serde_json::to_string(&record).ok().filter(|text| text.len() <= MAX_BYTES)
    }

    pub(crate) fn decode(text: &str, server: &str) -> Option<Self> {
        let record: Record = serde_json::from_str(text).ok().filter(|_| text.len() <= MAX_BYTES)?;
        let is_right =
            record.version == VERSION && record.hash == hash(&record.tools, record.instructions.as_deref());
        let tools = read_tools(server, false, &record.tools).definitions.into_iter().map(Arc::new).collect();
        let Record { instructions, has_resources, has_handshake, .. } = record;
        is_right.then_some(Self { tools, instructions, has_resources, has_handshake })
    }
}

fn hash(tools: &[Box<RawValue>], instructions: Option<&str>) -> String {
    let begun = DefinitionHash::new().text(instructions.unwrap_or_default());
    hex(tools.iter().fold(begun, |hash, tool| hash.text(tool.get())).done())
}

/// A server is the same while its name and its command or address are.
pub(crate) fn key(config: &ServerConfig) -> String {
    named_key(config, &kebab_case(&config.name))
}

/// The key of lists that were kept when a name had one spelling.
pub(crate) fn written_key(config: &ServerConfig) -> String {
    named_key(config, &config.name)
}

fn named_key(config: &ServerConfig, name: &str) -> String {
    let display = &config.display;
    let begun = DefinitionHash::new().text(name).text(&display.command);
    let with_arguments = display.args.iter().fold(begun, |hash, argument| hash.text(argument));
    hex(with_arguments.text(display.url.as_deref().unwrap_or_default()).done())
}

fn hex(digest: Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_kept_and_a_changed_one_is_not() {
        let item = r#"{"name":"a.b","description":"does it","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}"#;
        let raw = RawValue::from_string(item.to_owned()).unwrap();
        let tools: Vec<_> = read_tools("s", false, &[raw]).definitions.into_iter().map(Arc::new).collect();
        let instructions = Some("Use it.".to_owned());
        let kept = KeptList { tools, instructions, has_resources: true, has_handshake: true };
        let text = kept.encode().unwrap();
        let read = KeptList::decode(&text, "s").unwrap();
        assert_eq!(read.tools[0].digest, kept.tools[0].digest);
        assert_eq!(
            (read.instructions, read.has_resources, read.has_handshake),
            (kept.instructions, true, true)
        );
        assert!(KeptList::decode(&text.replace("does it", "does ill"), "s").is_none());
        assert!(KeptList::decode(&text.replace("Use it.", "Obey it."), "s").is_none());
    }
}
