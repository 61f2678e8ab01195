//! Wakes readers of a chat that another process writes.
//!
//! A notification only wakes: the reader then reads the journal, and it reads now and then without being woken. The
//! writer notifies only while the lease's row says that a reader wants it, because notifying slows all commits of a
//! PostgreSQL server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use domain::SessionId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::error::{Trouble, stored_id};
use crate::pool::{Connection, Pool};

/// A reader's wish to be woken lasts so long, in seconds.
const WISH: f64 = 10.0;
/// A wish is renewed after this.
const WISH_RENEWAL: Duration = Duration::from_secs(5);
const RECONNECT: Duration = Duration::from_secs(1);
/// Names of changed chats that wait for slow readers; a reader that missed some is woken.
const BACKLOG: usize = 256;

pub(crate) struct Listener {
    pool: Arc<Pool>,
    task: OnceLock<(broadcast::Sender<String>, JoinHandle<()>)>,
    wishes: Mutex<HashMap<SessionId, Instant>>,
}

impl Listener {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, task: OnceLock::new(), wishes: Mutex::default() }
    }

    /// Resolves when another process may have appended to the chat.
    pub(crate) async fn changed(&self, session: &SessionId) {
        let (sender, _) = self.task.get_or_init(|| {
            let sender = broadcast::Sender::new(BACKLOG);
            (sender.clone(), tokio::spawn(listen(self.pool.clone(), sender)))
        });
        let mut receiver = sender.subscribe();
        loop {
            if self.is_wish_due(session) {
                self.wish(session).await;
            }
            match tokio::time::timeout(WISH_RENEWAL, receiver.recv()).await {
                Ok(Ok(changed)) if changed != stored_id(session) => {}
                Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => return,
                Ok(Err(broadcast::error::RecvError::Closed)) => std::future::pending().await,
                Err(_) => {}
            }
        }
    }

    fn is_wish_due(&self, session: &SessionId) -> bool {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        wishes.retain(|_, at| at.elapsed() < WISH_RENEWAL);
        let is_due = !wishes.contains_key(session);
        if is_due {
            wishes.insert(session.clone(), Instant::now());
        }
        is_due
    }

    async fn wish(&self, session: &SessionId) {
        let mut wish = |mut connection: Connection| async move {
            let wished = wish(&mut connection, session).await;
            (connection, wished)
        };
        if let Err(trouble) = self.pool.once(WISH_RENEWAL, &mut wish).await {
            tracing::debug!(?trouble, "a reader cannot ask to be woken");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((_, task)) = self.task.get() {
            task.abort();
        }
    }
}

async fn wish(connection: &mut Connection, session: &SessionId) -> Result<(), Trouble> {
    let statement = connection
        .statement(
            "UPDATE dragoman.leases SET followed = clock_timestamp() + make_interval(secs => $2) WHERE session = $1",
            &[Type::TEXT, Type::FLOAT8],
        )
        .await?;
    connection.client.execute(&statement, &[&stored_id(session), &WISH]).await?;
    Ok(())
}

/// Listens for ever, over one connection after the other.
async fn listen(pool: Arc<Pool>, sender: broadcast::Sender<String>) {
    loop {
        if let Err(trouble) = listen_once(&pool, &sender).await {
            tracing::debug!(?trouble, "changes of other processes are polled");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_once(pool: &Pool, sender: &broadcast::Sender<String>) -> Result<(), Trouble> {
    let address = pool.address().await?;
    if address.uses_tls() {
        let (client, connection) = address.config.connect(pool.tls(address)?).await?;
        return forward(client, connection, sender).await;
    }
    let (client, connection) = address.config.connect(NoTls).await?;
    forward(client, connection, sender).await
}

async fn forward<S, T>(
    client: tokio_postgres::Client,
    mut connection: tokio_postgres::Connection<S, T>,
    sender: &broadcast::Sender<String>,
) -> Result<(), Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let messages = async {
        while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message? {
                let _ = sender.send(notification.payload().to_owned());
            }
        }
        Ok(())
    };
    // The client must live as long as the connection.
    let listening = async {
        client.batch_execute("LISTEN dragoman").await?;
        std::future::pending::<Result<(), Trouble>>().await
    };
    tokio::select! {
        ended = messages => ended,
        refused = listening => refused,
    }
}
