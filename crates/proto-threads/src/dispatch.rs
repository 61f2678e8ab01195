//! The table: the ten methods and their handlers.
//!
//! Invariants: every request is answered; the first call decides which side drives; where that is fixed, the methods
//! of the other reading are unknown.

use rpc::{Fault, Inbound, Responder};
use serde::de::DeserializeOwned;

use crate::server::{Driver, Server};
use crate::wire::method;
use crate::{agent_drives, editor_drives, files};

pub(crate) async fn handle_message(server: &mut Server, message: Inbound) {
    let Inbound { method, params, responder } = message;
    let Some(responder) = responder else {
        tracing::debug!(method, "a call without an id");
        return;
    };
    let Some(driver) = driver_for(&method) else { return responder.method_not_found(&method) };
    if server.options.driver.is_some_and(|fixed| fixed != driver) {
        return responder.method_not_found(&method);
    }
    server.driver.get_or_insert(driver);
    let params = params.as_deref().map_or("null", |raw| raw.get());
    match method.as_str() {
        method::GET_THREADS => editor_drives::get_threads(server, responder).await,
        method::CREATE_THREAD => editor_drives::create_thread(server, responder).await,
        method::OPEN_THREAD => with_params(server, params, responder, editor_drives::open_thread).await,
        method::GET_THREAD_ENTRIES => {
            with_params(server, params, responder, editor_drives::get_thread_entries).await;
        }
        method::SEND_MESSAGE => with_params(server, params, responder, editor_drives::send_message).await,
        method::STREAM_MESSAGE_CHUNK => {
            with_params(server, params, responder, agent_drives::stream_message_chunk).await;
        }
        method::READ_TEXT_FILE => with_params(server, params, responder, files::read_text_file).await,
        method::READ_BINARY_FILE => with_params(server, params, responder, files::read_binary_file).await,
        method::STAT => with_params(server, params, responder, files::stat).await,
        method::GLOB_SEARCH => with_params(server, params, responder, files::glob_search).await,
        unknown => responder.method_not_found(unknown),
    }
}

/// The side that drives when a client calls this method; `None`: there is no such method.
fn driver_for(method: &str) -> Option<Driver> {
    match method {
        method::GET_THREADS
        | method::CREATE_THREAD
        | method::OPEN_THREAD
        | method::GET_THREAD_ENTRIES
        | method::SEND_MESSAGE => Some(Driver::Editor),
        method::STREAM_MESSAGE_CHUNK
        | method::READ_TEXT_FILE
        | method::READ_BINARY_FILE
        | method::STAT
        | method::GLOB_SEARCH => Some(Driver::Agent),
        _ => None,
    }
}

async fn with_params<T: DeserializeOwned>(
    server: &mut Server,
    params: &str,
    responder: Responder,
    then: impl AsyncFnOnce(&mut Server, T, Responder),
) {
    match serde_json::from_str(params) {
        Ok(params) => then(server, params, responder).await,
        Err(error) => responder.fail(Fault::invalid_params(error)),
    }
}
