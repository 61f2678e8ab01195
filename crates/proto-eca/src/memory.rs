//! The memory across chats: `memory/list`, `memory/indexLoaded`.

use domain::memory::{MemoryList, MemorySummary};
use domain::{Command, Failure, SessionId};

use crate::reply::Reply;
use crate::serve::Server;
use crate::wire::Empty;
use crate::wire::memory::{IndexLoaded, Memory, MemoryError, MemoryListResult, SkippedMemory};
use crate::wire::requests::MemoryListMethod;

pub(crate) async fn list(server: &mut Server, _params: Empty, reply: Reply<MemoryListMethod>) {
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
pub(crate) fn announce(server: &mut Server, session: &SessionId) {
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
