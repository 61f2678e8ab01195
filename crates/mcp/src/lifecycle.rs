//! The lifecycle of one server: a task that starts it, follows its changes, stops it and reports how it ended.
//!
//! Invariants: one task, so that a stop never races a start; a stop command ends every wait;
//! when its handle is gone it closes the server and ends.

use std::sync::Arc;
use std::time::Duration;

use domain::command::ServerTransport;
use domain::tool::ServerStatus;
use rpc::{Fault, RequestError};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::auth::stored_token;
use crate::catalog::{list_prompts, list_resources, list_templates, list_tools};
use crate::client::Client;
use crate::connection::{Connection, ServerError};
use crate::definitions::KeptList;
use crate::era::Era;
use crate::handler::Lists;
use crate::pins::Pins;
use crate::server_state::{Offer, ServerState};
use crate::text::sanitize;

/// Lists are not read more often than this, however often a server says that they changed.
const LIST_INTERVAL: Duration = Duration::from_millis(200);

/// A subscription lasts as long as the connection.
const SUBSCRIPTION_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);
const RESUBSCRIBE_WAIT: Duration = Duration::from_secs(5);

const MAX_INSTRUCTIONS_LENGTH: usize = 4 << 10;

pub(crate) enum LifecycleCommand {
    Start,
    /// Another attempt to reach a server that was away. It stays failed until it answers.
    Retry,
    Stop(oneshot::Sender<()>),
}

/// A server that crashes more often in a row is left to the user.
const MAX_RESTARTS: u32 = 5;
const MAX_RESTART_WAIT: Duration = Duration::from_secs(60);
/// A server that ran so long is stable: a later crash counts as its first.
const STABLE_AFTER: Duration = Duration::from_secs(120);

/// The longest wait between two attempts to reach a server that is away.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);

/// How often a server that requires a login looks for one.
const LOGIN_POLL: Duration = Duration::from_secs(1);

/// Why a run ended.
enum RunEnd {
    /// It did not start, or requires a login: only the user can help.
    Failed,
    /// Nothing answers at its address.
    Unreachable,
    /// It had been running.
    Crashed,
    Stopped(oneshot::Sender<()>),
    Abandoned,
}

pub(crate) async fn run_server_task(state: Arc<ServerState>, mut commands: mpsc::Receiver<LifecycleCommand>) {
    let mut pins = Pins::of_kept(&state.kept());
    let (mut crashes, mut failed_attempts) = (0, 0);
    let mut next = commands.recv().await;
    while let Some(command) = next {
        let begun = Instant::now();
        let end = match command {
            LifecycleCommand::Start => {
                state.set_status(ServerStatus::Starting, None);
                failed_attempts = 0;
                run_once(&state, &mut commands, &mut pins).await
            }
            LifecycleCommand::Retry => run_once(&state, &mut commands, &mut pins).await,
            LifecycleCommand::Stop(done) => RunEnd::Stopped(done),
        };
        let done = match end {
            RunEnd::Failed => {
                next = wait_for_command_or_login(&state, &mut commands).await;
                continue;
            }
            RunEnd::Unreachable => {
                failed_attempts += 1;
                next = wait_for_retry(&state, &mut commands, failed_attempts).await;
                continue;
            }
            RunEnd::Crashed => {
                crashes = if begun.elapsed() > STABLE_AFTER { 1 } else { crashes + 1 };
                next = wait_for_restart(&state, &mut commands, &mut crashes).await;
                continue;
            }
            RunEnd::Stopped(done) => done,
            RunEnd::Abandoned => return,
        };
        // A stop by the user accepts changed definitions after the next start.
        pins = Pins::default();
        state.keep(KeptList::default());
        if state.status() != ServerStatus::Disabled {
            state.set_status(ServerStatus::Stopped, None);
        }
        let _ = done.send(());
        crashes = 0;
        next = commands.recv().await;
    }
}

/// Waits before a crashed server is started again, longer each time. A command of the user ends the wait.
async fn wait_for_restart(
    state: &ServerState,
    commands: &mut mpsc::Receiver<LifecycleCommand>,
    crashes: &mut u32,
) -> Option<LifecycleCommand> {
    let reason = state.server().error.unwrap_or_default();
    let wait = if *crashes > MAX_RESTARTS {
        let plan = format!("It crashed {crashes} times in a row. Start it again when its problem is solved.");
        state.set_status(ServerStatus::Failed, Some(format!("{reason} {plan}").trim().to_owned()));
        None
    } else {
        let wait = state.options.restart_wait.saturating_mul(1 << (*crashes - 1)).min(MAX_RESTART_WAIT);
        let plan = format!("It is started again in {} s.", wait.as_secs_f64().ceil());
        state.set_status(ServerStatus::Failed, Some(format!("{reason} {plan}").trim().to_owned()));
        Some(wait)
    };
    tokio::select! {
        biased;
        command = commands.recv() => {
            *crashes = 0;
            command
        }
        () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => Some(LifecycleCommand::Start),
    }
}

/// Waits before a server that is away is tried again, longer each time. A command of the user ends the wait.
async fn wait_for_retry(
    state: &ServerState,
    commands: &mut mpsc::Receiver<LifecycleCommand>,
    failed_attempts: u32,
) -> Option<LifecycleCommand> {
    let doublings = (failed_attempts - 1).min(16);
    let wait = state.options.restart_wait.saturating_mul(1 << doublings).min(MAX_RETRY_WAIT);
    tokio::select! {
        biased;
        command = commands.recv() => command,
        () = tokio::time::sleep(wait) => Some(LifecycleCommand::Retry),
    }
}

/// The next command. A server that requires a login is started again when another process has logged in to it.
async fn wait_for_command_or_login(
    state: &ServerState,
    commands: &mut mpsc::Receiver<LifecycleCommand>,
) -> Option<LifecycleCommand> {
    let waits = state.status() == ServerStatus::RequiresAuth;
    let Some(logins) = state.options.logins.as_ref().filter(|_| waits) else { return commands.recv().await };
    let Ok(ServerTransport::Http { url, .. }) = (state.config.lookup)().await else {
        return commands.recv().await;
    };
    let (mut looked_at, before) = (logins.changed_at(), stored_token(&url, logins.as_ref()));
    loop {
        tokio::select! {
            biased;
            command = commands.recv() => return command,
            () = tokio::time::sleep(LOGIN_POLL) => {}
        }
        let changed_at = logins.changed_at();
        if std::mem::replace(&mut looked_at, changed_at) != changed_at {
            let now = stored_token(&url, logins.as_ref());
            if now.is_some() && now != before {
                return Some(LifecycleCommand::Start);
            }
        }
    }
}

async fn run_once(
    state: &ServerState,
    commands: &mut mpsc::Receiver<LifecycleCommand>,
    pins: &mut Pins,
) -> RunEnd {
    if !state.is_known() {
        state.keep(KeptList::default());
    }
    let opened = tokio::select! {
        biased;
        ending = wait_for_stop(commands) => return ending,
        opened = open(state) => opened,
    };
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => {
            state.set_status(error.status, Some(error.message));
            return RunEnd::Failed;
        }
    };
    let outcome = tokio::select! {
        biased;
        ending = wait_for_stop(commands) => Err(ending),
        error = serve(state, &connection, pins) => Ok(error),
    };
    match outcome {
        Err(ending) => {
            state.set_status(ServerStatus::Stopping, None);
            connection.close().await;
            ending
        }
        Ok(error) => {
            if error.is_probed_away {
                connection.close().await;
                return Box::pin(run_once(state, commands, pins)).await;
            }
            end_run(state, connection, error).await
        }
    }
}

/// Shows why a run ended, and says what follows.
async fn end_run(state: &ServerState, connection: Connection, error: ServerError) -> RunEnd {
    let exit = connection.exit_report().await;
    let retry = if error.is_unreachable { "It is tried again until it answers." } else { "" };
    let message = [error.message.as_str(), &exit, retry];
    let message: Vec<&str> = message.into_iter().filter(|text| !text.is_empty()).collect();
    let was_running = state.status() == ServerStatus::Running;
    // Calls fail and nothing is offered before the rest of its tree is gone.
    state.set_status(error.status, Some(message.join(" ")));
    connection.close().await;
    let has_failed = error.status == ServerStatus::Failed;
    match (was_running, error.is_unreachable) {
        (true, _) if has_failed => RunEnd::Crashed,
        (false, true) if has_failed => RunEnd::Unreachable,
        (true | false, true | false) => RunEnd::Failed,
    }
}

/// Resolves with a stop command, or when the supervisor is gone.
async fn wait_for_stop(commands: &mut mpsc::Receiver<LifecycleCommand>) -> RunEnd {
    loop {
        match commands.recv().await {
            Some(LifecycleCommand::Start | LifecycleCommand::Retry) => {}
            Some(LifecycleCommand::Stop(done)) => return RunEnd::Stopped(done),
            None => return RunEnd::Abandoned,
        }
    }
}

async fn open(state: &ServerState) -> Result<Connection, ServerError> {
    if let Some(refused) = &state.refused {
        return Err(ServerError::failed(refused));
    }
    let deadline = state.options.start_timeout;
    let late =
        |_| Err(ServerError::failed(format!("It could not be started within {} s.", deadline.as_secs())));
    tokio::time::timeout(deadline, Connection::open(state)).await.unwrap_or_else(late)
}

/// Makes the server ready and follows its changes until it is gone.
async fn serve(state: &ServerState, connection: &Connection, pins: &mut Pins) -> ServerError {
    let client = match prepare(state, connection, pins).await {
        Ok(client) => client,
        Err(error) => return error,
    };
    tokio::select! {
        () = connection.ended() => ServerError::failed(""),
        () = connection.login_required() => connection.refusal_error(),
        error = refresh_lists(state, connection, &client, pins) => error,
        () = subscribe(&client) => ServerError::failed(""),
    }
}

async fn prepare(
    state: &ServerState,
    connection: &Connection,
    pins: &mut Pins,
) -> Result<Client, ServerError> {
    let (name, deadline) = (state.config.name.as_str(), state.options.start_timeout);
    let (client, instructions) = connection.negotiate(deadline).await?;
    let (tools, prompts, resources, templates) = tokio::join!(
        list_tools(&client, name, deadline),
        list_prompts(&client, name, deadline),
        list_resources(&client, name, deadline),
        list_templates(&client, name, deadline)
    );
    let tools = tools.map_err(|problem| match connection.is_refused() {
        true => connection.refusal_error(),
        false => ServerError { is_unreachable: connection.is_unreachable(), ..ServerError::failed(problem) },
    })?;
    let (admitted, withheld) = pins.check_tools(tools.definitions);
    connection.use_param_headers(&admitted);
    let instructions = instructions.map(|text| sanitize(&text, MAX_INSTRUCTIONS_LENGTH));
    let instructions = pins.check_instructions(instructions);
    let mut offer = Offer { withheld, notes: tools.notes, prompts, resources, templates, ..Offer::default() };
    let has_resources = offer.has_resources();
    let has_handshake = client.era() == Era::Handshake;
    let (tools, said) = (admitted.clone(), instructions.clone());
    state.keep(KeptList { tools, instructions: said, has_resources, has_handshake });
    (offer.tools, offer.instructions) = (admitted, instructions);
    state.set_running(client.clone(), offer, connection.has_login());
    Ok(client)
}

/// Reads lists again when the server says that they changed. Never ends by itself.
async fn refresh_lists(
    state: &ServerState,
    connection: &Connection,
    client: &Client,
    pins: &mut Pins,
) -> ServerError {
    let (name, deadline) = (state.config.name.as_str(), state.options.start_timeout);
    loop {
        let lists = connection.changed.next().await;
        if lists.has(Lists::TOOLS) {
            match list_tools(client, name, deadline).await {
                Ok(tools) => {
                    let (admitted, withheld) = pins.check_tools(tools.definitions);
                    connection.use_param_headers(&admitted);
                    state.keep(KeptList { tools: admitted.clone(), ..state.kept() });
                    state.update(|offer| {
                        (offer.tools, offer.withheld, offer.notes) = (admitted, withheld, tools.notes);
                    });
                }
                Err(problem) => {
                    tracing::warn!(server = name, problem, "the changed tools could not be listed")
                }
            }
        }
        if lists.has(Lists::PROMPTS) {
            let prompts = list_prompts(client, name, deadline).await;
            state.update(|offer| offer.prompts = prompts);
        }
        if lists.has(Lists::RESOURCES) {
            let (resources, templates) =
                tokio::join!(list_resources(client, name, deadline), list_templates(client, name, deadline));
            let has_resources = !resources.is_empty() || !templates.is_empty();
            state.keep(KeptList { has_resources, ..state.kept() });
            state.update(|offer| (offer.resources, offer.templates) = (resources, templates));
        }
        tokio::time::sleep(LIST_INTERVAL).await;
    }
}

/// In the stateless era a server tells of changed lists only while it is asked to. Never ends by itself.
async fn subscribe(client: &Client) {
    if client.era() != Era::Stateless {
        return std::future::pending().await;
    }
    let lists = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    loop {
        let params = client.params(json!({"notifications": lists}));
        match client.outgoing.request("subscriptions/listen", &params, SUBSCRIPTION_TIMEOUT).await {
            Err(RequestError::Fault(fault)) if fault.code == Fault::METHOD_NOT_FOUND => {
                return std::future::pending().await;
            }
            // Ended or broken: it is asked again.
            Ok(_) | Err(_) => tokio::time::sleep(RESUBSCRIBE_WAIT).await,
        }
    }
}
