//! Chats of ECA: `~/.cache/eca/NAME_HASH/db.transit.json`. The hash is that of the workspace folders, so a chat is
//! imported in the folder that it belongs to.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use config::Environment;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::foreign::{ForeignChat, Turns, Unusable, day, file_time, mark_of, millis, read};
use super::transit;
use crate::plan::Program;

/// Characters of the hash in a folder's name.
const HASH_CHARS: usize = 8;

pub(super) fn find(environment: &Environment, folder: &Path) -> Vec<Result<ForeignChat, Unusable>> {
    let cache = environment.cache_dir().parent().map(|cache| cache.join("eca")).unwrap_or_default();
    let hash = folder_hash(folder);
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = entry.path().join("db.transit.json");
        if (name == hash || name.ends_with(&format!("_{hash}"))) && file.is_file() {
            match read_chats(&file, folder) {
                Ok(chats) => found.extend(chats.into_iter().map(Ok)),
                Err(unusable) => found.push(Err(unusable)),
            }
        }
    }
    found
}

fn folder_hash(folder: &Path) -> String {
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    URL_SAFE_NO_PAD.encode(digest).chars().take(HASH_CHARS).collect()
}

fn read_chats(file: &Path, folder: &Path) -> Result<Vec<ForeignChat>, Unusable> {
    let unusable = |reason: String| (file.to_owned(), reason);
    let stored: Value =
        serde_json::from_slice(&read(file)?).map_err(|error| unusable(format!("it is no JSON ({error})")))?;
    let database = transit::decode(&stored).map_err(unusable)?;
    let chats = database["chats"].as_object().into_iter().flatten();
    let own = chats.filter(|(_, chat)| chat["subagent"] != true && chat["parent-chat-id"].is_null());
    Ok(own.map(|(id, chat)| convert(id, chat, file, folder)).collect())
}

fn convert(id: &str, chat: &Value, file: &Path, folder: &Path) -> ForeignChat {
    let mut turns = Turns::default();
    turns.model(chat["model"].as_str().unwrap_or_default());
    // A message has no time of its own.
    turns.time(&chat["created-at"]);
    for message in chat["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("user") => turns.prompt(&text_of(content)),
            Some("assistant") => turns.answer(&text_of(content)),
            Some("reason") => turns.reasoning(content["text"].as_str().unwrap_or_default()),
            Some("tool_call") => {
                let name = ["name", "full-name"].iter().find_map(|member| content[*member].as_str());
                let id = content["id"].as_str().unwrap_or_default();
                turns.call(id, name.unwrap_or("tool"), content["arguments"].clone());
            }
            Some("tool_call_output") => {
                let output = &content["output"];
                let failed = content["error"] == true || output["error"] == true;
                turns.result(
                    content["id"].as_str().unwrap_or_default(),
                    &text_of(&output["contents"]),
                    failed,
                );
            }
            _ => {}
        }
    }
    let time = if chat["updated-at"].is_null() { &chat["created-at"] } else { &chat["updated-at"] };
    ForeignChat {
        program: Program::Eca,
        id: id.to_owned(),
        file: file.to_owned(),
        folder: Some(PathBuf::from(folder)),
        title: chat["title"].as_str().map(str::to_owned),
        day: day(time),
        updated: millis(time).unwrap_or_else(|| file_time(file)),
        turns: turns.finish(),
        unreadable: 0,
    }
}

/// A text, or a list of contents with texts.
fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| match part["text"].as_str() {
        Some(text) => Some(text.to_owned()),
        None => (part["type"] == "image").then(|| mark_of("image")),
    });
    texts.collect::<Vec<_>>().join("\n")
}
