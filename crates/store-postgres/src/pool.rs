//! A few connections to the database, made when they are needed, and the rule of trying again.
//!
//! Must not know tables. Invariants: a connection whose last use failed or was given up is closed, so no answer of one
//! request is taken for that of another; every try has a deadline, and so have all tries together.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::{BoxFuture, Failure};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Statement};

use crate::address::Address;
use crate::error::{Trouble, away};
use crate::schema;
use crate::tls::Tls;

/// Connections that a process has at most, beside the one that listens.
const CONNECTIONS: usize = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const SILENT: &str = "it does not answer";

/// For every connection: a commit that was acknowledged is on the server's disk, whatever the role's default is; no
/// request runs for longer than this program waits for it.
const SESSION: &str = "
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local');
    SET statement_timeout = '60s';
    SET lock_timeout = '8s';
    SET idle_in_transaction_session_timeout = '30s';
    SET client_min_messages = 'warning'";

/// Looks the address up when the first connection is made: it may come from a program of the user.
pub(crate) type AddressSource = Box<dyn Fn() -> BoxFuture<'static, Result<Address, Failure>> + Send + Sync>;

/// How long something is tried.
#[derive(Clone, Copy)]
pub(crate) struct RetryTimes {
    /// All tries together.
    pub(crate) all: Duration,
    /// One try; then its connection counts as dead.
    pub(crate) one: Duration,
}

pub(crate) struct Pool {
    source: AddressSource,
    address: OnceCell<Address>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    tls: OnceLock<Tls>,
    schema: OnceCell<()>,
    /// Why the last try failed, or what a first connection waits for; `None` after a success.
    trouble: Mutex<Option<String>>,
}

/// One connection with its prepared statements.
pub(crate) struct Connection {
    pub(crate) client: Client,
    statements: HashMap<&'static str, Statement>,
    driver: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A dead peer must not keep the task for ever.
        self.driver.abort();
    }
}

impl Connection {
    pub(crate) async fn statement(
        &mut self,
        text: &'static str,
        types: &[Type],
    ) -> Result<Statement, Trouble> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare_typed(text, types).await?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }
}

impl Pool {
    pub(crate) fn new(source: AddressSource) -> Self {
        Self {
            source,
            address: OnceCell::new(),
            idle: Mutex::default(),
            permits: Semaphore::new(CONNECTIONS),
            tls: OnceLock::new(),
            schema: OnceCell::new(),
            trouble: Mutex::default(),
        }
    }

    /// Tries until it succeeds, waiting does not help, or the time is over.
    pub(crate) async fn with_retries<T, F>(
        &self,
        times: RetryTimes,
        mut attempt: impl FnMut(Connection) -> F + Send,
    ) -> Result<T, Failure>
    where
        F: Future<Output = (Connection, Result<T, Trouble>)> + Send,
    {
        let deadline = Instant::now() + times.all;
        let mut pause = FIRST_PAUSE;
        loop {
            let reason = match self.once(times.one, &mut attempt).await {
                Ok(done) => {
                    self.set_trouble(None);
                    return Ok(done);
                }
                Err(Trouble::Refused(failure)) => return Err(failure),
                Err(Trouble::Away(reason)) => reason,
            };
            self.set_trouble(Some(reason.clone()));
            // What waits in the pool is most likely dead too.
            self.idle().clear();
            if Instant::now() + pause > deadline {
                return Err(away(self.address.get(), &reason));
            }
            tracing::debug!(reason, "the chat database is away");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Why callers wait, as a sentence for the user.
    pub(crate) fn trouble(&self) -> Option<String> {
        let reason = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(away(self.address.get(), &reason).to_string())
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// One try.
    pub(crate) async fn once<T, F>(
        &self,
        limit: Duration,
        attempt: &mut (impl FnMut(Connection) -> F + Send),
    ) -> Result<T, Trouble>
    where
        F: Future<Output = (Connection, Result<T, Trouble>)> + Send,
    {
        let late = |_| Trouble::Away(SILENT.to_owned());
        let permit = timeout(limit, self.permits.acquire()).await.map_err(late)?;
        let _permit = permit.map_err(|_| Trouble::Refused(Failure::closed()))?;
        let work = async {
            let idle = self.idle().pop();
            let connection = match idle.filter(|connection| !connection.client.is_closed()) {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let (connection, outcome) = attempt(connection).await;
            if outcome.is_ok() {
                self.idle().push(connection);
            }
            outcome
        };
        timeout(limit, work).await.map_err(late)?
    }

    /// A connection to a database in the current format.
    async fn connect(&self) -> Result<Connection, Trouble> {
        let address = self.address().await?;
        if self.trouble().is_none() {
            self.set_trouble(Some(SILENT.to_owned()));
        }
        let (client, driver) = self.open(address).await?;
        let driver = tokio::spawn(driver);
        let mut connection = Connection { client, statements: HashMap::new(), driver };
        connection.client.batch_execute(SESSION).await?;
        self.schema.get_or_try_init(|| schema::prepare(&mut connection.client, address)).await?;
        Ok(connection)
    }

    async fn open(&self, address: &Address) -> Result<(Client, BoxFuture<'static, ()>), Trouble> {
        if address.uses_tls() {
            let (client, connection) = address.config.connect(self.tls(address)?).await?;
            return Ok((client, Box::pin(async move { drop(connection.await) })));
        }
        let (client, connection) = address.config.connect(NoTls).await?;
        Ok((client, Box::pin(async move { drop(connection.await) })))
    }

    pub(crate) async fn address(&self) -> Result<&Address, Failure> {
        self.address.get_or_try_init(|| (self.source)()).await
    }

    pub(crate) fn tls(&self, address: &Address) -> Result<Tls, Failure> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let made = Tls::new(address)?;
        Ok(self.tls.get_or_init(|| made).clone())
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
