//! The client's side of the protocol: what a server may ask of us and tell us.
//!
//! Invariant: it never blocks and never trusts; a request it does not know is refused at once.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rpc::{Handler, Params, Responder};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::calls::Calls;
use crate::form;
use crate::read_cache::ReadCache;
use crate::sampling;
use crate::text::{Secrets, single_line};
use crate::wire::{LogMessage, Progress, UpdatedResource};

const MAX_LOG_LENGTH: usize = 500;

/// A list is not read again more often, however soon its server says that it is old.
const MIN_FRESH: Duration = Duration::from_secs(5);
/// However long a server says.
const MAX_FRESH: Duration = Duration::from_secs(24 * 3600);

/// Which lists have to be read again, and which will have to.
#[derive(Default)]
pub(crate) struct ChangedLists {
    lists: AtomicU8,
    notify: Notify,
    /// When each list is old, where its server said (`ttlMs`).
    old_at: Mutex<[Option<Instant>; 3]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lists(u8);

impl Lists {
    pub(crate) const TOOLS: Lists = Lists(1);
    pub(crate) const PROMPTS: Lists = Lists(2);
    pub(crate) const RESOURCES: Lists = Lists(4);
    const ALL: [Lists; 3] = [Lists::TOOLS, Lists::PROMPTS, Lists::RESOURCES];

    pub(crate) fn has(self, list: Lists) -> bool {
        self.0 & list.0 != 0
    }
}

impl ChangedLists {
    pub(crate) fn mark(&self, list: Lists) {
        self.lists.fetch_or(list.0, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// A list was read and counts as fresh for so long.
    pub(crate) fn expire_after(&self, list: Lists, fresh_for: Duration) {
        let at = Instant::now() + fresh_for.clamp(MIN_FRESH, MAX_FRESH);
        for (known, old_at) in Lists::ALL.into_iter().zip(self.old_at().iter_mut()) {
            if known == list {
                *old_at = Some(at);
            }
        }
    }

    /// Somebody uses the lists: those that are old are read again. Nothing is read for nobody.
    pub(crate) fn refresh_old(&self) {
        self.refresh_old_at(Instant::now());
    }

    fn refresh_old_at(&self, now: Instant) {
        let mut old = Vec::new();
        for (list, old_at) in Lists::ALL.into_iter().zip(self.old_at().iter_mut()) {
            old.extend(old_at.take_if(|at| *at <= now).map(|_| list));
        }
        old.into_iter().for_each(|list| self.mark(list));
    }

    fn old_at(&self) -> MutexGuard<'_, [Option<Instant>; 3]> {
        self.old_at.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub read_cache: Arc<ReadCache>,
    pub secrets: Arc<Secrets>,
    /// The user allowed the server to use their model.
    pub sampling: bool,
}

impl Handler for ServerMessageHandler {
    fn on_request(&mut self, method: &str, params: Params<'_>, responder: Responder) {
        match method {
            "ping" => responder.succeed(&json!({})),
            "roots/list" => responder.succeed(&self.roots),
            "elicitation/create" => form::handle_elicitation(&self.server, &self.calls, params, responder),
            "sampling/createMessage" => {
                sampling::handle_sampling(&self.server, self.sampling, &self.calls, params, responder);
            }
            _ => responder.method_not_found(method),
        }
    }

    fn on_notification(&mut self, method: &str, params: Params<'_>) {
        match method {
            "notifications/tools/list_changed" => self.changed.mark(Lists::TOOLS),
            "notifications/prompts/list_changed" => self.changed.mark(Lists::PROMPTS),
            "notifications/resources/list_changed" => {
                self.read_cache.forget(None);
                self.changed.mark(Lists::RESOURCES);
            }
            "notifications/resources/updated" => {
                let updated = params.decode::<UpdatedResource>().ok();
                self.read_cache.forget(updated.as_ref().map(|updated| updated.uri.as_str()));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_old_list_is_read_again_when_it_is_used_and_not_before() {
        let (changed, begun) = (ChangedLists::default(), Instant::now());
        changed.expire_after(Lists::TOOLS, Duration::from_secs(60));
        changed.expire_after(Lists::PROMPTS, Duration::ZERO);
        changed.refresh_old_at(begun);
        assert_eq!(changed.lists.load(Ordering::Relaxed), 0, "nothing is old yet");
        changed.refresh_old_at(begun + Duration::from_secs(30));
        assert_eq!(changed.next().await, Lists::PROMPTS);
        changed.refresh_old_at(begun + Duration::from_secs(40));
        assert_eq!(changed.lists.load(Ordering::Relaxed), 0, "it is being read");
        changed.refresh_old_at(begun + Duration::from_secs(90));
        assert_eq!(changed.next().await, Lists::TOOLS);
    }
}
