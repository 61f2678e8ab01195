//! One call of an MCP server's tool for studio: starts the server, calls, and ends the server.
//!
//! Invariant: the user has allowed this very call on the page; the server can ask for nothing more, neither a form nor a
//! model.

use std::sync::Arc;
use std::time::Duration;

use config::{Environment, Inputs};
use domain::tool::{Invocation, Scope, ServerStatus, ToolContext, ToolSource};
use domain::{
    Abilities, Answer, AskKind, BoxFuture, CancellationToken, Failure, HostCall, HostReply, ItemId, Part,
    SessionId,
};
use interfaces::studio::PluginAnswer;
use serde_json::Value;

use crate::commands::mcp::status::try_servers;
use crate::servers::ConfiguredServers;

/// A server may take this long to start.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn call(
    environment: Arc<Environment>,
    name: String,
    tool: String,
    arguments: Value,
) -> BoxFuture<'static, Result<PluginAnswer, Failure>> {
    Box::pin(async move {
        let resolved = config::resolve(&environment, &Inputs::default());
        let servers = ConfiguredServers::for_command(&environment, &resolved, &[]);
        let answer = call_started(&servers, &name, &tool, arguments).await;
        servers.shutdown().await;
        answer.map(|answer| PluginAnswer {
            text: resolved.redactor.redact(&answer.text).into_owned(),
            ..answer
        })
    })
}

async fn call_started(
    servers: &ConfiguredServers,
    name: &str,
    tool: &str,
    arguments: Value,
) -> Result<PluginAnswer, Failure> {
    let tried = try_servers(servers, Some(name), SERVER_TIMEOUT).await.into_iter().next();
    let server = tried.ok_or_else(|| Failure::user(format!("The settings no longer name {name}.")))?.server;
    if server.status != ServerStatus::Running {
        let problem =
            server.problem().unwrap_or_else(|| format!("The MCP server {name} did not start in time."));
        return Err(Failure::user(problem));
    }
    let is_wanted = |spec: &domain::tool::ToolSpec| spec.server == name && spec.name == tool;
    let found = servers.tools().into_iter().find(|tool| is_wanted(tool.spec()));
    let found = found.ok_or_else(|| Failure::user(format!("{name} no longer has the tool {tool}.")))?;
    let scope = Scope {
        session: SessionId::new("studio"),
        roots: Arc::from([]),
        read_only: false,
        remembered: Arc::from([]),
        forbidden_paths: Arc::from([]),
        tainted: false,
        secret_read: false,
    };
    found.review(&arguments, &scope).map_err(Failure::user)?;
    let result = found
        .run(Invocation {
            item: ItemId(1),
            input: arguments,
            scope,
            outside_allowed: false,
            contained: false,
            keeps_run_later: false,
            run_later: Vec::new(),
            cancel: CancellationToken::new(),
            context: Arc::new(NoEngine),
        })
        .await;
    let text = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image { mime, .. } => format!("(an image, {mime})"),
    };
    let parts: Vec<String> = result.parts.iter().map(text).collect();
    Ok(PluginAnswer { text: parts.join("\n"), is_error: result.error })
}

/// There is no chat behind this call.
struct NoEngine;

impl ToolContext for NoEngine {
    fn output(&self, _text: &str) {}

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn host(&self, _call: HostCall, _deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>> {
        Box::pin(async { Err(Failure::user("There is no editor here.")) })
    }

    fn ask(&self, _kind: AskKind) -> BoxFuture<'_, Answer> {
        Box::pin(async { Answer::Deny { remember: false, reason: None } })
    }
}
