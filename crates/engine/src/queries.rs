//! Commands that change no session: lists, files, completions, servers.
//!
//! Must not know sessions. Invariant: each runs in a task of its own, so that the router never waits for one.

use std::sync::Arc;

use domain::command::{Completed, Completion, Context, ContextQuery};
use domain::names::is_same_name;
use domain::tool::{Resource, ServerAction, ToolSource};
use domain::{Command, Failure, Reply, Store};
use futures_util::future::join_all;
use session::refusal::refuse;
use tokio::sync::mpsc;

use crate::chat_list;
use crate::completion;
use crate::slash;
use crate::spending;
use crate::workspace::{OpenWorkspace, Workspace};

#[allow(clippy::wildcard_enum_match_arm, reason = "the router sends no other command here")]
pub(crate) async fn answer(store: Arc<dyn Store>, workspace: Arc<OpenWorkspace>, command: Command) {
    let (files, roots) = (&workspace.files, &workspace.roots);
    match command {
        Command::Preview { .. } | Command::Read { .. } | Command::List { .. } => {
            answer_from_store(store.as_ref(), command).await;
        }
        Command::Catalog { reply } => drop(reply.send(Ok(workspace.catalog()))),
        Command::SlashCommands { query, reply, .. } => {
            let _ = reply.send(Ok(slash::list(None, &workspace, &query)));
        }
        Command::Contexts { query, kind, reply, .. } => {
            let mut contexts = files.query(roots, &query, kind).await;
            if kind == ContextQuery::All {
                contexts.extend(resources(&workspace, &query).await);
            }
            let _ = reply.send(Ok(contexts));
        }
        Command::CompleteArgument { command, arguments, reply } => {
            let _ = reply.send(Ok(complete_argument(&workspace, &command, &arguments).await));
        }
        Command::ReadFile { path, reply, .. } => {
            let _ = reply.send(files.read(roots, path).await);
        }
        Command::Stat { path, reply, .. } => {
            let _ = reply.send(files.stat(roots, path).await);
        }
        Command::Glob { pattern, reply, .. } => {
            let _ = reply.send(files.glob(roots, pattern).await);
        }
        Command::Complete { completion, deltas, reply } => {
            complete(store.as_ref(), &workspace, completion, deltas, reply).await;
        }
        Command::Providers { .. }
        | Command::Login { .. }
        | Command::FinishLogin { .. }
        | Command::Logout { .. } => {
            answer_account(&workspace, command).await;
        }
        Command::Memory { reply } => {
            let _ = reply.send(Ok(workspace.texts.memory().as_ref().map(crate::memory::summary)));
        }
        Command::ServerAction { name, action, reply } => {
            let _ = reply.send(act_on_server(&workspace, &name, action).await);
        }
        other => refuse(other, Failure::internal("The engine does not take this command.")),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is sent here")]
async fn answer_from_store(store: &dyn Store, command: Command) {
    match command {
        Command::Preview { session, limit, reply } => {
            let _ = reply.send(store.preview(&session, limit).await);
        }
        Command::Read { session, after, limit, reply } => {
            let read = store.read(&session, after, limit).await;
            let _ = reply.send(read.map(|page| page.into_iter().map(Arc::new).collect()));
        }
        Command::List { filter, reply } => {
            let _ = reply.send(chat_list::list(store, filter).await);
        }
        other => refuse(other, Failure::internal("The store does not take this command.")),
    }
}

/// Values for the last argument of a server's prompt.
async fn complete_argument(workspace: &Workspace, command: &str, arguments: &[String]) -> Vec<String> {
    let has_prompt = |source: &&Arc<dyn ToolSource>| source.prompts().iter().any(|it| it.name == command);
    match workspace.sources.iter().find(has_prompt) {
        Some(source) => source.complete_prompt(command, arguments).await,
        None => Vec::new(),
    }
}

/// A caller that no longer waits ends the call of the model.
async fn complete(
    store: &dyn Store,
    workspace: &Workspace,
    mut completion: Completion,
    deltas: Option<mpsc::Sender<String>>,
    mut reply: Reply<Completed>,
) {
    completion::apply_settings(&workspace.settings, &mut completion);
    let mut used = completion::Used::default();
    let completed = tokio::select! {
        completed = completion::run(workspace.models.as_ref(), completion, deltas, &mut used) => Some(completed),
        () = reply.closed() => None,
    };
    if let Some(cost) = used.cost().filter(|cost| *cost > 0.0) {
        spending::charge_day(store, cost).await;
    }
    if let Some(completed) = completed {
        let _ = reply.send(completed);
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "the caller sends no other command here")]
async fn answer_account(workspace: &Workspace, command: Command) {
    let Some(accounts) = &workspace.accounts else {
        return refuse(command, Failure::user("Accounts cannot be changed here."));
    };
    match command {
        Command::Providers { reply } => drop(reply.send(Ok(accounts.providers()))),
        Command::Login { provider, method, reply } => {
            let _ = reply.send(accounts.login(&provider, method.as_deref()).await);
        }
        Command::FinishLogin { provider, fields, reply } => {
            let _ = reply.send(accounts.finish_login(&provider, &fields));
        }
        Command::Logout { provider, reply } => drop(reply.send(accounts.logout(&provider))),
        other => refuse(other, Failure::internal("The engine does not take this command.")),
    }
}

/// A new server goes to the source that takes servers, every other action to the source that has it.
async fn act_on_server(workspace: &Workspace, name: &str, action: ServerAction) -> Result<(), Failure> {
    let is_new = matches!(action, ServerAction::Add { .. });
    let source = workspace.sources.iter().find(|source| {
        is_new && source.takes_servers()
            || source.servers().iter().any(|server| is_same_name(&server.name, name))
    });
    match source {
        Some(source) => source.act(name, action).await,
        None => Err(Failure::user(format!("There is no server {name}."))),
    }
}

/// The resources that servers list, and those that the query leads to by their templates.
async fn resources(workspace: &Workspace, query: &str) -> Vec<Context> {
    let words = query.to_lowercase();
    let all = workspace.sources.iter().flat_map(|source| source.resources());
    let mut found: Vec<Resource> = all
        .filter(|resource| {
            resource.name.to_lowercase().contains(&words) || resource.uri.to_lowercase().contains(&words)
        })
        .collect();
    let templated = join_all(workspace.sources.iter().map(|source| source.templated_resources(query))).await;
    for resource in templated.into_iter().flatten() {
        if !found.iter().any(|known| (&known.server, &known.uri) == (&resource.server, &resource.uri)) {
            found.push(resource);
        }
    }
    found.into_iter().map(Context::McpResource).collect()
}
