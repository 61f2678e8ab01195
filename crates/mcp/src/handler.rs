//! The client's side of the protocol: what a server may ask of us and tell us.
//!
//! Invariant: it never blocks and never trusts; a request it does not know is refused at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rpc::{Fault, Handler, Params, Responder};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::calls::Calls;
use crate::form;
use crate::text::{Secrets, single_line};
use crate::wire::{LogMessage, Progress};

const MAX_LOG_LENGTH: usize = 500;

/// Which lists have to be read again.
#[derive(Default)]
pub(crate) struct ChangedLists {
    lists: AtomicU8,
    notify: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lists(u8);

impl Lists {
    pub(crate) const TOOLS: Lists = Lists(1);
    pub(crate) const PROMPTS: Lists = Lists(2);
    pub(crate) const RESOURCES: Lists = Lists(4);

    pub(crate) fn has(self, list: Lists) -> bool {
        self.0 & list.0 != 0
    }
}

impl ChangedLists {
    pub(crate) fn mark(&self, list: Lists) {
        self.lists.fetch_or(list.0, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// Resolves with what was marked since the last time.
    pub(crate) async fn next(&self) -> Lists {
        loop {
            let lists = self.lists.swap(0, Ordering::AcqRel);
            if lists != 0 {
                return Lists(lists);
            }
            self.notify.notified().await;
        }
    }
}

pub(crate) struct ServerMessageHandler {
    pub server: String,
    pub roots: Value,
    pub calls: Arc<Calls>,
    pub changed: Arc<ChangedLists>,
    pub secrets: Arc<Secrets>,
}

impl Handler for ServerMessageHandler {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        match method {
            "ping" => responder.succeed(&json!({})),
            "roots/list" => responder.succeed(&self.roots),
            "elicitation/create" => form::handle_elicitation(&self.server, &self.calls, params, responder),
            "sampling/createMessage" => responder.fail(Fault::new(
                Fault::METHOD_NOT_FOUND,
                "This client lends its model to no server: sampling is not supported.",
            )),
            _ => responder.method_not_found(method),
        }
    }

    fn on_notification(&mut self, method: &str, params: Params<'_>) {
        match method {
            "notifications/tools/list_changed" => self.changed.mark(Lists::TOOLS),
            "notifications/prompts/list_changed" => self.changed.mark(Lists::PROMPTS),
            "notifications/resources/list_changed" => self.changed.mark(Lists::RESOURCES),
            "notifications/progress" => {
                if let Ok(progress) = params.decode::<Progress>() {
                    self.calls.progress(&progress);
                }
            }
            "notifications/message" => self.log(params),
            _ => {}
        }
    }
}

impl ServerMessageHandler {
    /// Shows a message of the server with its running call, and logs it.
    fn log(&self, params: Params<'_>) {
        let Ok(LogMessage { level, data }) = params.decode() else { return };
        let server = self.server.as_str();
        let data = data.as_deref().map_or("", RawValue::get);
        let text = serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned());
        let said = self.secrets.mask(&single_line(&text, MAX_LOG_LENGTH));
        if level != "debug" && !said.is_empty() {
            self.calls.show_log(&single_line(&level, 20), &said);
        }
        // However loud a server is, its words are details to us.
        match level.as_str() {
            "warning" | "error" | "critical" | "alert" | "emergency" => tracing::info!(server, said),
            _ => tracing::debug!(server, said),
        }
    }
}
