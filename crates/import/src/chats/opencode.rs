//! Chats of opencode: `~/.local/share/opencode/storage/{session,message,part}`, and in newer versions the database beside it
//! (`opencode_database`). A chat that is in both is taken from the database, where it goes on.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use config::Environment;
use serde_json::Value;

use super::foreign::{ForeignChat, Turns, Unusable, day, file_time, files, mark_of, millis, read};
use super::opencode_database::{self, StoredChat};
use crate::plan::Program;

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
    let mut unreadable = 0;
    let mut stored = read_objects(&storage.join("message").join(&id), &mut unreadable);
    stored.sort_by_key(|message| message["time"]["created"].as_u64());
    let mut messages = Vec::new();
    for message in stored {
        let Some(name) = message["id"].as_str().filter(|name| is_plain(name)).map(str::to_owned) else {
            unreadable += 1;
            continue;
        };
        messages.push((message, read_objects(&storage.join("part").join(name), &mut unreadable)));
    }
    Ok(StoredChat {
        id,
        file: file.to_owned(),
        folder: session["directory"].as_str().map(str::to_owned),
        title: session["title"].as_str().map(str::to_owned),
        updated: session["time"]["updated"].clone(),
        messages,
        unreadable,
    })
}

fn convert(chat: StoredChat) -> ForeignChat {
    let mut turns = Turns::default();
    for (message, parts) in &chat.messages {
        turns.time(&message["time"]["created"]);
        match message["role"].as_str() {
            Some("user") => {
                let own = parts.iter().filter(|part| part["synthetic"] != true);
                let texts = own.filter_map(|part| match part["type"].as_str() {
                    Some("text") => part["text"].as_str().map(str::to_owned),
                    Some("file") => Some(mark_of(part["filename"].as_str().unwrap_or("file"))),
                    _ => None,
                });
                turns.prompt(&texts.collect::<Vec<_>>().join("\n"));
            }
            Some("assistant") => {
                turns.model(message["modelID"].as_str().unwrap_or_default());
                parts.iter().for_each(|part| answer_part(&mut turns, part));
            }
            _ => {}
        }
    }
    let updated = millis(&chat.updated).or(turns.newest()).unwrap_or_else(|| file_time(&chat.file));
    ForeignChat {
        program: Program::Opencode,
        id: chat.id,
        file: chat.file,
        folder: chat.folder.map(PathBuf::from),
        title: chat.title,
        day: day(&chat.updated),
        updated,
        turns: turns.finish(),
        unreadable: chat.unreadable,
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

/// The objects in a folder; what cannot be read is counted.
fn read_objects(folder: &Path, unreadable: &mut usize) -> Vec<Value> {
    let files = files(folder, "json", 0);
    let objects: Vec<Value> = files.iter().filter_map(|file| read_object(file).ok()).collect();
    *unreadable += files.len() - objects.len();
    objects
}

fn read_object(file: &Path) -> Result<Value, Unusable> {
    serde_json::from_slice(&read(file)?)
        .map_err(|error| (file.to_owned(), format!("it is no JSON ({error})")))
}

/// A name that leads out of no folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}
