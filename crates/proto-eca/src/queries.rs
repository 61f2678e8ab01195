//! Completion in a prompt: contexts, files, slash commands.

use domain::Command;
use domain::command::{Context, ContextQuery, SlashCommand, SlashOrigin};
use rpc::Responder;
use serde_json::{Value, json};

use crate::dispatch::session_of;
use crate::from_wire;
use crate::serve::Server;
use crate::to_wire::position;
use crate::wire::ChatParams;

pub(crate) async fn contexts(
    server: &mut Server,
    method: &str,
    params: ChatParams,
    responder: Option<Responder>,
) {
    let kind = if method == "chat/queryFiles" { ContextQuery::Files } else { ContextQuery::All };
    let session = session_of(&params);
    let chat = session.clone();
    let query = params.query.unwrap_or_default();
    let taken: Vec<Value> = params
        .contexts
        .unwrap_or_default()
        .into_iter()
        .filter_map(from_wire::context)
        .map(|it| context(&it))
        .collect();
    server
        .engine
        .call(
            |reply| Command::Contexts { session, query, kind, reply },
            move |server, found| {
                let result = found.map(|found| {
                    let mut found: Vec<Value> = found.iter().map(context).collect();
                    found.retain(|context| !taken.contains(context));
                    let member = if kind == ContextQuery::Files { "files" } else { "contexts" };
                    let mut result = json!({member: found});
                    if let (Some(chat), Some(result)) = (chat, result.as_object_mut()) {
                        result.insert("chatId".into(), json!(chat));
                    }
                    result
                });
                server.respond_with(responder, result);
            },
        )
        .await;
}

fn context(context: &Context) -> Value {
    match context {
        Context::File { path, lines } => {
            let mut file = json!({"type": "file", "path": path});
            if let (Some((start, end)), Some(file)) = (lines, file.as_object_mut()) {
                file.insert("linesRange".into(), json!({"start": start, "end": end}));
            }
            file
        }
        Context::Directory { path } => json!({"type": "directory", "path": path}),
        Context::Web { url } => json!({"type": "web", "url": url}),
        Context::RepoMap => json!({"type": "repoMap"}),
        Context::Cursor { path, start, end } => {
            json!({"type": "cursor", "path": path, "position": {"start": position(start), "end": position(end)}})
        }
        Context::McpResource(it) => json!({
            "type": "mcpResource", "server": it.server, "uri": it.uri, "name": it.name,
            "description": it.description, "mimeType": it.mime,
        }),
        Context::Code { content, language, .. } => {
            json!({"type": "code", "content": content, "language": language})
        }
        Context::Text { name, text } => json!({"type": "text", "name": name, "text": text}),
        Context::Image { mime, data } => json!({"type": "image", "mediaType": mime, "base64": data}),
    }
}

pub(crate) async fn slash_commands(server: &mut Server, params: ChatParams, responder: Option<Responder>) {
    let session = session_of(&params);
    let chat = session.clone();
    let query = params.query.unwrap_or_default();
    server
        .engine
        .call(
            |reply| Command::SlashCommands { session, query, reply },
            move |server, commands| {
                let commands = commands.map(|commands| commands.iter().map(command).collect::<Vec<Value>>());
                let result = commands.map(|commands| json!({"chatId": chat, "commands": commands}));
                server.respond_with(responder, result);
            },
        )
        .await;
}

fn command(command: &SlashCommand) -> Value {
    let kind = match command.origin {
        SlashOrigin::Native => "native",
        SlashOrigin::McpPrompt => "mcpPrompt",
        SlashOrigin::Custom => "custom-prompt",
    };
    // The published protocol writes this kind with a dash.
    let kind = if kind == "mcpPrompt" { "mcp-prompt" } else { kind };
    let arguments: Vec<Value> = command
        .arguments
        .iter()
        .map(|it| json!({"name": it.name, "description": it.description, "required": it.required}))
        .collect();
    json!({"name": command.name, "description": command.description, "type": kind, "arguments": arguments})
}
