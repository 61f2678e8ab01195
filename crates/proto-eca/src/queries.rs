//! Questions of a client: contexts, files and slash commands for a prompt, and the memory across chats.

use domain::command::{Context, ContextQuery, SlashCommand, SlashOrigin};
use domain::memory::{MemoryList, MemorySummary};
use domain::{Command, Failure, SessionId};

use crate::from_wire;
use crate::reply::Reply;
use crate::server::Server;
use crate::wire::Empty;
use crate::wire::memory::{IndexLoaded, Memory, MemoryError, MemoryListResult, SkippedMemory};
use crate::wire::requests::{
    CommandArgument, MemoryListMethod, Method, OfferedCommand, QueryCommands, QueryCommandsParams,
    QueryCommandsResult, QueryContext, QueryContextParams, QueryContextResult, QueryFiles, QueryFilesResult,
};
use crate::wire::{LinePosition, LinesRange, OfferedContext, Range};

pub(crate) async fn contexts(server: &mut Server, params: QueryContextParams, reply: Reply<QueryContext>) {
    let chat_id = params.chat_id.clone();
    find(server, params, ContextQuery::All, reply, |contexts| QueryContextResult { chat_id, contexts }).await;
}

pub(crate) async fn files(server: &mut Server, params: QueryContextParams, reply: Reply<QueryFiles>) {
    let chat_id = params.chat_id.clone();
    find(server, params, ContextQuery::Files, reply, |files| QueryFilesResult { chat_id, files }).await;
}

/// The contexts that fit the query, without those that the prompt has.
async fn find<M: Method + 'static>(
    server: &mut Server,
    params: QueryContextParams,
    kind: ContextQuery,
    reply: Reply<M>,
    result: impl FnOnce(Vec<OfferedContext>) -> M::Result + Send + 'static,
) {
    let session = server.session_of(params.chat_id.as_ref());
    let query = params.query.unwrap_or_default();
    let present: Vec<OfferedContext> =
        from_wire::contexts(params.contexts.unwrap_or_default()).iter().map(offered).collect();
    server
        .engine
        .call(
            |reply| Command::Contexts { session, query, kind, reply },
            move |server, found| {
                let found = found.map(|found| {
                    let all = found.iter().map(offered);
                    result(all.filter(|context| !present.contains(context)).collect())
                });
                server.respond(reply, found);
            },
        )
        .await;
}

fn offered(context: &Context) -> OfferedContext {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let position = |at: &domain::host::Position| LinePosition { line: at.line, character: at.character };
    match context {
        Context::File { path, lines } => OfferedContext::File {
            path: text(path),
            lines_range: lines.map(|(start, end)| LinesRange { start, end }),
        },
        Context::Directory { path } => OfferedContext::Directory { path: text(path) },
        Context::Web { url } => OfferedContext::Web { url: url.clone() },
        Context::RepoMap => OfferedContext::RepoMap,
        Context::Cursor { path, start, end } => OfferedContext::Cursor {
            path: text(path),
            position: Range { start: position(start), end: position(end) },
        },
        Context::McpResource(it) => OfferedContext::McpResource {
            server: it.server.clone(),
            uri: it.uri.clone(),
            name: it.name.clone(),
            description: it.description.clone(),
            mime_type: it.mime.clone(),
        },
        Context::Code { content, language, .. } => {
            OfferedContext::Code { content: content.clone(), language: language.clone() }
        }
        Context::Text { name, text } => OfferedContext::Text { name: name.clone(), text: text.clone() },
        Context::Image { mime, data } => {
            OfferedContext::Image { media_type: mime.clone(), base64: data.to_string() }
        }
    }
}

pub(crate) async fn slash_commands(
    server: &mut Server,
    params: QueryCommandsParams,
    reply: Reply<QueryCommands>,
) {
    let session = server.session_of(params.chat_id.as_ref());
    let (chat_id, query) = (params.chat_id, params.query.unwrap_or_default());
    server
        .engine
        .call(
            |reply| Command::SlashCommands { session, query, reply },
            move |server, commands| {
                let commands = commands.map(|commands| commands.into_iter().map(command).collect());
                server.respond(reply, commands.map(|commands| QueryCommandsResult { chat_id, commands }));
            },
        )
        .await;
}

fn command(command: SlashCommand) -> OfferedCommand {
    let kind = match command.origin {
        SlashOrigin::Native => "native",
        // The published protocol writes these with a dash; the page of today does not, and no client compares them.
        SlashOrigin::McpPrompt => "mcp-prompt",
        SlashOrigin::Custom => "custom-prompt",
        SlashOrigin::Skill => "skill",
    };
    let arguments = command.arguments.into_iter().map(|it| CommandArgument {
        name: it.name,
        description: it.description,
        required: it.required,
    });
    OfferedCommand {
        name: command.name,
        description: command.description,
        kind,
        arguments: arguments.collect(),
    }
}

/// `memory/list`.
pub(crate) async fn memory(server: &mut Server, _params: Empty, reply: Reply<MemoryListMethod>) {
    let done = |server: &mut Server, listed: Result<Option<MemoryList>, Failure>| {
        let result = listed.map(|list| match list {
            Some(list) => result_of(list),
            None => MemoryListResult::Off { error: MemoryError::off() },
        });
        server.respond(reply, result);
    };
    server.engine.call(|reply| Command::Memory { reply }, done).await;
}

/// Tells the client, with the first prompt of a chat in this process, of the entries that the model is told of.
pub(crate) fn announce_memory(server: &mut Server, session: &SessionId) {
    if !server.memory_told.insert(session.clone()) {
        return;
    }
    let Some(commands) = server.engine.commands() else { return };
    let session = session.clone();
    server.engine.later(
        async move { commands.call(|reply| Command::Memory { reply }).await },
        move |server, listed| {
            let Ok(Some(list)) = listed else { return };
            if list.entries.is_empty() {
                return;
            }
            let chat_id = server.chat_key(&session);
            let (count, total_count) = (list.indexed, list.entries.len());
            let items = list.entries.into_iter().take(count).map(memory_of).collect();
            server.notify(&IndexLoaded { chat_id, count, total_count, items });
        },
    );
}

fn result_of(list: MemoryList) -> MemoryListResult {
    let skipped = list.skipped.into_iter().map(|(path, is_of_project, reason)| SkippedMemory {
        path,
        tier: tier(is_of_project),
        label: label(is_of_project),
        reason,
    });
    MemoryListResult::Listed {
        memories: list.entries.into_iter().map(memory_of).collect(),
        skipped: skipped.collect(),
    }
}

fn memory_of(entry: MemorySummary) -> Memory {
    Memory {
        path: entry.path,
        tier: tier(entry.is_of_project),
        name: entry.name,
        description: entry.description,
        kind: "fact",
        tags: Vec::new(),
        label: label(entry.is_of_project),
        mtime_ms: entry.modified,
    }
}

fn tier(is_of_project: bool) -> &'static str {
    if is_of_project { "personal" } else { "global" }
}

fn label(is_of_project: bool) -> &'static str {
    if is_of_project { "project" } else { "global" }
}
