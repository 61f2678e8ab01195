//! Calls under way on one connection: where their progress and their forms go, and how long they may take.
//!
//! Invariants: a call ends by its answer, its deadline, a stop or the end of the connection, whichever comes first; in
//! every other case than an answer the server is told (`notifications/cancelled`); time in which a person fills in a
//! form does not count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::CancellationToken;
use domain::tool::ToolContext;
use rpc::RequestError;
use serde_json::Value;
use tokio::sync::watch;

use crate::client::{Client, reason};
use crate::text::line;
use crate::wire::{CallParams, CallResult, Meta, Progress};

/// How often signs of life may start the deadline anew.
const PATIENCE: u32 = 10;

/// Progress is shown at most this often.
const PACE: Duration = Duration::from_millis(100);

/// The peer's own deadline, which ours always precedes.
const FAR: Duration = Duration::from_secs(30 * 24 * 3600);

const LONGEST_PROGRESS: usize = 500;

#[derive(Default)]
pub(crate) struct Calls(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    under_way: BTreeMap<u64, Arc<Call>>,
}

/// One call under way.
pub(crate) struct Call {
    pub context: Arc<dyn ToolContext>,
    /// Cancelled when the call is over.
    pub over: CancellationToken,
    pulse: watch::Sender<Pulse>,
    shown: Mutex<Option<Instant>>,
}

#[derive(Clone, Copy, Default)]
struct Pulse {
    form_open: bool,
    beats: u64,
}

/// How a call ended without a result.
pub(crate) enum Broken {
    Stopped,
    /// A sentence about the server.
    Failed(String),
}

/// Takes the call out of the table when it is over, also when its future is dropped.
struct Entry<'a> {
    calls: &'a Calls,
    number: u64,
    call: Arc<Call>,
}

/// Calls a tool and waits.
pub(crate) async fn call(
    client: &Client,
    tool: &str,
    arguments: &Value,
    context: Arc<dyn ToolContext>,
    stop: &CancellationToken,
    deadline: Duration,
) -> Result<CallResult, Broken> {
    let entry = client.calls.enter(context);
    let params = CallParams { name: tool, arguments, meta: Meta { progress_token: entry.number } };
    let mut request = client.outgoing.request("tools/call", &params, FAR);
    let mut pulse = entry.call.pulse.subscribe();
    let mut all = deadline.saturating_mul(PATIENCE);
    loop {
        let form_open = pulse.borrow_and_update().form_open;
        let began = Instant::now();
        tokio::select! {
            biased;
            reply = &mut request => {
                let failed = |error| Broken::Failed(reason("tools/call", &error, deadline));
                let reply = reply.map_err(failed)?;
                return serde_json::from_str(reply.get()).map_err(|error| failed(RequestError::Unexpected(error)));
            }
            // Dropping the request tells the server.
            () = stop.cancelled() => return Err(Broken::Stopped),
            () = tokio::time::sleep(deadline.min(all)), if !form_open => {
                return Err(Broken::Failed(format!(
                    "It did not answer within {} s; the call was cancelled. A longer time can be set as mcpTimeoutSeconds.",
                    deadline.as_secs_f32()
                )));
            }
            _ = pulse.changed() => if !form_open {
                all = all.saturating_sub(began.elapsed());
            }
        }
    }
}

impl Calls {
    fn enter(&self, context: Arc<dyn ToolContext>) -> Entry<'_> {
        let call = Arc::new(Call {
            context,
            over: CancellationToken::new(),
            pulse: watch::Sender::default(),
            shown: Mutex::default(),
        });
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.under_way.insert(number, call.clone());
        Entry { calls: self, number, call }
    }

    /// The call that began last: a form that a server sends belongs to it, as far as the protocol tells.
    pub(crate) fn newest(&self) -> Option<Arc<Call>> {
        self.table().under_way.last_key_value().map(|(_, call)| call.clone())
    }

    pub(crate) fn progress(&self, progress: &Progress) {
        let token = match &progress.progress_token {
            Value::String(token) => token.parse().ok(),
            token
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                token.as_u64()
            }
        };
        let call = token.and_then(|token| self.table().under_way.get(&token).cloned());
        if let Some(call) = call {
            call.beat();
            call.show(progress);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    /// Whether a form may be shown now: one at a time.
    pub(crate) fn open_form(&self) -> bool {
        self.pulse.send_if_modified(|pulse| !std::mem::replace(&mut pulse.form_open, true))
    }

    pub(crate) fn close_form(&self) {
        self.pulse.send_modify(|pulse| pulse.form_open = false);
    }

    fn beat(&self) {
        self.pulse.send_modify(|pulse| pulse.beats += 1);
    }

    fn show(&self, progress: &Progress) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if shown.is_some_and(|before| now - before < PACE) {
            return;
        }
        *shown = Some(now);
        drop(shown);
        let count = match progress.total {
            Some(total) => format!("{}/{total}", progress.progress),
            None => progress.progress.to_string(),
        };
        match progress.message.as_deref().map(|message| line(message, LONGEST_PROGRESS)) {
            Some(message) if !message.is_empty() => self.context.output(&format!("{message} ({count})\n")),
            _ => self.context.output(&format!("{count}\n")),
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.calls.table().under_way.remove(&self.number);
        self.call.over.cancel();
    }
}
