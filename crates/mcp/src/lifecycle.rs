//! The lifecycle of one server: a task that starts it, follows its changes, stops it and reports how it ended.
//!
//! Invariants: one task, so that a stop never races a start; a stop command ends every wait;
//! when its handle is gone it closes the server and ends.

use std::sync::Arc;
use std::time::Duration;

use domain::tool::ServerStatus;
use tokio::sync::{mpsc, oneshot};

use crate::catalog::{list_prompts, list_resources, list_tools};
use crate::client::Client;
use crate::connection::{Connection, ServerError};
use crate::handler::Lists;
use crate::pins::Pins;
use crate::server_state::{Offer, ServerState};
use crate::text::sanitize;

/// Lists are not read more often than this, however often a server says that they changed.
const LIST_INTERVAL: Duration = Duration::from_millis(200);

const MAX_INSTRUCTIONS_LENGTH: usize = 4 << 10;

pub(crate) enum LifecycleCommand {
    Start,
    Stop(oneshot::Sender<()>),
}

/// Why a run ended.
enum RunEnd {
    ByItself,
    Stopped(oneshot::Sender<()>),
    Abandoned,
}

pub(crate) async fn run_server_task(state: Arc<ServerState>, mut commands: mpsc::Receiver<LifecycleCommand>) {
    let mut pins = Pins::default();
    while let Some(command) = commands.recv().await {
        let done = match command {
            LifecycleCommand::Start => match run_once(&state, &mut commands, &mut pins).await {
                RunEnd::ByItself => continue,
                RunEnd::Stopped(done) => done,
                RunEnd::Abandoned => return,
            },
            LifecycleCommand::Stop(done) => done,
        };
        // A stop by the user accepts changed definitions after the next start.
        pins = Pins::default();
        if state.status() != ServerStatus::Disabled {
            state.set_status(ServerStatus::Stopped, None);
        }
        let _ = done.send(());
    }
}

async fn run_once(
    state: &ServerState,
    commands: &mut mpsc::Receiver<LifecycleCommand>,
    pins: &mut Pins,
) -> RunEnd {
    state.set_status(ServerStatus::Starting, None);
    let opened = tokio::select! {
        biased;
        ending = wait_for_stop(commands) => return ending,
        opened = open(state) => opened,
    };
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => {
            state.set_status(error.status, Some(error.message));
            return RunEnd::ByItself;
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
            let exit = connection.exit_report().await;
            // Calls fail and nothing is offered before the rest of its tree is gone.
            let message =
                [error.message, exit].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
            state.set_status(error.status, Some(message.join(" ")));
            connection.close().await;
            RunEnd::ByItself
        }
    }
}

/// Resolves with a stop command, or when the supervisor is gone.
async fn wait_for_stop(commands: &mut mpsc::Receiver<LifecycleCommand>) -> RunEnd {
    loop {
        match commands.recv().await {
            Some(LifecycleCommand::Start) => {}
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
        error = refresh_lists(state, connection, &client, pins) => error,
    }
}

async fn prepare(
    state: &ServerState,
    connection: &Connection,
    pins: &mut Pins,
) -> Result<Client, ServerError> {
    let (name, deadline) = (state.config.name.as_str(), state.options.start_timeout);
    let (client, instructions) = connection.initialize(deadline).await?;
    let (tools, prompts, resources) = tokio::join!(
        list_tools(&client, name, deadline),
        list_prompts(&client, name, deadline),
        list_resources(&client, name, deadline)
    );
    let tools = tools.map_err(ServerError::failed)?;
    let (admitted, withheld) = pins.check_tools(tools.definitions);
    let instructions =
        pins.check_instructions(instructions).map(|text| sanitize(&text, MAX_INSTRUCTIONS_LENGTH));
    let offer = Offer { tools: admitted, withheld, notes: tools.notes, prompts, resources, instructions };
    state.set_running(client.clone(), offer);
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
            let resources = list_resources(client, name, deadline).await;
            state.update(|offer| offer.resources = resources);
        }
        tokio::time::sleep(LIST_INTERVAL).await;
    }
}
