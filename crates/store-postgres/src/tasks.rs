//! The queue of tasks for workers: rows that one worker at a time has, under a token that counts up.
//!
//! Must not know what a task does. Invariants: a task ends once: its end is written only under the newest token and only
//! while it runs; a worker that does not renew loses the task to another one; the clock of the database judges both.

use std::sync::Arc;

use domain::Failure;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::error::{Trouble, column};
use crate::lease::{Identity, is_alive, shown};
use crate::pool::{Connection, Pool, RetryTimes};
use crate::task_id::TaskId;
use crate::{AddressLookup, Timing};

/// Tasks that are waiting for or have gone through a worker.
pub struct TaskQueue {
    pool: Arc<Pool>,
    identity: Identity,
    timing: Timing,
}

/// A task as its submitter writes it.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    pub prompt: String,
    /// A folder of the worker's machine, or an address of git.
    pub repo: String,
    pub reference: String,
    /// What the task may not exceed, as JSON.
    pub limits: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub state: TaskState,
    pub prompt: String,
    pub repo: String,
    pub reference: String,
    pub limits: String,
    /// Times in milliseconds since 1970.
    pub submitted_at: u64,
    pub started_at: Option<u64>,
    pub ended_at: Option<u64>,
    /// How many workers have had it.
    pub attempts: u64,
    /// For people: the worker that has it or had it last.
    pub worker: Option<String>,
    pub is_cancelled: bool,
    /// The commit that the work began with.
    pub base: Option<String>,
    /// The end as JSON; set where the task has ended.
    pub outcome: Option<String>,
    /// Bytes of the patch.
    pub patch_size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    Waiting,
    Running,
    Done,
    Failed,
    Cancelled,
}

impl TaskState {
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Running, Self::Done, Self::Failed, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The right of this worker to a task.
#[derive(Clone, Debug)]
pub struct Claim {
    pub task: Task,
    token: i64,
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    Held,
    /// Its submitter wants it to stop.
    Cancelled,
    /// Another worker has it.
    Lost,
}

/// The columns of a [`Task`], in the order of [`task`].
macro_rules! with_columns {
    ($before:expr, $after:expr) => {
        concat!(
            $before,
            " id, state, prompt, repo, reference, limits,
             (extract(epoch FROM submitted) * 1000)::bigint, (extract(epoch FROM started) * 1000)::bigint,
             (extract(epoch FROM ended) * 1000)::bigint, attempts, worker, cancel, base, outcome,
             coalesce(octet_length(patch), 0)::bigint, token ",
            $after
        )
    };
}

/// Rows with another id are no tasks: workers name folders by it. `TaskId` checks the same.
macro_rules! is_task {
    () => {
        "id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'"
    };
}

/// The oldest task that is free: waiting, of a worker that did not renew in time, of a dead process of this machine, or
/// of this very worker, whose last request was answered too late.
const CLAIM: &str = with_columns!(
    concat!(
        "UPDATE dragoman.tasks SET state = 'running', token = nextval('dragoman.lease_tokens'), owner = $1, worker = $2,
        machine = $3, process = $4, ends = clock_timestamp() + make_interval(secs => $5), attempts = attempts + 1,
        started = coalesce(started, clock_timestamp())
     WHERE id = (
        SELECT id FROM dragoman.tasks
        WHERE state IN ('waiting', 'running') AND ",
        is_task!(),
        "
            AND (state = 'waiting' OR ends < clock_timestamp() OR owner = $1 OR token = ANY($6))
            AND EXISTS (SELECT FROM unnest($7::text[]) AS allowed WHERE starts_with(repo || '/', allowed))
        ORDER BY submitted, id LIMIT 1 FOR UPDATE SKIP LOCKED
     ) RETURNING"
    ),
    ""
);
const CLAIM_TYPES: [Type; 7] =
    [Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8, Type::FLOAT8, Type::INT8_ARRAY, Type::TEXT_ARRAY];
const LIST: &str = with_columns!(
    "SELECT",
    concat!(
        "FROM dragoman.tasks WHERE ($1::text IS NULL OR state = $1) AND ",
        is_task!(),
        " ORDER BY submitted DESC, id DESC LIMIT $2"
    )
);
const GET: &str = with_columns!("SELECT", concat!("FROM dragoman.tasks WHERE id = $1 AND ", is_task!()));
const UNFINISHED: &str =
    concat!("SELECT count(*) FROM dragoman.tasks WHERE state IN ('waiting', 'running') AND ", is_task!());
const RENEW: &str = "
    UPDATE dragoman.tasks SET ends = clock_timestamp() + make_interval(secs => $4), patch = coalesce($5, patch),
        base = coalesce($6, base)
    WHERE id = $1 AND token = $2 AND owner = $3 AND state = 'running' RETURNING cancel";
const RELEASE: &str = "
    UPDATE dragoman.tasks SET state = 'waiting', ends = NULL
    WHERE id = $1 AND token = $2 AND owner = $3 AND state = 'running'";
const FINISH: &str = "
    UPDATE dragoman.tasks SET state = $4, outcome = $5, patch = $6, ended = clock_timestamp(), ends = NULL
    WHERE id = $1 AND token = $2 AND owner = $3 AND state = 'running'";
/// A task that waits ends at once, one that runs is stopped by its worker.
const CANCEL: &str = "
    UPDATE dragoman.tasks SET cancel = true,
        state = CASE state WHEN 'waiting' THEN 'cancelled' ELSE state END,
        ended = CASE state WHEN 'waiting' THEN clock_timestamp() ELSE ended END
    WHERE id = $1 AND state IN ('waiting', 'running')";

const DELETE: &str = "DELETE FROM dragoman.tasks WHERE id = $1 AND state IN ('done', 'failed', 'cancelled')";
const ENDED_BEFORE: &str = concat!(
    "SELECT id FROM dragoman.tasks WHERE state IN ('done', 'failed', 'cancelled')
        AND ended <= clock_timestamp() - make_interval(secs => 86400 * $1::float8) AND ",
    is_task!(),
    " ORDER BY ended LIMIT $2"
);

impl TaskQueue {
    /// Looks the address up and connects at the first use.
    pub fn new(source: impl AddressLookup) -> Self {
        Self::with_source(Box::new(source), Timing::default())
    }

    pub fn with_timing(address: Address, timing: Timing) -> Self {
        Self::with_source(crate::fixed(address), timing)
    }

    fn with_source(source: crate::pool::AddressSource, timing: Timing) -> Self {
        Self { pool: Arc::new(Pool::new(source)), identity: Identity::new(), timing }
    }

    /// How long a task stays with a worker that does not renew.
    pub fn lease(&self) -> std::time::Duration {
        self.timing.lease
    }

    pub async fn submit(&self, task: &NewTask) -> Result<TaskId, Failure> {
        // The id is made here, so that a repeated request is found out.
        let id = TaskId::new();
        self.execute(
            "INSERT INTO dragoman.tasks (id, prompt, repo, reference, limits) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            &[&id.as_str(), &without_nul(&task.prompt), &task.repo, &task.reference, &task.limits],
        )
        .await?;
        Ok(id)
    }

    /// Takes the oldest free task of a repository that one of these beginnings allows.
    pub async fn claim(&self, allowed: &[String]) -> Result<Option<Claim>, Failure> {
        let (identity, lease) = (&self.identity, self.timing.lease);
        let allowed = &allowed;
        self.with_retries(move |mut connection| async move {
            let claimed = async {
                let dead = dead_workers(&mut connection, identity).await?;
                let statement = connection.statement(CLAIM, &CLAIM_TYPES).await?;
                let row = connection
                    .client
                    .query_opt(
                        &statement,
                        &[
                            &identity.owner,
                            &identity.holder,
                            &identity.machine,
                            &identity.process,
                            &lease.as_secs_f64(),
                            &dead,
                            allowed,
                        ],
                    )
                    .await?;
                row.map(|row| Ok(Claim { task: task(&row)?, token: column(&row, 15)? })).transpose()
            }
            .await;
            (connection, claimed)
        })
        .await
    }

    /// Keeps the task, and with it the work so far where it is given. It tries once and not for long, so that the caller
    /// knows in time that it may lose the task.
    pub async fn renew(
        &self,
        claim: &Claim,
        patch: Option<&[u8]>,
        base: Option<&str>,
    ) -> Result<Renewal, Failure> {
        let (owner, lease) = (&self.identity.owner, self.timing.lease);
        let limit = RetryTimes { all: lease / 6, one: lease / 6 };
        self.pool
            .with_retries(limit, |mut connection| async move {
                let types = [Type::TEXT, Type::INT8, Type::TEXT, Type::FLOAT8, Type::BYTEA, Type::TEXT];
                let renewed = async {
                    let statement = connection.statement(RENEW, &types).await?;
                    let parameters: [&(dyn ToSql + Sync); 6] =
                        [&claim.task.id.as_str(), &claim.token, owner, &lease.as_secs_f64(), &patch, &base];
                    let row = connection.client.query_opt(&statement, &parameters).await?;
                    Ok(match row {
                        None => Renewal::Lost,
                        Some(row) if column(&row, 0)? => Renewal::Cancelled,
                        Some(_) => Renewal::Held,
                    })
                }
                .await;
                (connection, renewed)
            })
            .await
    }

    /// Gives the task back, so that any worker goes on with it.
    pub async fn release(&self, claim: &Claim) -> Result<(), Failure> {
        self.execute(RELEASE, &[&claim.task.id.as_str(), &claim.token, &self.identity.owner]).await.map(drop)
    }

    /// Ends the task. False: another worker has it, or has ended it.
    pub async fn finish(
        &self,
        claim: &Claim,
        state: TaskState,
        outcome: &str,
        patch: Option<&[u8]>,
    ) -> Result<bool, Failure> {
        let (owner, id) = (&self.identity.owner, &claim.task.id.as_str());
        let outcome = &without_nul(outcome);
        let times = RetryTimes { all: self.timing.write_timeout, one: self.timing.attempt };
        self.pool
            .with_retries(times, |connection| async move {
                let finished = async {
                    let parameters: [&(dyn ToSql + Sync); 6] =
                        [id, &claim.token, owner, &state.name(), outcome, &patch];
                    if connection.client.execute(FINISH, &parameters).await? == 1 {
                        return Ok(true);
                    }
                    // The answer to an earlier try may have been lost.
                    let query = "SELECT 1 FROM dragoman.tasks
                        WHERE id = $1 AND token = $2 AND owner = $3 AND state = $4 AND outcome = $5";
                    let own = connection.client.query_opt(query, &parameters[..5]).await?;
                    Ok(own.is_some())
                }
                .await;
                (connection, finished)
            })
            .await
    }

    /// False: there is no such task, or it has ended.
    pub async fn cancel(&self, id: &str) -> Result<bool, Failure> {
        // A repeated request changes no row where the first one ended a task that waited.
        self.execute(CANCEL, &[&id]).await?;
        Ok(self.get(id).await?.is_some_and(|task| task.is_cancelled))
    }

    /// Deletes a task that has ended. False: there is none, or it waits or runs.
    pub async fn delete(&self, id: &str) -> Result<bool, Failure> {
        Ok(self.execute(DELETE, &[&id]).await? > 0 || self.get(id).await?.is_none())
    }

    /// Tasks that ended so many days ago or earlier, the oldest first.
    pub async fn ended_before(&self, days: u64, limit: usize) -> Result<Vec<TaskId>, Failure> {
        let (days, limit) = (days as f64, i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = self.query(ENDED_BEFORE, &[&days, &limit]).await?;
        rows.iter().map(|row| task_id(row).map_err(Trouble::into_failure)).collect()
    }

    /// The newest first.
    pub async fn list(&self, state: Option<TaskState>, limit: usize) -> Result<Vec<Task>, Failure> {
        let (state, limit) = (state.map(TaskState::name), i64::try_from(limit).unwrap_or(i64::MAX));
        self.query(LIST, &[&state, &limit])
            .await?
            .iter()
            .map(|row| task(row).map_err(Trouble::into_failure))
            .collect()
    }

    pub async fn get(&self, id: &str) -> Result<Option<Task>, Failure> {
        let rows = self.query(GET, &[&id]).await?;
        rows.first().map(|row| task(row).map_err(Trouble::into_failure)).transpose()
    }

    pub async fn patch(&self, id: &str) -> Result<Option<Vec<u8>>, Failure> {
        let rows = self.query("SELECT patch FROM dragoman.tasks WHERE id = $1", &[&id]).await?;
        let patch = rows.first().map(|row| column(row, 0).map_err(Trouble::into_failure)).transpose()?;
        Ok(patch.flatten())
    }

    /// How many tasks wait or run.
    pub async fn unfinished(&self) -> Result<u64, Failure> {
        let rows = self.query(UNFINISHED, &[]).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| column(row, 0)).map_err(Trouble::into_failure)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn query(
        &self,
        text: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        self.with_retries(|connection| async move {
            let rows = connection.client.query(text, parameters).await.map_err(Trouble::from);
            (connection, rows)
        })
        .await
    }

    async fn execute(&self, text: &'static str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        self.with_retries(|connection| async move {
            let changed = connection.client.execute(text, parameters).await.map_err(Trouble::from);
            (connection, changed)
        })
        .await
    }

    async fn with_retries<T, F>(&self, attempt: impl FnMut(Connection) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = (Connection, Result<T, Trouble>)> + Send,
    {
        let times = RetryTimes { all: self.timing.read_timeout, one: self.timing.attempt };
        self.pool.with_retries(times, attempt).await
    }
}

/// The tokens of tasks whose workers were processes of this machine and are gone: they need not be waited for.
async fn dead_workers(connection: &mut Connection, identity: &Identity) -> Result<Vec<i64>, Trouble> {
    if identity.machine.is_empty() {
        return Ok(Vec::new());
    }
    let query = "SELECT token, process FROM dragoman.tasks WHERE state = 'running' AND machine = $1";
    let statement = connection.statement(query, &[Type::TEXT]).await?;
    let rows = connection.client.query(&statement, &[&identity.machine]).await?;
    let mut dead = Vec::new();
    for row in &rows {
        if !is_alive(column(row, 1)?) {
            dead.push(column(row, 0)?);
        }
    }
    Ok(dead)
}

/// The first column of a row.
fn task_id(row: &Row) -> Result<TaskId, Trouble> {
    TaskId::parse(column(row, 0)?)
        .ok_or_else(|| Trouble::Refused(Failure::internal("A task has an id that is not a UUID.")))
}

fn task(row: &Row) -> Result<Task, Trouble> {
    let number = |index| -> Result<Option<u64>, Trouble> {
        Ok(column::<Option<i64>>(row, index)?.map(|number| u64::try_from(number).unwrap_or(0)))
    };
    let state = TaskState::parse(column(row, 1)?)
        .ok_or_else(|| Trouble::Refused(Failure::internal("A task has a state that is not known here.")))?;
    Ok(Task {
        id: task_id(row)?,
        state,
        prompt: column(row, 2)?,
        repo: column(row, 3)?,
        reference: column(row, 4)?,
        limits: column(row, 5)?,
        submitted_at: number(6)?.unwrap_or(0),
        started_at: number(7)?,
        ended_at: number(8)?,
        attempts: number(9)?.unwrap_or(0),
        worker: column::<Option<&str>>(row, 10)?.map(shown),
        is_cancelled: column(row, 11)?,
        base: column(row, 12)?,
        outcome: column(row, 13)?,
        patch_size: number(14)?.unwrap_or(0),
    })
}

/// PostgreSQL stores no NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
