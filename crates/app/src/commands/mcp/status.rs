//! `dragoman mcp list` and `test`: connects, waits with a deadline, and prints what it saw.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use domain::names::is_same_name;
use domain::tool::{ServerStatus, ToolServer, ToolSource};
use domain::{Failure, visible_json, visible_text};
use serde_json::{Value, json};

use super::context::McpContext;
use crate::lifetime;
use crate::servers::ConfiguredServers;

/// A server may take this long, whatever the configuration allows it in a chat.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// A server after it was tried.
pub(crate) struct TriedServer {
    pub(crate) server: ToolServer,
    /// The revision of the protocol; `None` where it does not run.
    pub(crate) revision: Option<String>,
    pub(crate) took: Duration,
}

pub(super) fn list(context: &McpContext, is_json: bool) -> ExitCode {
    show(context, is_json, None)
}

pub(super) fn test(context: &McpContext, name: &str, is_json: bool) -> ExitCode {
    show(context, is_json, Some(name))
}

fn show(context: &McpContext, is_json: bool, only: Option<&str>) -> ExitCode {
    let mut all_run = true;
    let ran = lifetime::run(async {
        let servers = context.servers();
        if let Some(name) = only
            && !servers.servers().iter().any(|server| is_same_name(&server.name, name))
        {
            return Err(Failure::user(format!("There is no MCP server {name}."))
                .hint("`dragoman mcp list` shows the servers."));
        }
        let Some(tried) = lifetime::until_signal(try_servers(&servers, only, CONNECT_TIMEOUT)).await else {
            return Ok(());
        };
        servers.shutdown().await;
        all_run = tried.iter().all(|it| {
            it.server.status == ServerStatus::Running
                || only.is_none() && it.server.status == ServerStatus::Disabled
        });
        let text = match (is_json, only) {
            (true, _) => format!("{:#}", as_json(&tried)),
            (false, None) => table(&tried),
            (false, Some(_)) => details(&tried),
        };
        let text = if is_json { visible_json(&text) } else { visible_text(&text) };
        let text = context.resolved.redactor.redact(&text).into_owned();
        crate::output::print_line(text.trim_end())
    });
    if all_run { ran } else { ExitCode::FAILURE }
}

/// Starts servers together and waits until each runs, fails or is late.
pub(crate) async fn try_servers(
    servers: &ConfiguredServers,
    only: Option<&str>,
    limit: Duration,
) -> Vec<TriedServer> {
    let began = Instant::now();
    match only {
        Some(name) => drop(servers.act(name, domain::tool::ServerAction::Start).await),
        None => servers.start(),
    }
    let mut times = std::collections::HashMap::new();
    loop {
        let now = servers.servers();
        let mut is_waiting = false;
        for server in now.iter().filter(|server| only.is_none_or(|only| is_same_name(&server.name, only))) {
            let waits = matches!(server.status, ServerStatus::Starting | ServerStatus::Stopping);
            is_waiting |= waits;
            if !waits {
                times.entry(server.name.clone()).or_insert_with(|| began.elapsed());
            }
        }
        if !is_waiting || began.elapsed() > limit {
            let tried =
                now.into_iter().filter(|server| only.is_none_or(|only| is_same_name(&server.name, only)));
            return tried
                .map(|server| TriedServer {
                    revision: servers.supervisor().revision(&server.name),
                    took: times.get(&server.name).copied().unwrap_or_else(|| began.elapsed()),
                    server,
                })
                .collect();
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The state of a server in the words that a user reads.
pub(crate) fn status_word(status: ServerStatus) -> &'static str {
    match status {
        ServerStatus::Running => "running",
        ServerStatus::Starting | ServerStatus::Stopping => "late",
        ServerStatus::Stopped => "stopped",
        ServerStatus::Failed => "failed",
        ServerStatus::Disabled => "off",
        ServerStatus::RequiresAuth => "needs a login",
    }
}

fn place(server: &ToolServer) -> String {
    match &server.url {
        Some(url) => config::masked_address(url),
        None => format!("{} {}", server.command, server.args.join(" ")).trim().to_owned(),
    }
}

fn table(tried: &[TriedServer]) -> String {
    if tried.is_empty() {
        return "There is no MCP server. Add one: dragoman mcp add --help".to_owned();
    }
    let width = tried.iter().map(|it| it.server.name.chars().count()).max().unwrap_or(0).max(6);
    let mut lines = vec![format!(
        "{:<width$}  {:<13}  {:<10}  {:>5}  {:>7}  place",
        "server", "state", "revision", "tools", "ms"
    )];
    for TriedServer { server, revision, took } in tried {
        lines.push(format!(
            "{:<width$}  {:<13}  {:<10}  {:>5}  {:>7}  {}",
            server.name,
            status_word(server.status),
            revision.as_deref().unwrap_or("-"),
            server.tools.len(),
            if server.status == ServerStatus::Disabled { 0 } else { took.as_millis() },
            place(server)
        ));
        lines.extend(server.error.iter().map(|error| format!("  {}", error.replace('\n', "\n  "))));
    }
    lines.join("\n")
}

fn details(tried: &[TriedServer]) -> String {
    let mut lines = Vec::new();
    for TriedServer { server, revision, took } in tried {
        let revision = revision.as_ref().map(|it| format!(", revision {it}")).unwrap_or_default();
        let (word, took) = (status_word(server.status), took.as_millis());
        lines.push(format!("{}: {word}{revision}, {} tools, {took} ms", server.name, server.tools.len()));
        lines.extend(server.error.iter().map(|error| format!("  {}", error.replace('\n', "\n  "))));
        for tool in &server.tools {
            let first = tool.description.lines().next().unwrap_or_default();
            lines.push(format!("  {}: {first}", tool.name));
        }
    }
    lines.join("\n")
}

fn as_json(tried: &[TriedServer]) -> Value {
    let server = |TriedServer { server, revision, took }: &TriedServer| {
        let tools: Vec<&str> = server.tools.iter().map(|tool| tool.name.as_str()).collect();
        json!({
            "name": server.name,
            "status": status_word(server.status),
            "revision": revision,
            "tools": tools,
            "milliseconds": took.as_millis() as u64,
            "place": place(server),
            "error": server.error,
        })
    };
    json!({"servers": tried.iter().map(server).collect::<Vec<_>>()})
}
