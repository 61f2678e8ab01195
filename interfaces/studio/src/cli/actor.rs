//! The loop behind the handle: starts the child, sends what waits, matches answers, keeps deadlines, starts it again.
//!
//! Invariant: a request is in exactly one place: waiting, sent, or pausing before its next try.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::connection::Connection;
use super::launch::Launch;
use super::method::Method;
use super::policy::{self, MOST_FAILURES, STABLE, restart_pause};
use super::request::{Chunk, CliError, CliErrorKind, MOST_WAITING, Request};
use super::{CliState, CliStatus, Diagnostics};

pub(super) enum Command {
    Call(Box<Request>),
    Restart,
    Stop(oneshot::Sender<()>),
}

pub(super) struct Actor {
    launcher: Arc<dyn Launch>,
    diagnostics: Diagnostics,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<CliStatus>,
    next_id: u64,
    waiting: VecDeque<Request>,
    sent: BTreeMap<u64, (Request, Instant)>,
    pausing: Vec<(Instant, Request)>,
    /// In a row.
    failures: u32,
    is_ready: bool,
}

/// Why the loop over one child ended.
enum Ended {
    Crashed(String),
    Restart,
    Stopped(Option<oneshot::Sender<()>>),
}

impl Actor {
    pub(super) fn new(
        launcher: Arc<dyn Launch>,
        diagnostics: Diagnostics,
        commands: mpsc::Receiver<Command>,
    ) -> (Self, watch::Receiver<CliStatus>) {
        let first =
            CliStatus { state: CliState::Starting, pid: None, restarts: 0, pending: 0, message: None };
        let (status, receiver) = watch::channel(first);
        let actor = Self {
            launcher,
            diagnostics,
            commands,
            status,
            next_id: 1,
            waiting: VecDeque::new(),
            sent: BTreeMap::new(),
            pausing: Vec::new(),
            failures: 0,
            is_ready: false,
        };
        (actor, receiver)
    }

    pub(super) async fn run(mut self) {
        loop {
            let ended = match self.launcher.launch().await {
                Ok(launched) => {
                    let mut connection = Connection::new(launched, self.diagnostics.clone());
                    let ended = self.serve(&mut connection).await;
                    match &ended {
                        Ended::Crashed(_) => connection.kill().await,
                        Ended::Restart | Ended::Stopped(_) => connection.end().await,
                    }
                    ended
                }
                Err(message) => Ended::Crashed(message),
            };
            self.is_ready = false;
            let goes_on = match ended {
                Ended::Crashed(message) => self.after_crash(message).await,
                Ended::Restart => {
                    self.resend("The CLI was started again.");
                    self.publish(CliState::Starting, None, None);
                    true
                }
                Ended::Stopped(done) => self.after_stop(done).await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Talks to one child until it ends or is to end.
    async fn serve(&mut self, connection: &mut Connection) -> Ended {
        let state = if self.failures == 0 { CliState::Starting } else { CliState::Restarting };
        self.publish(state, connection.pid, None);
        self.waiting.push_front(initialize());
        let stable_at = Instant::now() + STABLE;
        loop {
            self.show_pending();
            let timer = self.next_timer().unwrap_or_else(|| Instant::now() + STABLE);
            tokio::select! {
                biased;
                message = connection.incoming.recv() => match message {
                    Some(message) => {
                        if let Some(ended) = self.take_message(message, connection.pid) {
                            return ended;
                        }
                    }
                    None => return Ended::Crashed("The CLI ended unexpectedly.".to_owned()),
                },
                command = self.commands.recv() => match command {
                    Some(Command::Call(request)) => self.enqueue(*request),
                    Some(Command::Restart) => return Ended::Restart,
                    Some(Command::Stop(done)) => return Ended::Stopped(Some(done)),
                    None => return Ended::Stopped(None),
                },
                () = sleep_until(timer) => {
                    if let Some(ended) = self.take_timers() {
                        return ended;
                    }
                    if self.is_ready && Instant::now() >= stable_at {
                        self.failures = 0;
                    }
                }
                permit = connection.outgoing.reserve(), if self.may_send() => match permit {
                    Ok(permit) => {
                        if let Some(line) = self.next_line() {
                            permit.send(line);
                        }
                    }
                    Err(_) => return Ended::Crashed("The CLI no longer reads its input.".to_owned()),
                },
            }
        }
    }

    /// Before the child is ready only `initialize`, which stands in front, may be sent.
    fn may_send(&self) -> bool {
        self.waiting.front().is_some_and(|request| self.is_ready || request.method == Method::Initialize)
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let request = self.waiting.pop_front().filter(|request| !request.is_abandoned())?;
        let id = self.next_id;
        self.next_id += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": id, "method": request.method.name(), "params": request.params});
        let mut line = serde_json::to_vec(&message).ok()?;
        line.push(b'\n');
        let deadline = Instant::now() + policy::of(request.method).timeout;
        self.sent.insert(id, (request, deadline));
        Some(line)
    }

    fn enqueue(&mut self, request: Request) {
        self.waiting.retain(|request| !request.is_abandoned());
        let count = self.waiting.iter().filter(|request| request.method != Method::Initialize).count();
        if count + self.pausing.len() >= MOST_WAITING {
            request.finish(Err(CliError::queue_full()));
        } else {
            self.waiting.push_back(request);
        }
    }

    fn take_message(&mut self, message: Value, pid: Option<u32>) -> Option<Ended> {
        if message["method"] == "stream/chunk" {
            self.take_chunk(&message["params"]);
            return None;
        }
        let id = message["id"].as_u64()?;
        // An answer to a try that was given up is passed over.
        let (request, _) = self.sent.remove(&id)?;
        let outcome = match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => Err(CliError::from_answer(error)),
            None => Ok(message.get("result").cloned().unwrap_or_default()),
        };
        match (request.method, outcome) {
            (Method::Initialize, Ok(_)) => {
                self.is_ready = true;
                self.publish(CliState::Running, pid, None);
                None
            }
            (_, Ok(result)) => {
                self.failures = 0;
                request.finish(Ok(result));
                None
            }
            (_, Err(error)) => self.fail(request, error),
        }
    }

    fn take_chunk(&mut self, params: &Value) {
        let Some((request, _)) = params["requestId"].as_u64().and_then(|id| self.sent.get_mut(&id)) else {
            return;
        };
        let (Some(index), Some(text)) = (params["index"].as_u64(), params["chunk"].as_str()) else { return };
        if index != request.next_chunk {
            return;
        }
        request.next_chunk += 1;
        if let Some(chunks) = &request.chunks {
            let _ = chunks.send(Chunk { index, text: text.to_owned() });
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let deadlines = self.sent.values().map(|(_, deadline)| *deadline);
        deadlines.chain(self.pausing.iter().map(|(until, _)| *until)).min()
    }

    fn take_timers(&mut self) -> Option<Ended> {
        let now = Instant::now();
        self.end_pauses();
        let late: Vec<u64> =
            self.sent.iter().filter(|(_, (_, deadline))| *deadline <= now).map(|(id, _)| *id).collect();
        for id in late {
            let Some((request, _)) = self.sent.remove(&id) else { continue };
            let seconds = policy::of(request.method).timeout.as_secs();
            let message = format!("`{}` was not answered within {seconds} s.", request.method.name());
            (self.diagnostics)(message.clone());
            if let Some(ended) = self.fail(request, CliError::new(CliErrorKind::TimedOut, message)) {
                return Some(ended);
            }
        }
        None
    }

    fn end_pauses(&mut self) {
        let now = Instant::now();
        let (due, pausing) =
            std::mem::take(&mut self.pausing).into_iter().partition(|(until, _)| *until <= now);
        self.pausing = pausing;
        let due: Vec<(Instant, Request)> = due;
        for (_, request) in due.into_iter().rev() {
            self.waiting.push_front(request);
        }
    }

    /// Tries again after a pause, or gives the request up. A child that does not answer `initialize` is a crashed one.
    fn fail(&mut self, mut request: Request, error: CliError) -> Option<Ended> {
        if let Some(pause) = request.pause_before_retry(&error) {
            self.pausing.push((Instant::now() + pause, request));
            return None;
        }
        if request.method == Method::Initialize {
            return Some(Ended::Crashed(format!("The CLI did not start: {error}")));
        }
        request.finish(Err(error));
        None
    }

    /// What was sent waits again, once; `initialize` is made anew for each child.
    fn resend(&mut self, message: &str) {
        let sent = std::mem::take(&mut self.sent);
        for (_, (mut request, _)) in sent.into_iter().rev() {
            if request.may_be_resent() {
                self.waiting.push_front(request);
            } else {
                let message = format!("{message} It happened twice with this request.");
                request.finish(Err(CliError::new(CliErrorKind::Crashed, message)));
            }
        }
        let is_kept = |request: &Request| request.method != Method::Initialize;
        self.waiting.retain(is_kept);
        self.pausing.retain(|(_, request)| is_kept(request));
    }

    async fn after_crash(&mut self, message: String) -> bool {
        self.failures += 1;
        (self.diagnostics)(message.clone());
        self.resend(&message);
        if self.failures >= MOST_FAILURES {
            let message = format!("The CLI failed {MOST_FAILURES} times in a row. {message}");
            self.fail_all(&message);
            self.publish(CliState::Failed, None, Some(message));
            return self.rest(None).await;
        }
        self.publish(CliState::Restarting, None, Some(message));
        self.rest(Some(Instant::now() + restart_pause(self.failures))).await
    }

    async fn after_stop(&mut self, done: Option<oneshot::Sender<()>>) -> bool {
        self.fail_all("The CLI was stopped.");
        self.publish(CliState::Stopped, None, None);
        let Some(done) = done else { return false };
        let _ = done.send(());
        self.rest(None).await
    }

    /// Waits without a child: until a time, or until somebody starts it again. Returns whether to go on.
    async fn rest(&mut self, until: Option<Instant>) -> bool {
        loop {
            self.show_pending();
            let pause = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Call(request)) if until.is_some() => self.enqueue(*request),
                    Some(Command::Call(request)) => {
                        request.finish(Err(CliError::unavailable("The CLI does not run. Start it again.")));
                    }
                    Some(Command::Restart) => {
                        self.failures = 0;
                        self.publish(CliState::Starting, None, None);
                        return true;
                    }
                    Some(Command::Stop(done)) => return Box::pin(self.after_stop(Some(done))).await,
                    None => return false,
                },
                () = pause => return true,
            }
        }
    }

    fn fail_all(&mut self, message: &str) {
        let waiting = std::mem::take(&mut self.waiting);
        let sent = std::mem::take(&mut self.sent).into_values().map(|(request, _)| request);
        let pausing = std::mem::take(&mut self.pausing).into_iter().map(|(_, request)| request);
        for request in waiting.into_iter().chain(sent).chain(pausing) {
            request.finish(Err(CliError::unavailable(message)));
        }
    }

    fn publish(&self, state: CliState, pid: Option<u32>, message: Option<String>) {
        let restarts = if state == CliState::Running { 0 } else { self.failures };
        let pending = self.status.borrow().pending;
        self.status.send_replace(CliStatus { state, pid, restarts, pending, message });
    }

    fn show_pending(&self) {
        let is_own = |request: &Request| request.method == Method::Initialize;
        let all = self.waiting.iter().chain(self.sent.values().map(|(request, _)| request));
        let count =
            all.chain(self.pausing.iter().map(|(_, request)| request)).filter(|one| !is_own(one)).count();
        self.status.send_if_modified(|status| std::mem::replace(&mut status.pending, count) != count);
    }
}

fn initialize() -> Request {
    let params = json!({
        "clientName": "dragoman-studio",
        "clientVersion": env!("CARGO_PKG_VERSION"),
        "capabilities": {"streaming": true, "specFormats": ["openapi3", "swagger2", "graphql"]},
    });
    Request::unanswered(Method::Initialize, params, None)
}
