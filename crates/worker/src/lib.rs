//! Workers: processes that take tasks from the queue, one at a time, and run each in a checkout of its own.
//!
//! A task runs as `dragoman run` does, in a process of its own: headless, in the sandbox, under the worker's settings.
//! Invariants: a task is worked on only while its claim is renewed; whatever a lost worker has finished is in the chat
//! of the task, and its calls are not run again; the outcome of a task is the one that its chat has.

mod attempt;
mod checkout;
mod git;
mod large_files;
mod local_repository;
mod outcome;
pub mod policy;
mod progress;
mod report;
pub mod repository;
mod submodules;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{Environment, Inputs};
use domain::{CancellationToken, Failure, Store};
use serde_json::json;
use store_postgres::{Claim, Renewal, TaskQueue, TaskState};

use checkout::Checkout;
use outcome::{Ended, Work};
use policy::Limits;
use report::Report;
pub use worker::chat_of;
use worker::{Worker, pause};

/// How often a worker without work looks for some.
const POLL: Duration = Duration::from_millis(500);
/// How long a worker rests when the database is away.
const REST: Duration = Duration::from_secs(2);
/// How often a worker looks for tasks that are too old to be kept, and how many it deletes at a time.
const CLEANING: Duration = Duration::from_secs(3600);
const CLEANED: usize = 200;
/// Tasks that are looked at for the end of `--drain`.
const LISTED: usize = 100_000;

/// Deletes a task that has ended, its chat first. False: it waits or runs.
pub async fn delete_task(queue: &TaskQueue, store: &dyn Store, id: &str) -> Result<bool, Failure> {
    let has_ended = |task: &store_postgres::Task| task.ended_at.is_some();
    if !queue.get(id).await?.as_ref().is_none_or(has_ended) {
        return Ok(false);
    }
    store.delete(&chat_of(id)).await?;
    queue.delete(id).await
}

/// Why a task is not worked on any longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Halt {
    Cancelled,
    /// Another worker may have it.
    Lost,
}

/// How a worker works.
pub struct WorkerOptions {
    /// End when no task is left.
    pub drain: bool,
    /// Print JSON, for scripts.
    pub json: bool,
    /// Seconds for one task, where the settings do not allow less.
    pub timeout: Option<u32>,
    /// Writes a line to stdout.
    pub print_line: fn(&str),
}

/// Works until a signal comes; with `drain` until no task is left.
pub async fn work(
    environment: &Environment,
    queue: TaskQueue,
    store: Arc<dyn Store>,
    options: &WorkerOptions,
) -> Result<(), Failure> {
    let resolved = config::resolve(environment, &Inputs::default());
    let mut settings = resolved.settings.worker.clone();
    let timeout = options.timeout.map_or(settings.timeout_seconds, u64::from);
    settings.timeout_seconds = timeout.min(settings.timeout_seconds);
    policy::check(&settings)?;
    if !resolved.settings.sandbox.enabled {
        return Err(Failure::config("A worker runs tasks in the sandbox, and `sandbox` is off.")
            .hint("Switch it on in the worker's own config.json."));
    }
    let folder = checkout::private_folder(environment)
        .map_err(|error| Failure::user(format!("There is no folder for checkouts: {error}.")))?;
    let network = git::Network::new(resolved.settings.network.ca_cert_file.as_deref());
    let report = Report { json: options.json, print_line: options.print_line };
    let worker = Worker { queue, store, settings, folder, network, report };
    let stop = CancellationToken::new();
    let signal = process::shutdown_signal()
        .map_err(|error| Failure::internal(format!("Signals cannot be received: {error}.")))?;
    let stopping = stop.clone();
    let waiting = tokio::spawn(async move {
        signal.await;
        stopping.cancel();
    });
    let done = worker.take_tasks(&stop, options.drain).await;
    waiting.abort();
    process::shutdown().await;
    done
}

impl Worker {
    async fn take_tasks(&self, stop: &CancellationToken, drain: bool) -> Result<(), Failure> {
        let allowed = repository::beginnings(&self.settings.repositories);
        let mut cleaned: Option<Instant> = None;
        while !stop.is_cancelled() {
            if cleaned.is_none_or(|at| at.elapsed() > CLEANING) {
                cleaned = Some(Instant::now());
                self.delete_old().await;
            }
            match self.queue.claim(&allowed).await {
                Ok(Some(claim)) => self.work_on(claim, stop).await,
                Ok(None) if drain && self.is_drained().await => break,
                Ok(None) => pause(POLL, stop).await,
                // A wrong password does not become right.
                Err(failure) if failure.retry_after.is_none() => return Err(failure),
                Err(failure) => {
                    tracing::warn!(%failure, "no task can be taken");
                    pause(REST, stop).await;
                }
            }
        }
        Ok(())
    }

    /// No task is left that this worker may take, now or when another worker loses it. Tasks of other workers are named.
    async fn is_drained(&self) -> bool {
        let (waiting, running) = (
            self.queue.list(Some(TaskState::Waiting), LISTED).await,
            self.queue.list(Some(TaskState::Running), LISTED).await,
        );
        let (Ok(waiting), Ok(running)) = (waiting, running) else { return false };
        let left: Vec<store_postgres::Task> = waiting.into_iter().chain(running).collect();
        let is_own =
            |task: &store_postgres::Task| repository::is_named(&self.settings.repositories, &task.repo);
        if left.iter().any(is_own) {
            return false;
        }
        left.iter().for_each(|task| self.report.left(task));
        true
    }

    /// Deletes tasks that ended longer ago than the settings keep them.
    async fn delete_old(&self) {
        let Some(days) = self.settings.retention_days else { return };
        let old = self.queue.ended_before(days, CLEANED).await.unwrap_or_default();
        for id in old {
            if let Err(failure) = delete_task(&self.queue, self.store.as_ref(), &id).await {
                tracing::warn!(task = id.as_str(), %failure, "an old task cannot be deleted");
            }
        }
    }

    async fn work_on(&self, claim: Claim, stop: &CancellationToken) {
        let id = claim.task.id.clone();
        tracing::info!(task = id.as_str(), attempt = claim.task.attempts, "a task begins");
        if let Some(ended) = self.refuse(&claim) {
            self.finish(&claim, &ended, &Work::default()).await;
            return;
        }
        // Ends the programs of the task.
        let halt = stop.child_token();
        let checkout = tokio::sync::OnceCell::new();
        let (work, kept) = (self.run(&claim, &checkout, &halt), self.keep(&claim, &checkout, &halt));
        tokio::pin!(work);
        let halted = tokio::select! {
            ended = &mut work => Ok(ended),
            halted = kept => Err(halted),
        };
        let outcome = match halted {
            Ok(outcome) => outcome,
            // Its programs end first.
            Err(Halt::Lost) => {
                let _ = work.await;
                tracing::warn!(task = id.as_str(), "another worker may have the task now");
                return;
            }
            Err(Halt::Cancelled) => {
                let _ = work.await;
                let work = self.collect(&checkout).await.unwrap_or_default();
                Some((Ended::cancelled(), work))
            }
        };
        match outcome {
            Some((ended, work)) => {
                if self.finish(&claim, &ended, &work).await
                    && let Some(checkout) = checkout.get()
                {
                    checkout.remove(&work).await;
                }
            }
            None => {
                let _ = self.queue.release(&claim).await;
            }
        }
    }

    /// A task that must not run.
    fn refuse(&self, claim: &Claim) -> Option<Ended> {
        let task = &claim.task;
        if task.is_cancelled {
            return Some(Ended::cancelled());
        }
        (task.attempts > self.settings.max_attempts).then(|| {
            let lost = task.attempts - 1;
            Ended::failed("lost", format!("{lost} workers have lost this task, so it was given up."))
        })
    }

    /// `None`: it was stopped on the way.
    async fn run(
        &self,
        claim: &Claim,
        checkout: &tokio::sync::OnceCell<Checkout>,
        halt: &CancellationToken,
    ) -> Option<(Ended, Work)> {
        let limits = Limits::parse(&claim.task.limits);
        let deadline = Instant::now() + Duration::from_secs_f64(policy::timeout(&self.settings, &limits));
        let prepared = tokio::select! {
            prepared = Checkout::prepare(self, &claim.task) => prepared,
            () = halt.cancelled() => return None,
            () = tokio::time::sleep_until(deadline.into()) => {
                return Some((Ended::late(), Work::default()));
            }
        };
        let prepared = match prepared {
            Ok(prepared) => checkout.get_or_init(|| async { prepared }).await,
            Err(problem) => return Some((Ended::failed("checkout", problem), Work::default())),
        };
        // A worker on another machine begins with the same commit.
        let _ = self.queue.renew(claim, None, Some(&prepared.base)).await;
        let ended = attempt::run(self, &claim.task, prepared, deadline, halt).await?;
        let work = match prepared.collect(self, &claim.task).await {
            Ok(work) => work,
            Err(problem) => Work { problem: Some(problem), ..Work::default() },
        };
        Some((ended, work))
    }

    async fn collect(&self, checkout: &tokio::sync::OnceCell<Checkout>) -> Option<Work> {
        checkout.get()?.collect_patch().await.ok()
    }

    /// Renews the claim and saves the work so far. Resolves when the task must not be worked on any longer.
    async fn keep(
        &self,
        claim: &Claim,
        checkout: &tokio::sync::OnceCell<Checkout>,
        halt: &CancellationToken,
    ) -> Halt {
        let lease = self.queue.lease();
        let mut renewed = Instant::now();
        let mut saved = (Instant::now(), Vec::new());
        loop {
            tokio::time::sleep(lease / 10).await;
            let mut patch = None;
            if saved.0.elapsed() > lease / 3
                && let Some(checkout) = checkout.get()
            {
                patch = checkout.changes().await.ok().filter(|patch| *patch != saved.1);
                saved.0 = Instant::now();
            }
            let base = checkout.get().map(|checkout| checkout.base.as_str());
            let sent = Instant::now();
            match self.queue.renew(claim, patch.as_deref(), base).await {
                Ok(Renewal::Held) => {
                    renewed = sent;
                    saved.1 = patch.unwrap_or(saved.1);
                }
                Ok(Renewal::Cancelled) => {
                    halt.cancel();
                    return Halt::Cancelled;
                }
                Ok(Renewal::Lost) => {
                    halt.cancel();
                    return Halt::Lost;
                }
                Err(failure) => tracing::warn!(%failure, "the claim of a task cannot be renewed"),
            }
            // Its programs are gone before another worker may take the task.
            if renewed.elapsed() > lease - lease / 3 {
                halt.cancel();
                return Halt::Lost;
            }
        }
    }

    /// Whether the task ended here.
    async fn finish(&self, claim: &Claim, ended: &Ended, work: &Work) -> bool {
        let outcome = json!({
            "outcome": ended.outcome,
            "message": ended.message.as_ref().or(work.problem.as_ref()),
            "text": ended.text,
            "cost": ended.cost,
            "branch": work.branch,
            "commit": work.commit,
            "pushed": work.pushed,
            "worktree": work.kept,
        });
        let state = if work.problem.is_some() && ended.state == TaskState::Done {
            TaskState::Failed
        } else {
            ended.state
        };
        let patch = (!work.patch.is_empty()).then_some(work.patch.as_slice());
        match self.queue.finish(claim, state, &outcome.to_string(), patch).await {
            Ok(is_own) => {
                if is_own {
                    self.report.ended(&claim.task, state, ended, work);
                }
                is_own
            }
            Err(failure) => {
                tracing::warn!(%failure, "the end of a task cannot be written");
                false
            }
        }
    }
}
