//! Chats of Claude Code: `~/.claude/projects/FOLDER/ID.jsonl`, one JSON object a line.

use std::path::{Path, PathBuf};

use config::Environment;
use serde_json::Value;

use super::foreign::{ForeignChat, Turns, Unusable, day, file_time, files, json_lines, mark_of};
use crate::plan::Program;

pub(super) fn find(environment: &Environment) -> Vec<Result<ForeignChat, Unusable>> {
    let folder = environment.home().join(".claude/projects");
    files(&folder, "jsonl", 1).iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<ForeignChat, Unusable> {
    let mut turns = Turns::default();
    let (mut folder, mut title, mut last) = (None, None, String::new());
    let (lines, unreadable) = json_lines(file)?;
    for line in lines {
        // Work of subagents, and text that the program itself put in.
        if line["isSidechain"] == true || line["isMeta"] == true {
            continue;
        }
        if folder.is_none() {
            folder = line["cwd"].as_str().map(PathBuf::from);
        }
        let message = &line["message"];
        turns.time(&line["timestamp"]);
        match line["type"].as_str() {
            Some("summary") => title = line["summary"].as_str().map(str::to_owned).or(title),
            Some("user") => user(&mut turns, &message["content"]),
            Some("assistant") => assistant(&mut turns, message),
            _ => continue,
        }
        if line["timestamp"].is_string() {
            last = day(&line["timestamp"]);
        }
    }
    let id = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(ForeignChat {
        program: Program::Claude,
        id,
        file: file.to_owned(),
        folder,
        title,
        day: last,
        updated: turns.newest().unwrap_or_else(|| file_time(file)),
        turns: turns.finish(),
        unreadable,
    })
}

fn user(turns: &mut Turns, content: &Value) {
    if let Some(text) = content.as_str() {
        prompt(turns, text);
        return;
    }
    let mut texts = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => texts.extend(block["text"].as_str().map(str::to_owned)),
            Some(kind @ ("image" | "document")) => texts.push(mark_of(kind)),
            Some("tool_result") => {
                let call = block["tool_use_id"].as_str().unwrap_or_default();
                turns.result(call, &result_text(&block["content"]), block["is_error"] == true);
            }
            _ => {}
        }
    }
    prompt(turns, &texts.join("\n"));
}

/// Reminders of the program and traces of its own commands are no prompts.
fn prompt(turns: &mut Turns, text: &str) {
    let text = text.trim();
    let of_program = ["<command-", "<local-command-", "<system-reminder>", "<task-notification>", "Caveat: "];
    if !text.is_empty() && !of_program.iter().any(|mark| text.starts_with(mark)) {
        turns.prompt(text);
    }
}

fn assistant(turns: &mut Turns, message: &Value) {
    if let Some(model) = message["model"].as_str().filter(|model| *model != "<synthetic>") {
        turns.model(model);
    }
    turns.answer(message["content"].as_str().unwrap_or_default());
    for block in message["content"].as_array().into_iter().flatten() {
        let text = |member: &str| block[member].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("text") => turns.answer(text("text")),
            Some("thinking") => turns.reasoning(text("thinking")),
            Some("tool_use") => turns.call(text("id"), text("name"), block["input"].clone()),
            _ => {}
        }
    }
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => mark_of(block["type"].as_str().unwrap_or("content")),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    }
}
