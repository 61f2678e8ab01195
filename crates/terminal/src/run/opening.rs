//! Opens the chat of a run: checks the flags, waits for servers, finds the chat to continue.

use std::time::Duration;

use domain::command::{SessionInfo, SessionSettings};
use domain::link::Commands;
use domain::slash_commands;
use domain::store::ListFilter;
use domain::tool::{ServerStatus, ToolServer};
use domain::{Command, Failure, SessionId};
use tokio::time::Instant;

use super::options::RunOptions;

/// How long a chat may take to be deleted.
const DELETE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the first request waits for MCP servers that are starting.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(10);
const SERVERS_POLL: Duration = Duration::from_millis(20);

/// A setting of the command line that means nothing is a mistake of this call: a run without a rule would do more than
/// asked, and one without a server less.
pub(super) fn check_flags(notices: &[String]) -> Result<(), Failure> {
    let mut of_flags = notices.iter().filter_map(|text| text.strip_prefix("command line: "));
    // Members of servers that only other programs know do no harm.
    let is_harmless = |text: &str| text.starts_with("`mcpServers.") && text.contains("ignored");
    let Some(text) = of_flags.find(|text| !is_harmless(text)) else { return Ok(()) };
    let flag = match text {
        text if text.starts_with("`mcpServers.") => "--mcp-config",
        text if text.starts_with("`toolCall.approval.") => "--allow or --deny",
        _ => "-c",
    };
    Err(Failure::user(format!("{flag} is wrong: {text}")))
}

/// Loads the chat to continue, or opens a new one.
pub(super) async fn open_session(
    commands: &Commands,
    existing: Option<SessionId>,
    is_fork: bool,
    id: Option<SessionId>,
    settings: SessionSettings,
) -> Result<SessionInfo, Failure> {
    let servers = Vec::new();
    match existing {
        Some(session) if is_fork => {
            commands.call(|reply| Command::Fork { session, until: None, id, reply }).await
        }
        Some(session) => commands.call(|reply| Command::Load { session, servers, reply }).await,
        None => {
            let workspace = None;
            commands.call(|reply| Command::Open { id, workspace, settings, servers, reply }).await
        }
    }
}

/// The name of the server whose prompt `/server:prompt` is.
pub(super) fn prompt_server(prompt: &str) -> Option<&str> {
    let name = prompt.strip_prefix('/')?.split_whitespace().next()?;
    name.split_once(':').map(|(server, _)| server)
}

/// Waits until no MCP server is starting, so that the first request has their tools. A server whose tools are known
/// from its last run is waited for only if the prompt is one of its own. Returns a sentence about each server that
/// is late.
pub(super) async fn wait_for_servers(
    commands: &Commands,
    needed: Option<&str>,
) -> Result<Vec<String>, Failure> {
    let deadline = Instant::now() + SERVERS_TIMEOUT;
    loop {
        let servers = commands.call(|reply| Command::Servers { session: None, reply }).await?;
        let problems: Vec<String> = servers.iter().filter_map(ToolServer::problem).collect();
        let late: Vec<String> = servers
            .into_iter()
            .filter(|server| matches!(server.status, ServerStatus::Starting | ServerStatus::Stopped))
            .filter(|server| server.tools.is_empty() || needed == Some(server.name.as_str()))
            .map(|server| server.name)
            .collect();
        if late.is_empty() || Instant::now() >= deadline {
            let sentence = |name: String| {
                let seconds = SERVERS_TIMEOUT.as_secs();
                format!("The MCP server {name} did not start within {seconds} s; its tools are missing.")
            };
            return Ok(problems.into_iter().chain(late.into_iter().map(sentence)).collect());
        }
        tokio::time::sleep(SERVERS_POLL).await;
    }
}

/// Rejects `/name` without such a command. A path such as `/etc/hosts` is text.
pub(super) async fn check_command(commands: &Commands, prompt: &str) -> Result<(), Failure> {
    let Some(name) = prompt.strip_prefix('/').and_then(|rest| rest.split_whitespace().next()) else {
        return Ok(());
    };
    let is_name = |c: char| c.is_alphanumeric() || "-_:.".contains(c);
    if !name.chars().all(is_name) {
        return Ok(());
    }
    let (session, query) = (None, String::new());
    let known = commands.call(|reply| Command::SlashCommands { session, query, reply }).await?;
    let own = slash_commands::by_name(name).or_else(|| slash_commands::by_alias(name));
    if known.iter().any(|command| command.name == name) || own.is_some_and(|own| own.is_of_engine()) {
        return Ok(());
    }
    let near = slash_commands::nearest(name, known.iter().map(|command| command.name.as_str()));
    let near = near.map(|near| format!(" Did you mean /{near}?")).unwrap_or_default();
    let mut names: Vec<String> = known.iter().map(|command| format!("/{}", command.name)).collect();
    names.sort();
    Err(Failure::user(format!("There is no command /{name}.{near}"))
        .hint(format!("Use one of these, or begin the prompt with a space: {}.", names.join(", "))))
}

/// The chat to continue.
pub(super) async fn find_session(
    commands: &Commands,
    options: &RunOptions,
) -> Result<Option<SessionId>, Failure> {
    if options.session.is_some() || !options.newest {
        return Ok(options.session.clone());
    }
    let workspace = Some(options.roots.clone());
    let filter = ListFilter { workspace, limit: Some(1), ..ListFilter::default() };
    let newest = commands.call(|reply| Command::List { filter, reply }).await?;
    Ok(newest.into_iter().next().map(|chat| chat.id))
}

/// Deletes a chat without any request to a model: nobody continues it.
pub(super) async fn delete_session(commands: &Commands, session: SessionId) {
    let deleted = commands.call(|reply| Command::Delete { session, reply });
    let _ = tokio::time::timeout(DELETE_TIMEOUT, deleted).await;
}
