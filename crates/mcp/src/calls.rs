//! Calls under way on one connection: where their progress and their forms go, and how long they may take.
//!
//! Invariants: a call ends by its answer, its deadline, a stop or the end of the connection, whichever comes first; in
//! every case except an answer it is cancelled at the server (`notifications/cancelled`); time in which a person fills in a
//! form does not count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::CancellationToken;
use domain::tool::ToolContext;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::request_error::describe_error;
use crate::text::single_line;
use crate::wire::Progress;

/// How many times progress may extend the deadline.
pub(crate) const MAX_DEADLINE_EXTENSIONS: u32 = 10;

/// Progress is shown at most this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

const MAX_PROGRESS_LENGTH: usize = 500;

#[derive(Default)]
pub(crate) struct Calls(Mutex<CallTable>);

#[derive(Default)]
struct CallTable {
    last: u64,
    active: BTreeMap<u64, Arc<ActiveCall>>,
}

/// One call under way.
pub(crate) struct ActiveCall {
    pub context: Arc<dyn ToolContext>,
    /// Cancelled when the call is finished.
    pub finished: CancellationToken,
    activity: watch::Sender<Activity>,
    /// When progress and when a log message was shown last: neither hides the other.
    shown_progress: Mutex<Option<Instant>>,
    shown_log: Mutex<Option<Instant>>,
}

#[derive(Clone, Copy, Default)]
struct Activity {
    form_open: bool,
    signals: u64,
}

/// How a call ended without a result.
pub(crate) enum CallError {
    Stopped,
    /// A sentence about the server.
    Failed(String),
}

/// Takes the call out of the table when it is finished, also when its future is dropped.
pub(crate) struct CallGuard<'a> {
    calls: &'a Calls,
    pub number: u64,
    pub call: Arc<ActiveCall>,
}

impl Calls {
    pub(crate) fn register(&self, context: Arc<dyn ToolContext>) -> CallGuard<'_> {
        let call = Arc::new(ActiveCall {
            context,
            finished: CancellationToken::new(),
            activity: watch::Sender::default(),
            shown_progress: Mutex::default(),
            shown_log: Mutex::default(),
        });
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.active.insert(number, call.clone());
        CallGuard { calls: self, number, call }
    }

    /// The call that began last: a form that a server sends belongs to it, as far as the protocol tells.
    pub(crate) fn latest(&self) -> Option<Arc<ActiveCall>> {
        self.table().active.last_key_value().map(|(_, call)| call.clone())
    }

    pub(crate) fn progress(&self, progress: &Progress) {
        let token = match &progress.progress_token {
            Value::String(token) => token.parse().ok(),
            token
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                token.as_u64()
            }
        };
        let call = token.and_then(|token| self.table().active.get(&token).cloned());
        if let Some(call) = call {
            call.record_signal();
            call.show_progress(progress);
        }
    }

    /// Shows a log message with the call that began last: the protocol does not tell which one it belongs to.
    pub(crate) fn show_log(&self, level: &str, text: &str) {
        if let Some(call) = self.latest()
            && is_time_to_show(&call.shown_log)
        {
            call.context.output(&format!("[{level}] {text}\n"));
        }
    }

    fn table(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveCall {
    /// Waits for the answer to a request of this call.
    pub(crate) async fn wait(
        &self,
        mut request: rpc::Request,
        stop: &CancellationToken,
        deadline: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let mut activity = self.activity.subscribe();
        let mut all = deadline.saturating_mul(MAX_DEADLINE_EXTENSIONS);
        loop {
            let form_open = activity.borrow_and_update().form_open;
            let began = Instant::now();
            tokio::select! {
                biased;
                reply = &mut request => {
                    return reply
                        .map_err(|error| CallError::Failed(describe_error("tools/call", &error, deadline)));
                }
                // Dropping the request cancels it at the server.
                () = stop.cancelled() => return Err(CallError::Stopped),
                () = tokio::time::sleep(deadline.min(all)), if !form_open => {
                    return Err(CallError::Failed(format!(
                        "It did not answer within {} s; the call was cancelled. A longer time can be set as \
                         mcpTimeoutSeconds.",
                        deadline.as_secs_f32()
                    )));
                }
                _ = activity.changed() => if !form_open {
                    all = all.saturating_sub(began.elapsed());
                }
            }
        }
    }

    /// Whether a form may be shown now: one at a time.
    pub(crate) fn open_form(&self) -> bool {
        self.activity.send_if_modified(|activity| !std::mem::replace(&mut activity.form_open, true))
    }

    pub(crate) fn close_form(&self) {
        self.activity.send_modify(|activity| activity.form_open = false);
    }

    fn record_signal(&self) {
        self.activity.send_modify(|activity| activity.signals += 1);
    }

    /// A line about the call, for people.
    pub(crate) fn show_text(&self, text: &str) {
        self.context.output(&format!("{text}\n"));
    }

    fn show_progress(&self, progress: &Progress) {
        if !is_time_to_show(&self.shown_progress) {
            return;
        }
        let count = match progress.total {
            Some(total) => format!("{}/{total}", progress.progress),
            None => progress.progress.to_string(),
        };
        match progress.message.as_deref().map(|message| single_line(message, MAX_PROGRESS_LENGTH)) {
            Some(message) if !message.is_empty() => self.context.output(&format!("{message} ({count})\n")),
            _ => self.context.output(&format!("{count}\n")),
        }
    }
}

/// However much a server tells, only some of it is shown.
fn is_time_to_show(shown: &Mutex<Option<Instant>>) -> bool {
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let is_time = shown.is_none_or(|before| now - before >= PROGRESS_INTERVAL);
    if is_time {
        *shown = Some(now);
    }
    is_time
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls.table().active.remove(&self.number);
        self.call.finished.cancel();
    }
}
