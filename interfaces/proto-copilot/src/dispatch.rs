//! The table: each method of the contract and its handler.
//!
//! Invariant: every request is answered, unknown ones at once with -32601. `initialize` is answered in its place among
//! the messages, so that what follows sees what it said; everything else runs beside the reader.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rpc::{Fault, Responder};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::from_wire;
use crate::joining::{self, Join};
use crate::server::{Job, Server};
use crate::task::not_done_in_time;
use crate::to_wire;
use crate::wire::{CustomizeResult, InitializeParams, InitializeResult, ServerCapabilities, method};
use crate::{chat, customize, generate};

pub(crate) fn handle_message(
    server: &Arc<Server>,
    method: &str,
    params: Option<&RawValue>,
    bytes: OwnedSemaphorePermit,
    responder: Responder,
) {
    let since = Instant::now();
    let server = server.clone();
    match method {
        method::INITIALIZE => responder.respond(initialize(&server, params)),
        method::GENERATE => {
            let params = params.map(ToOwned::to_owned);
            tokio::spawn(async move {
                let time_limit = server.limits.generate;
                if let Some((job, responder)) =
                    admit_or_fail(&server, bytes, since, time_limit, responder).await
                {
                    generate::generate(&server, &job, params, responder).await;
                }
            });
        }
        method::CUSTOMIZE => {
            let params = params.map(ToOwned::to_owned);
            tokio::spawn(async move {
                let answer = customize_or_join(&server, bytes, since, params).await;
                responder.respond(answer);
            });
        }
        method::CHAT => {
            let params = params.map(ToOwned::to_owned);
            tokio::spawn(async move { responder.respond(chat::chat(&server, bytes, since, params).await) });
        }
        _ => responder.method_not_found(method),
    }
}

/// Does the work of a wish, or waits for the same wish that is already being worked on.
async fn customize_or_join(
    server: &Server,
    bytes: OwnedSemaphorePermit,
    since: Instant,
    params: Option<Box<RawValue>>,
) -> Result<CustomizeResult, Fault> {
    let until = since + server.limits.customize;
    match server.joined.join(params.as_deref().map_or("", RawValue::get)) {
        Join::Repeated(answer) => {
            let waited = tokio::time::timeout_at(until, joining::wait(answer)).await;
            waited.ok().flatten().unwrap_or_else(|| Err(not_done_in_time()))
        }
        Join::First(first) => {
            let answer = match server.admit(bytes, since, server.limits.customize).await {
                Some(job) => customize::customize(server, &job, params).await,
                None => Err(to_wire::rate_limited()),
            };
            first.publish(answer.clone());
            answer
        }
    }
}

/// Admits a request, or answers that no slot was free in time.
async fn admit_or_fail(
    server: &Server,
    bytes: OwnedSemaphorePermit,
    since: Instant,
    time_limit: Duration,
    responder: Responder,
) -> Option<(Job, Responder)> {
    match server.admit(bytes, since, time_limit).await {
        Some(job) => Some((job, responder)),
        None => {
            responder.fail(to_wire::rate_limited());
            None
        }
    }
}

fn initialize(server: &Server, params: Option<&RawValue>) -> Result<InitializeResult, Fault> {
    let params: InitializeParams = from_wire::decode(params)?;
    let streaming = params.capabilities.and_then(|client| client.streaming).unwrap_or(true);
    server.streaming.store(streaming, Ordering::Relaxed);
    tracing::info!(client = params.client_name, version = params.client_version, "a host connected");
    Ok(InitializeResult {
        server_name: "dragoman",
        server_version: env!("CARGO_PKG_VERSION"),
        capabilities: ServerCapabilities { code_generation: true, customization: true, streaming: true },
    })
}
