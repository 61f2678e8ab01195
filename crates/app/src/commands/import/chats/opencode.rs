//! Chats of opencode: `~/.local/share/opencode/storage/{session,message,part}`, and in newer versions the database beside it
//! (`opencode_database`). A chat that is in both is taken from the database, where it goes on.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use config::Environment;
use serde_json::Value;

use super::{ForeignChat, Turns, Unusable, day, files, opencode_database, read};
use crate::commands::import::plan::Program;

/// A chat in the form that both share.
pub(super) struct StoredChat {
    pub id: String,
    pub file: PathBuf,
    pub folder: Option<String>,
    pub title: Option<String>,
    /// Milliseconds since 1970.
    pub updated: Value,
    /// Each with its parts, in order.
    pub messages: Vec<(Value, Vec<Value>)>,
}

pub(super) fn find(environment: &Environment) -> Vec<Result<ForeignChat, Unusable>> {
    let data = environment.xdg_data_home().join("opencode");
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for database in opencode_database::databases(&data) {
        match opencode_database::read_chats(&database) {
            Ok(chats) => {
                for chat in chats.into_iter().filter(|chat| is_plain(&chat.id)) {
                    if known.insert(chat.id.clone()) {
                        found.push(Ok(convert(chat)));
                    }
                }
            }
            Err(unusable) => found.push(Err(unusable)),
        }
    }
    let storage = data.join("storage");
    let sessions = files(&storage.join("session"), "json", 1);
    let stored = sessions.iter().map(|file| read_chat(&storage, file));
    let is_new =
        |chat: &Result<StoredChat, Unusable>| chat.as_ref().map_or(true, |chat| !known.contains(&chat.id));
    found.extend(stored.filter(is_new).map(|chat| chat.map(convert)));
    found
}

fn read_chat(storage: &Path, file: &Path) -> Result<StoredChat, Unusable> {
    let session = read_object(file)?;
    let id = session["id"].as_str().unwrap_or_default().to_owned();
    if !is_plain(&id) {
        return Err((file.to_owned(), "it names no chat".to_owned()));
    }
    let mut stored = files(&storage.join("message").join(&id), "json", 0)
        .iter()
        .map(|file| read_object(file))
        .collect::<Result<Vec<_>, _>>()?;
    stored.sort_by_key(|message| message["time"]["created"].as_u64());
    let mut messages = Vec::new();
    for message in stored {
        let Some(name) = message["id"].as_str().filter(|name| is_plain(name)) else { continue };
        let parts = files(&storage.join("part").join(name), "json", 0);
        let parts = parts.iter().map(|file| read_object(file)).collect::<Result<Vec<_>, _>>()?;
        messages.push((message, parts));
    }
    Ok(StoredChat {
        id,
        file: file.to_owned(),
        folder: session["directory"].as_str().map(str::to_owned),
        title: session["title"].as_str().map(str::to_owned),
        updated: session["time"]["updated"].clone(),
        messages,
    })
}

fn convert(chat: StoredChat) -> ForeignChat {
    let mut turns = Turns::default();
    for (message, parts) in &chat.messages {
        match message["role"].as_str() {
            Some("user") => {
                let own = parts.iter().filter(|part| part["type"] == "text" && part["synthetic"] != true);
                let texts: Vec<&str> = own.filter_map(|part| part["text"].as_str()).collect();
                turns.prompt(&texts.join("\n"));
            }
            Some("assistant") => {
                turns.model(message["modelID"].as_str().unwrap_or_default());
                parts.iter().for_each(|part| answer_part(&mut turns, part));
            }
            _ => {}
        }
    }
    ForeignChat {
        program: Program::Opencode,
        id: chat.id,
        file: chat.file,
        folder: chat.folder.map(PathBuf::from),
        title: chat.title,
        day: day(&chat.updated),
        turns: turns.finish(),
    }
}

fn answer_part(turns: &mut Turns, part: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match part["type"].as_str() {
        Some("text") => turns.answer(&text(&part["text"])),
        Some("reasoning") => turns.reasoning(&text(&part["text"])),
        Some("tool") => {
            let (id, state) = (text(&part["callID"]), &part["state"]);
            turns.call(&id, &text(&part["tool"]), state["input"].clone());
            let failed = state["status"] == "error";
            let output = state["output"].as_str().or(state["error"].as_str()).unwrap_or_default();
            turns.result(&id, output, failed);
        }
        _ => {}
    }
}

fn read_object(file: &Path) -> Result<Value, Unusable> {
    serde_json::from_slice(&read(file)?)
        .map_err(|error| (file.to_owned(), format!("it is no JSON ({error})")))
}

/// A name that leads out of no folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}
