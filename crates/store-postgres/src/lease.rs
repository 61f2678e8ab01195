//! The right to append to a chat: a row with a token that counts up and an end that the clock of the database judges.
//!
//! Invariants: a token fences facts: an append under an older one is refused; a lease is renewed long before it ends, and
//! a holder that cannot renew it says so in time for its programs to be stopped.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use domain::store::Lease;
use domain::{Failure, SessionId};
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;

use crate::error::{Trouble, column, stored_id};
use crate::pool::{Connection, Pool, RetryTimes};

/// Programs that run under a lease are stopped when this part of its length is left.
const RISK: u32 = 4;
/// It is renewed so many times within its length.
const RENEWALS: u32 = 3;

const ACQUIRE: &str = "
    INSERT INTO dragoman.leases (session, token, owner, holder, machine, process, ends)
    VALUES ($1, nextval('dragoman.lease_tokens'), $2, $3, $4, $5, clock_timestamp() + make_interval(secs => $6))
    ON CONFLICT (session) DO UPDATE SET token = excluded.token, owner = excluded.owner, holder = excluded.holder,
        machine = excluded.machine, process = excluded.process, ends = excluded.ends
    WHERE leases.ends < clock_timestamp() OR leases.owner = excluded.owner OR leases.token = $7
    RETURNING token";
const ACQUIRE_TYPES: [Type; 7] =
    [Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8, Type::FLOAT8, Type::INT8];

pub(crate) struct Leases {
    pool: Arc<Pool>,
    length: Duration,
    identity: OnceLock<Identity>,
    held: Mutex<HashMap<SessionId, Arc<HeldLease>>>,
    renewing: OnceLock<JoinHandle<()>>,
}

/// This store in this process.
pub(crate) struct Identity {
    pub(crate) owner: String,
    pub(crate) holder: String,
    pub(crate) machine: String,
    pub(crate) process: i64,
}

/// A lease that this store has.
pub(crate) struct HeldLease {
    pub(crate) token: i64,
    pub(crate) owner: String,
    pub(crate) length: Duration,
    /// The number of the newest fact, where it is known.
    pub(crate) newest: tokio::sync::Mutex<Option<u64>>,
    renewed: Mutex<Moment>,
    lost: tokio::sync::watch::Sender<bool>,
}

/// Two clocks: the first stands still while the machine sleeps, the second may be set.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    monotonic: Instant,
    wall: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }

    fn age(self) -> Duration {
        self.monotonic.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

impl HeldLease {
    fn new(token: i64, owner: String, length: Duration, sent: Moment) -> Self {
        let lost = tokio::sync::watch::Sender::new(false);
        Self { token, owner, length, newest: tokio::sync::Mutex::default(), renewed: Mutex::new(sent), lost }
    }

    /// The present, where an append should renew the lease as well.
    pub(crate) fn due_renewal(&self) -> Option<Moment> {
        (self.renewed().age() > self.length / RENEWALS).then(Moment::now)
    }

    /// The request for it was sent then, so the lease ends no earlier than its length after that.
    pub(crate) fn was_renewed(&self, sent: Moment) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.monotonic > renewed.monotonic {
            *renewed = sent;
        }
    }

    fn renewed(&self) -> Moment {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of it before programs have to stop.
    fn safe_for(&self) -> Duration {
        (self.length - self.length / RISK).saturating_sub(self.renewed().age())
    }
}

impl Leases {
    pub(crate) fn new(pool: Arc<Pool>, length: Duration) -> Self {
        Self { pool, length, identity: OnceLock::new(), held: Mutex::default(), renewing: OnceLock::new() }
    }

    pub(crate) fn get(&self, session: &SessionId) -> Option<Arc<HeldLease>> {
        self.held().get(session).cloned()
    }

    pub(crate) async fn acquire(
        self: &Arc<Self>,
        session: &SessionId,
        times: RetryTimes,
    ) -> Result<Lease, Failure> {
        if self.get(session).is_some() {
            return Ok(Lease::Held);
        }
        let (identity, length) = (self.identity.get_or_init(Identity::new), self.length);
        let sent = Moment::now();
        let outcome = self
            .pool
            .with_retries(times, |mut connection| async move {
                let acquired = acquire(&mut connection, session, identity, length).await;
                (connection, acquired)
            })
            .await?;
        match outcome {
            Ok(token) => {
                let lease = HeldLease::new(token, identity.owner.clone(), length, sent);
                self.held().insert(session.clone(), Arc::new(lease));
                self.renewing.get_or_init(|| tokio::spawn(renew_all(Arc::downgrade(self))));
                Ok(Lease::Held)
            }
            Err(holder) => Ok(Lease::HeldBy { holder, address: None }),
        }
    }

    pub(crate) async fn release(&self, session: &SessionId) -> Result<(), Failure> {
        let Some(held) = self.held().remove(session) else { return Ok(()) };
        let held = &held;
        let mut release = |mut connection: Connection| async move {
            let released = release(&mut connection, session, held).await;
            (connection, released)
        };
        // A lease that stays behind ends by itself.
        match self.pool.once(self.length / RENEWALS, &mut release).await {
            Ok(()) | Err(Trouble::Away(_)) => Ok(()),
            Err(Trouble::Refused(failure)) => Err(failure),
        }
    }

    /// Another process has it now.
    pub(crate) fn lose(&self, session: &SessionId, lost: &Arc<HeldLease>) {
        lost.lost.send_replace(true);
        let mut held = self.held();
        if held.get(session).is_some_and(|current| current.token == lost.token) {
            held.remove(session);
        }
    }

    /// Resolves when programs under this lease have to stop.
    pub(crate) async fn at_risk(&self, session: &SessionId) {
        let Some(held) = self.get(session) else { return };
        let mut lost = held.lost.subscribe();
        loop {
            let safe_for = held.safe_for();
            if safe_for.is_zero() || *lost.borrow_and_update() {
                return;
            }
            // Short, because a sleeping machine stops this clock.
            let _ = tokio::time::timeout(safe_for.min(Duration::from_secs(1)), lost.changed()).await;
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<HeldLease>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        if let Some(renewing) = self.renewing.get() {
            renewing.abort();
        }
    }
}

/// The token, or the holder for people.
async fn acquire(
    connection: &mut Connection,
    session: &SessionId,
    identity: &Identity,
    length: Duration,
) -> Result<Result<i64, String>, Trouble> {
    let statement = connection.statement(ACQUIRE, &ACQUIRE_TYPES).await?;
    // A dead holder on this machine need not be waited for: the second round takes its token's place.
    let mut dead: Option<i64> = None;
    for _ in 0..2 {
        let row = connection
            .client
            .query_opt(
                &statement,
                &[
                    &stored_id(session),
                    &identity.owner,
                    &identity.holder,
                    &identity.machine,
                    &identity.process,
                    &length.as_secs_f64(),
                    &dead,
                ],
            )
            .await?;
        if let Some(row) = row {
            return Ok(Ok(column(&row, 0)?));
        }
        let holder = connection
            .client
            .query_opt(
                "SELECT holder, machine, process, token FROM dragoman.leases WHERE session = $1",
                &[&stored_id(session)],
            )
            .await?;
        let Some(holder) = holder else { continue };
        let (name, machine): (String, String) = (column(&holder, 0)?, column(&holder, 1)?);
        if machine != identity.machine || machine.is_empty() || is_alive(column(&holder, 2)?) {
            return Ok(Err(shown(&name)));
        }
        dead = Some(column(&holder, 3)?);
    }
    Ok(Err("another Dragoman".to_owned()))
}

async fn release(connection: &mut Connection, session: &SessionId, held: &HeldLease) -> Result<(), Trouble> {
    let statement = connection
        .statement(
            "DELETE FROM dragoman.leases WHERE session = $1 AND token = $2 AND owner = $3",
            &[Type::TEXT, Type::INT8, Type::TEXT],
        )
        .await?;
    connection.client.execute(&statement, &[&stored_id(session), &held.token, &held.owner]).await?;
    Ok(())
}

/// Whether the lease is still this one.
pub(crate) async fn renew_one(
    connection: &mut Connection,
    session: &SessionId,
    held: &HeldLease,
) -> Result<bool, Trouble> {
    let sent = Moment::now();
    let lease = [(stored_id(session), held.token)];
    let is_held = !renew(connection, &lease, &held.owner, held.length).await?.is_empty();
    if is_held {
        held.was_renewed(sent);
    }
    Ok(is_held)
}

/// Renews what is still held and returns its tokens.
async fn renew(
    connection: &mut Connection,
    leases: &[(Cow<'_, str>, i64)],
    owner: &str,
    length: Duration,
) -> Result<Vec<i64>, Trouble> {
    const RENEW: &str = "
        UPDATE dragoman.leases SET ends = clock_timestamp() + make_interval(secs => $4)
        FROM unnest($1, $2) AS mine (session, token)
        WHERE leases.session = mine.session AND leases.token = mine.token AND leases.owner = $3
        RETURNING leases.token";
    let types = [Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::TEXT, Type::FLOAT8];
    let statement = connection.statement(RENEW, &types).await?;
    let (sessions, tokens): (Vec<&str>, Vec<i64>) =
        leases.iter().map(|(session, token)| (session.as_ref(), *token)).unzip();
    let rows =
        connection.client.query(&statement, &[&sessions, &tokens, &owner, &length.as_secs_f64()]).await?;
    rows.iter().map(|row| column(row, 0)).collect()
}

/// Renews all leases of a store as long as it lives.
async fn renew_all(leases: Weak<Leases>) {
    let mut failed = false;
    loop {
        let Some(length) = leases.upgrade().map(|leases| leases.length) else { return };
        tokio::time::sleep(if failed { length / RENEWALS / 10 } else { length / RENEWALS }).await;
        let Some(leases) = leases.upgrade() else { return };
        let held: Vec<(SessionId, Arc<HeldLease>)> =
            leases.held().iter().map(|(session, held)| (session.clone(), held.clone())).collect();
        let Some((_, first)) = held.first() else { continue };
        let sent = Moment::now();
        let names: Vec<(Cow<'_, str>, i64)> =
            held.iter().map(|(session, held)| (stored_id(session), held.token)).collect();
        let (names, owner) = (&names, first.owner.as_str());
        let renewed = leases
            .pool
            // A dead connection leaves time for a second try.
            .with_retries(
                RetryTimes { all: length / RENEWALS, one: length / RENEWALS / 2 },
                |mut connection| async move {
                    let renewed = renew(&mut connection, names, owner, length).await;
                    (connection, renewed)
                },
            )
            .await;
        failed = renewed.is_err();
        match renewed {
            Ok(tokens) => {
                for (session, held) in &held {
                    if tokens.contains(&held.token) {
                        held.was_renewed(sent);
                    } else {
                        leases.lose(session, held);
                    }
                }
            }
            Err(failure) => tracing::warn!(%failure, "the leases of chats cannot be renewed"),
        }
    }
}

pub(crate) fn taken_over(session: &SessionId) -> Failure {
    Failure::taken(format!(
        "Another Dragoman writes the chat {session} now, because this one could not renew its lease."
    ))
    .hint("Open the chat again, or fork it.")
}

impl Identity {
    pub(crate) fn new() -> Self {
        let process = std::process::id();
        let host = read_line("/proc/sys/kernel/hostname");
        let boot = read_line("/proc/sys/kernel/random/boot_id");
        // Process ids mean the same only within a namespace of them.
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
        let machine = match (&boot, namespace) {
            (Some(boot), Some(namespace)) => format!("{boot} {}", namespace.display()),
            _ => String::new(),
        };
        let place = host.map(|host| format!(" on {host}")).unwrap_or_default();
        Self {
            owner: uuid::Uuid::now_v7().to_string(),
            holder: format!("Dragoman (process {process}{place})"),
            machine,
            process: i64::from(process),
        }
    }
}

fn read_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(crate) fn is_alive(process: i64) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// For people: short and plain, whatever the row says.
pub(crate) fn shown(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(200).collect()
}
