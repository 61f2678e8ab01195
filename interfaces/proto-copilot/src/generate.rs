//! `generate`: a specification in, code out, chunk by chunk. Calls a model only for a wish that is not understood without one.
//!
//! Invariants: the chunks in order of their indexes, from 0 without gaps, are exactly `result.code`, and only the last
//! is `done`; the same params give the same bytes where no model is asked.

use apiui::customize::{Outcome, wish};
use apiui::plan::{Plan, plan};
use apiui::print::{component_count, plan_of, print};
use rpc::{Fault, NotSent, Responder};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::customize::servers;
use crate::from_wire;
use crate::model;
use crate::server::{Job, Server};
use crate::task::Task;
use crate::to_wire;
use crate::wire::{CustomizeResult, GenerateParams, GenerateResult, StreamChunk, Tools, method};

/// Chunks that may be printed ahead of the host.
const CHUNKS_AHEAD: usize = 4;

/// What is printed, and what is told beside it.
struct Prepared {
    plan: Plan,
    assumptions: Vec<String>,
    /// A wish that needs a model.
    wish: Option<Task>,
}

pub(crate) async fn generate(
    server: &Server,
    job: &Job,
    params: Option<Box<RawValue>>,
    responder: Responder,
) {
    let made = tokio::time::timeout_at(job.until, make(server, job, params, &responder)).await;
    let late = || {
        let seconds = server.limits.generate.as_secs();
        Err(to_wire::generation_failed(format!(
            "The interface was not done within {seconds} s. Send a smaller specification, and read the answers as they come."
        )))
    };
    responder.respond(made.unwrap_or_else(|_| late()));
}

async fn make(
    server: &Server,
    job: &Job,
    params: Option<Box<RawValue>>,
    responder: &Responder,
) -> Result<GenerateResult, Fault> {
    let held = job.hold();
    let reading = tokio::task::spawn_blocking(move || {
        let prepared = prepare(params.as_deref());
        drop(held);
        prepared
    });
    let mut prepared = reading.await.map_err(|error| broken(&error))??;
    if let Some(wish) = prepared.wish.take() {
        match model::change(server, job, wish).await {
            Ok(CustomizeResult::NeedsTool { tool_call, .. }) => {
                return Ok(GenerateResult::NeedsTool { code: (), tool_call });
            }
            outcome => take_changed(&mut prepared, outcome),
        }
    }
    stream(server, job, prepared, responder).await
}

/// A wish that cannot be fulfilled does not stand in the way of the interface: it is said.
fn take_changed(prepared: &mut Prepared, outcome: Result<CustomizeResult, Fault>) {
    match outcome {
        Ok(CustomizeResult::Changed { code, description, assumptions, .. }) => match plan_of(&code) {
            Ok(plan) => {
                prepared.plan = plan;
                prepared.assumptions.push(description);
                prepared.assumptions.extend(assumptions);
            }
            Err(reason) => prepared.assumptions.push(unfulfilled(&reason.to_string())),
        },
        Ok(CustomizeResult::Clarify { question, .. }) => prepared.assumptions.push(unfulfilled(&question)),
        Ok(CustomizeResult::NeedsTool { .. }) => {}
        Err(fault) => prepared.assumptions.push(unfulfilled(&fault.message)),
    }
}

fn unfulfilled(reason: &str) -> String {
    format!("The change could not be made: {reason}")
}

fn broken(error: &tokio::task::JoinError) -> Fault {
    tracing::error!(%error, "generation broke");
    to_wire::generation_failed(
        "The interface could not be generated. This is a bug in Dragoman; please report the specification.",
    )
}

async fn stream(
    server: &Server,
    job: &Job,
    prepared: Prepared,
    responder: &Responder,
) -> Result<GenerateResult, Fault> {
    let (sender, mut chunks) = mpsc::channel(CHUNKS_AHEAD);
    let held = job.hold();
    let printing = tokio::task::spawn_blocking(move || {
        let told = print_code(&prepared.plan, &sender);
        drop(held);
        (told, prepared.assumptions)
    });
    let (mut code, mut index) = (String::new(), 0);
    let mut last: Option<String> = None;
    while let Some(chunk) = chunks.recv().await {
        if let Some(before) = last.replace(chunk) {
            send(server, responder, &before, index, false).await?;
            code.push_str(&before);
            index += 1;
        }
    }
    let ((component_count, description), assumptions) = printing.await.map_err(|error| broken(&error))?;
    if let Some(chunk) = last {
        send(server, responder, &chunk, index, true).await?;
        code.push_str(&chunk);
    }
    Ok(GenerateResult::Generated { code, component_count, description, assumptions })
}

/// Reads and plans, and does what is understood of the wish; on a thread of its own.
fn prepare(params: Option<&RawValue>) -> Result<Prepared, Fault> {
    let params: GenerateParams<'_> = from_wire::decode(params)?;
    from_wire::format(&params)?;
    let options = from_wire::options(params.theme.as_deref(), params.options);
    let reading = from_wire::spec(params.spec)?;
    let mut plan = plan(&reading.spec, &options);
    drop(reading.spec);
    let mut assumptions = std::mem::take(&mut plan.assumptions);
    assumptions.extend(reading.warnings.iter().map(ToString::to_string));
    let mut prepared = Prepared { plan, assumptions, wish: None };
    if let Some(prompt) = params.prompt.filter(|prompt| !prompt.trim().is_empty()) {
        let tools = Tools { offered: params.tools, results: params.tool_results };
        begin_wish(&mut prepared, prompt, tools);
    }
    Ok(prepared)
}

fn begin_wish(prepared: &mut Prepared, prompt: String, tools: Tools) {
    match wish(&prepared.plan, &prompt, &[]) {
        Outcome::Edited { plan, description, assumptions, .. } => {
            prepared.plan = *plan;
            prepared.assumptions.push(description);
            prepared.assumptions.extend(assumptions);
        }
        Outcome::Clarify { question, .. } => prepared.assumptions.push(unfulfilled(&question)),
        Outcome::Refused(refusal) => {
            let servers = servers(Some(&prepared.plan), "", None);
            let plan = Some(Box::new(prepared.plan.clone()));
            let no_model_fault = to_wire::refused(&refusal);
            let (code, history) = (String::new(), Vec::new());
            prepared.wish = Some(Task { code, plan, prompt, history, servers, tools, no_model_fault });
        }
    }
}

/// Prints, and tells the number of components and what the interface is. Stops when the receiver of the chunks is gone.
fn print_code(plan: &Plan, chunks: &mpsc::Sender<String>) -> (usize, String) {
    for chunk in print(plan) {
        if chunks.blocking_send(chunk).is_err() {
            break;
        }
    }
    (component_count(plan), apiui::describe(plan))
}

/// Queues a chunk, waiting while the host is behind.
async fn send(
    server: &Server,
    responder: &Responder,
    chunk: &str,
    index: usize,
    done: bool,
) -> Result<(), Fault> {
    if !server.streams() {
        return Ok(());
    }
    let params = StreamChunk { request_id: responder.id(), chunk, done, index };
    loop {
        match server.outgoing.notify(method::STREAM_CHUNK, &params) {
            Ok(()) => return Ok(()),
            Err(NotSent::Full) => {
                let closed = |_| to_wire::generation_failed("The connection ended.");
                server.outgoing.ready().await.map_err(closed)?;
            }
            Err(error) => return Err(to_wire::generation_failed(format!("A chunk was not sent: {error}."))),
        }
    }
}
