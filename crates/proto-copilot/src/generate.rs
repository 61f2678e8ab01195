//! `generate`: a specification in, code out, chunk by chunk. Never calls a model.
//!
//! Invariants: the chunks in order of their indexes, from 0 without gaps, are exactly `result.code`, and only the last
//! is `done`; the same params give the same bytes.

use apiui::plan::plan;
use apiui::print::{component_count, print};
use rpc::{Fault, NotSent, Responder};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::from_wire;
use crate::serve::{Job, Server};
use crate::to_wire;
use crate::wire::{GenerateParams, GenerateResult, StreamChunk, method};

/// Chunks that may be printed ahead of the host.
const CHUNKS_AHEAD: usize = 4;

/// All of the result but its code.
struct Description {
    component_count: usize,
    description: String,
    assumptions: Vec<String>,
}

pub(crate) async fn generate(
    server: &Server,
    job: &Job,
    params: Option<Box<RawValue>>,
    responder: Responder,
) {
    let made = tokio::time::timeout_at(job.until, stream(server, job, params, &responder)).await;
    let late = || {
        let seconds = server.limits.generate.as_secs();
        Err(to_wire::generation_failed(format!(
            "The interface was not done within {seconds} s. Send a smaller specification, and read the answers as they come."
        )))
    };
    responder.respond(made.unwrap_or_else(|_| late()));
}

async fn stream(
    server: &Server,
    job: &Job,
    params: Option<Box<RawValue>>,
    responder: &Responder,
) -> Result<GenerateResult, Fault> {
    let (sender, mut chunks) = mpsc::channel(CHUNKS_AHEAD);
    let held = job.hold();
    let printing = tokio::task::spawn_blocking(move || {
        let told = generate_code(params.as_deref(), &sender);
        drop(held);
        told
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
    let told = printing.await.map_err(|error| {
        tracing::error!(%error, "generation broke");
        to_wire::generation_failed(
            "The interface could not be generated. This is a bug in Dragoman; please report the specification.",
        )
    })??;
    if let Some(chunk) = last {
        send(server, responder, &chunk, index, true).await?;
        code.push_str(&chunk);
    }
    let Description { component_count, description, assumptions } = told;
    Ok(GenerateResult { code, component_count, description, assumptions })
}

/// Reads, plans and prints, on a thread of its own. Stops when the receiver of the chunks is gone.
fn generate_code(params: Option<&RawValue>, chunks: &mpsc::Sender<String>) -> Result<Description, Fault> {
    let params: GenerateParams<'_> = from_wire::decode(params)?;
    from_wire::format(&params)?;
    let options = from_wire::options(params.theme.as_deref(), params.options);
    let reading = from_wire::spec(params.spec)?;
    let mut plan = plan(&reading.spec, &options);
    drop(reading.spec);
    for chunk in print(&plan) {
        if chunks.blocking_send(chunk).is_err() {
            break;
        }
    }
    let mut assumptions = std::mem::take(&mut plan.assumptions);
    assumptions.extend(reading.warnings.iter().map(ToString::to_string));
    Ok(Description {
        component_count: component_count(&plan),
        description: apiui::describe(&plan),
        assumptions,
    })
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
