//! Turns settings into MCP servers; resolves a server's command and secrets when it starts.

use std::path::PathBuf;
use std::sync::Arc;

use config::{LazyText, McpServer, McpTransport, Resolved, SecretSource};
use domain::Failure;
use domain::command::{ServerSpec, ServerTransport};
use domain::event::{CatalogKind, Notice};
use domain::tool::ToolSource;
use mcp::{Options, ServerConfig, ServerDisplay, Supervisor};
use process::sandbox::Grant;

use crate::sandboxing::{WorkspaceSandbox, read_grants};

/// Starts the servers of a workspace in the background. Returns `None` without servers.
pub(crate) fn workspace_servers(
    resolved: &Resolved,
    roots: &[PathBuf],
    changes: &engine::CatalogChanges,
    sandbox: Option<&WorkspaceSandbox>,
    notices: &mut Vec<Notice>,
) -> Option<Arc<dyn ToolSource>> {
    let servers = resolved.settings.mcp_servers.iter();
    let servers: Vec<ServerConfig> =
        servers.map(|(name, server)| server_config(name, server, sandbox, notices)).collect();
    if servers.is_empty() {
        return None;
    }
    let supervisor = Arc::new(Supervisor::new(
        servers,
        Options {
            sandbox: sandbox.map(|sandbox| sandbox.sandbox.clone()),
            ..options(resolved, roots, changes)
        },
    ));
    let starting = supervisor.clone();
    tokio::spawn(async move { starting.start() });
    Some(supervisor)
}

/// Servers that a client sent with a session.
pub(crate) fn session_servers(
    servers: &[ServerSpec],
    roots: &[PathBuf],
    changes: &engine::CatalogChanges,
    sandbox: Option<WorkspaceSandbox>,
) -> Arc<dyn ToolSource> {
    let sandbox = sandbox.map(|sandbox| sandbox.sandbox);
    mcp::session_servers(
        servers,
        Options { sandbox, ..Options::new(roots.to_vec(), catalog_notifier(changes)) },
    )
}

fn options(resolved: &Resolved, roots: &[PathBuf], changes: &engine::CatalogChanges) -> Options {
    Options {
        withheld_environment: resolved.secret_variables.clone(),
        start_timeout: resolved.settings.mcp_timeout,
        call_timeout: resolved.settings.mcp_timeout,
        ..Options::new(roots.to_vec(), catalog_notifier(changes))
    }
}

fn catalog_notifier(changes: &engine::CatalogChanges) -> Arc<dyn Fn() + Send + Sync> {
    let changes = changes.clone();
    Arc::new(move || changes.publish(CatalogKind::ToolServers))
}

fn server_config(
    name: &str,
    server: &McpServer,
    sandbox: Option<&WorkspaceSandbox>,
    notices: &mut Vec<Notice>,
) -> ServerConfig {
    let mut grants = read_grants(&server.grants, &format!("mcpServers.{name}.grants"), notices);
    grants.extend(sandbox.iter().flat_map(|sandbox| sandbox.grants.clone()));
    grants.extend(server.network.then_some(Grant::Network));
    let transport = server.transport.clone();
    let shown = match &transport {
        McpTransport::Stdio { command, args, .. } => ServerDisplay {
            command: command.written().to_owned(),
            args: args.iter().map(|argument| argument.written().to_owned()).collect(),
            url: None,
        },
        McpTransport::Http { url, .. } => {
            ServerDisplay { command: String::new(), args: Vec::new(), url: Some(url.written().to_owned()) }
        }
    };
    let lookup: mcp::Lookup = Arc::new(move || {
        let transport = transport.clone();
        Box::pin(async move { resolve_transport(&transport).await })
    });
    ServerConfig { name: name.to_owned(), disabled: server.disabled, display: shown, lookup, grants }
}

async fn resolve_transport(transport: &McpTransport) -> Result<ServerTransport, Failure> {
    match transport {
        McpTransport::Stdio { command, args, env } => Ok(ServerTransport::Stdio {
            command: command.get().await?.to_owned(),
            args: resolve_texts(args).await?,
            env: resolve_secrets(env).await?,
        }),
        McpTransport::Http { url, headers, .. } => Ok(ServerTransport::Http {
            url: url.get().await?.to_owned(),
            headers: resolve_secrets(headers).await?,
        }),
    }
}

async fn resolve_texts(values: &[LazyText]) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::with_capacity(values.len());
    for value in values {
        texts.push(value.get().await?.to_owned());
    }
    Ok(texts)
}

async fn resolve_secrets(values: &[(String, SecretSource)]) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::with_capacity(values.len());
    for (name, value) in values {
        pairs.push((name.clone(), value.get().await?.expose().to_owned()));
    }
    Ok(pairs)
}
