//! The life of one server: a task that obeys orders, starts it, follows it and says how it ended.
//!
//! Invariants: one task, so that a stop never races a start; whatever it waits for, an order to stop ends the wait;
//! when its handle is gone it closes the server and ends.

use std::sync::Arc;
use std::time::Duration;

use domain::tool::ServerStatus;
use tokio::sync::{mpsc, oneshot};

use crate::catalog::{list_prompts, list_resources, list_tools};
use crate::client::Client;
use crate::connection::{Connection, Trouble};
use crate::handler::Lists;
use crate::pins::Pins;
use crate::server_state::{Offer, ServerState};
use crate::text::tidy;

/// Lists are not read more often than this, however often a server says that they changed.
const PACE: Duration = Duration::from_millis(200);

const LONGEST_INSTRUCTIONS: usize = 4 << 10;

pub(crate) enum Order {
    Start,
    Stop(oneshot::Sender<()>),
}

/// Why a run ended.
enum Ending {
    ByItself,
    Stopped(oneshot::Sender<()>),
    Abandoned,
}

pub(crate) async fn live(state: Arc<ServerState>, mut orders: mpsc::Receiver<Order>) {
    let mut pins = Pins::default();
    while let Some(order) = orders.recv().await {
        let done = match order {
            Order::Start => match run(&state, &mut orders, &mut pins).await {
                Ending::ByItself => continue,
                Ending::Stopped(done) => done,
                Ending::Abandoned => return,
            },
            Order::Stop(done) => done,
        };
        // A stop is the user's word that what comes next is new.
        pins = Pins::default();
        if state.status() != ServerStatus::Disabled {
            state.show(ServerStatus::Stopped, None);
        }
        let _ = done.send(());
    }
}

async fn run(state: &ServerState, orders: &mut mpsc::Receiver<Order>, pins: &mut Pins) -> Ending {
    state.show(ServerStatus::Starting, None);
    let opened = tokio::select! {
        biased;
        ending = halted(orders) => return ending,
        opened = open(state) => opened,
    };
    let connection = match opened {
        Ok(connection) => connection,
        Err(trouble) => {
            state.show(trouble.status, Some(trouble.message));
            return Ending::ByItself;
        }
    };
    let outcome = tokio::select! {
        biased;
        ending = halted(orders) => Err(ending),
        trouble = serve(state, &connection, pins) => Ok(trouble),
    };
    match outcome {
        Err(ending) => {
            state.show(ServerStatus::Stopping, None);
            connection.close().await;
            ending
        }
        Ok(trouble) => {
            let exit = connection.state().await;
            // Calls fail and nothing is offered before the rest of its tree is gone.
            let message =
                [trouble.message, exit].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
            state.show(trouble.status, Some(message.join(" ")));
            connection.close().await;
            Ending::ByItself
        }
    }
}

/// Resolves with an order to stop, or when nobody can give one any more.
async fn halted(orders: &mut mpsc::Receiver<Order>) -> Ending {
    loop {
        match orders.recv().await {
            Some(Order::Start) => {}
            Some(Order::Stop(done)) => return Ending::Stopped(done),
            None => return Ending::Abandoned,
        }
    }
}

async fn open(state: &ServerState) -> Result<Connection, Trouble> {
    if let Some(refused) = &state.refused {
        return Err(Trouble::failed(refused));
    }
    let deadline = state.options.start_deadline;
    let late = |_| Err(Trouble::failed(format!("It could not be started within {} s.", deadline.as_secs())));
    tokio::time::timeout(deadline, Connection::open(state)).await.unwrap_or_else(late)
}

/// Makes the server ready and follows its changes until it is gone.
async fn serve(state: &ServerState, connection: &Connection, pins: &mut Pins) -> Trouble {
    let client = match prepare(state, connection, pins).await {
        Ok(client) => client,
        Err(trouble) => return trouble,
    };
    tokio::select! {
        () = connection.ended() => Trouble::failed(""),
        trouble = follow(state, connection, &client, pins) => trouble,
    }
}

async fn prepare(state: &ServerState, connection: &Connection, pins: &mut Pins) -> Result<Client, Trouble> {
    let (name, deadline) = (state.config.name.as_str(), state.options.start_deadline);
    let (client, instructions) = connection.initialize(deadline).await?;
    let (tools, prompts, resources) = tokio::join!(
        list_tools(&client, name, deadline),
        list_prompts(&client, name, deadline),
        list_resources(&client, name, deadline)
    );
    let tools = tools.map_err(Trouble::failed)?;
    let (admitted, withheld) = pins.admit(tools.definitions);
    let instructions = pins.admit_instructions(instructions).map(|text| tidy(&text, LONGEST_INSTRUCTIONS));
    let offer = Offer { tools: admitted, withheld, notes: tools.notes, prompts, resources, instructions };
    state.run(client.clone(), offer);
    Ok(client)
}

/// Reads lists again when the server says that they changed. Never ends by itself.
async fn follow(state: &ServerState, connection: &Connection, client: &Client, pins: &mut Pins) -> Trouble {
    let (name, deadline) = (state.config.name.as_str(), state.options.start_deadline);
    loop {
        let lists = connection.stale.next().await;
        if lists.has(Lists::TOOLS) {
            match list_tools(client, name, deadline).await {
                Ok(tools) => {
                    let (admitted, withheld) = pins.admit(tools.definitions);
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
        tokio::time::sleep(PACE).await;
    }
}
