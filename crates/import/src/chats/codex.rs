//! Chats of codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-….jsonl`, one JSON object a line.

use std::path::{Path, PathBuf};

use config::Environment;
use serde_json::{Value, json};

use super::foreign::{ForeignChat, Turns, Unusable, day, file_time, files, json_lines, mark_of};
use crate::plan::Program;

pub(super) fn find(environment: &Environment) -> Vec<Result<ForeignChat, Unusable>> {
    let home = environment.var("CODEX_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| environment.home().join(".codex"));
    let mut found = files(&home.join("sessions"), "jsonl", 3);
    found.extend(files(&home.join("archived_sessions"), "jsonl", 3));
    found.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<ForeignChat, Unusable> {
    let mut turns = Turns::default();
    let (mut id, mut folder, mut last) = (None, None, String::new());
    let (lines, unreadable) = json_lines(file)?;
    for line in lines {
        let payload = &line["payload"];
        turns.time(&line["timestamp"]);
        match line["type"].as_str() {
            // A resumed chat repeats the head of the one that it goes on from.
            Some("session_meta") if id.is_none() => {
                id = payload["id"].as_str().map(str::to_owned);
                folder = payload["cwd"].as_str().map(PathBuf::from);
            }
            Some("turn_context") => turns.model(payload["model"].as_str().unwrap_or_default()),
            Some("response_item") => item(&mut turns, payload),
            // Versions before September 2025 wrote the items themselves, after a head without a type.
            Some(_) if payload.is_null() => item(&mut turns, &line),
            None if id.is_none() && line["id"].is_string() => id = line["id"].as_str().map(str::to_owned),
            _ => continue,
        }
        if line["timestamp"].is_string() {
            last = day(&line["timestamp"]);
        }
    }
    let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ForeignChat {
        program: Program::Codex,
        id: id.unwrap_or_else(stem),
        file: file.to_owned(),
        folder,
        title: None,
        day: last,
        updated: turns.newest().unwrap_or_else(|| file_time(file)),
        turns: turns.finish(),
        unreadable,
    })
}

fn item(turns: &mut Turns, payload: &Value) {
    let text = |member: &str| payload[member].as_str().unwrap_or_default();
    match payload["type"].as_str() {
        Some("message") => message(turns, text("role"), &payload["content"]),
        Some("reasoning") => {
            let parts = payload["summary"].as_array().into_iter().flatten();
            let summary: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
            turns.reasoning(&summary.join("\n"));
        }
        Some("function_call") => {
            let arguments =
                serde_json::from_str(text("arguments")).unwrap_or_else(|_| json!(text("arguments")));
            turns.call(text("call_id"), text("name"), arguments);
        }
        Some("custom_tool_call") => turns.call(text("call_id"), text("name"), payload["input"].clone()),
        Some("web_search_call") => turns.call("", "web_search", payload["action"].clone()),
        Some("local_shell_call") => turns.call(text("call_id"), "shell", payload["action"].clone()),
        Some("function_call_output" | "custom_tool_call_output") => {
            let (output, failed) = output(&payload["output"]);
            turns.result(text("call_id"), &output, failed);
        }
        _ => {}
    }
}

fn message(turns: &mut Turns, role: &str, content: &Value) {
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| match part["text"].as_str() {
        Some(text) => Some(text.to_owned()),
        None => (part["type"] == "input_image").then(|| mark_of("image")),
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    // The program puts its own context into messages of the user.
    let of_program =
        ["<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md instructions"];
    match role {
        "user" if of_program.iter().any(|mark| text.trim_start().starts_with(mark)) => {}
        "user" if !text.trim().is_empty() => turns.prompt(text.trim()),
        "assistant" => turns.answer(&text),
        _ => {}
    }
}

/// A text, an object with one, or that object as text with the exit code beside it.
fn output(value: &Value) -> (String, bool) {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let object = parsed.as_ref().filter(|parsed| parsed.is_object()).unwrap_or(value);
    let failed =
        object["metadata"]["exit_code"].as_i64().is_some_and(|code| code != 0) || object["success"] == false;
    let text = ["output", "content"].iter().find_map(|member| object[*member].as_str());
    let text = text.or(value.as_str()).map_or_else(|| value.to_string(), str::to_owned);
    (text, failed)
}
