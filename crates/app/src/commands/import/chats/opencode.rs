//! Chats of opencode as files: `~/.local/share/opencode/storage/{session,message,part}`. Newer versions keep them in a
//! database, which is named and not read.

use std::path::{Path, PathBuf};

use config::Environment;
use serde_json::Value;

use super::{ForeignChat, Turns, Unusable, day, files, read};
use crate::commands::import::plan::Program;

pub(super) fn find(environment: &Environment) -> Vec<Result<ForeignChat, Unusable>> {
    let data = environment.xdg_data_home().join("opencode");
    let storage = data.join("storage");
    let sessions = files(&storage.join("session"), "json", 1);
    let mut found: Vec<_> = sessions.iter().map(|file| read_chat(&storage, file)).collect();
    let database = data.join("opencode.db");
    if database.exists() {
        let why = "chats in this database are not read; `opencode export` writes one chat as JSON";
        found.push(Err((database, why.to_owned())));
    }
    found
}

fn read_chat(storage: &Path, file: &Path) -> Result<ForeignChat, Unusable> {
    let session = read_object(file)?;
    let id = session["id"].as_str().unwrap_or_default().to_owned();
    if !is_plain(&id) {
        return Err((file.to_owned(), "it names no chat".to_owned()));
    }
    let mut messages = files(&storage.join("message").join(&id), "json", 0)
        .iter()
        .map(|file| read_object(file))
        .collect::<Result<Vec<_>, _>>()?;
    messages.sort_by_key(|message| message["time"]["created"].as_u64());
    let mut turns = Turns::default();
    for message in &messages {
        let Some(name) = message["id"].as_str().filter(|name| is_plain(name)) else { continue };
        let parts = files(&storage.join("part").join(name), "json", 0);
        let parts = parts.iter().map(|file| read_object(file)).collect::<Result<Vec<_>, _>>()?;
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
    Ok(ForeignChat {
        program: Program::Opencode,
        id,
        file: file.to_owned(),
        folder: session["directory"].as_str().map(PathBuf::from),
        title: session["title"].as_str().map(str::to_owned),
        day: day(&session["time"]["updated"]),
        turns: turns.finish(),
    })
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
