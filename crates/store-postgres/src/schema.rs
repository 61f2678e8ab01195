//! The tables, and how older ones become current ones.
//!
//! Invariants: a released step never changes; tables of a newer format are refused untouched; of several processes the
//! first makes the tables.

use domain::Failure;
use tokio_postgres::Client;

use crate::address::Address;
use crate::error::{Trouble, column};

/// Step N makes format N of format N-1.
const STEPS: &[&str] = &["
    CREATE TABLE dragoman.format (version integer NOT NULL);
    INSERT INTO dragoman.format VALUES (0);

    -- One row per chat, made of its facts and in the same transaction.
    CREATE TABLE dragoman.sessions (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL UNIQUE,
        title text,
        model text,
        workspace text NOT NULL, -- JSON array of paths
        folders text[] NOT NULL, -- the same paths
        parent text,
        created bigint NOT NULL, -- milliseconds since 1970, as all times of chats
        updated bigint NOT NULL,
        messages bigint NOT NULL,
        newest bigint NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX sessions_by_time ON dragoman.sessions (updated DESC, key DESC);
    CREATE INDEX sessions_by_folder ON dragoman.sessions USING gin (folders);

    CREATE TABLE dragoman.facts (
        session bigint NOT NULL,
        number bigint NOT NULL,
        at bigint NOT NULL,
        kind text NOT NULL,
        body text NOT NULL, -- JSON
        PRIMARY KEY (session, number)
    );

    -- The words of the messages.
    CREATE TABLE dragoman.search (
        session bigint NOT NULL,
        number bigint NOT NULL,
        words tsvector NOT NULL,
        PRIMARY KEY (session, number)
    );
    CREATE INDEX search_by_word ON dragoman.search USING gin (words);

    CREATE TABLE dragoman.records (
        kind text NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (kind, key)
    );

    -- The right to append to a chat. The token counts up with each holder; the clock of this server judges the end.
    CREATE TABLE dragoman.leases (
        session text PRIMARY KEY,
        token bigint NOT NULL,
        owner text NOT NULL, -- of one store in one process
        holder text NOT NULL, -- for people
        machine text NOT NULL,
        process bigint NOT NULL,
        ends timestamptz NOT NULL,
        followed timestamptz -- until then another process wants to be woken
    ) WITH (fillfactor = 50);
    CREATE SEQUENCE dragoman.lease_tokens;
", "
    -- The queue of tasks for workers. A worker has a task under a token, as a process has a chat under a lease.
    CREATE TABLE dragoman.tasks (
        id text PRIMARY KEY,
        state text NOT NULL DEFAULT 'waiting', -- waiting, running, done, failed, cancelled
        prompt text NOT NULL,
        repo text NOT NULL,
        reference text NOT NULL,
        limits text NOT NULL, -- JSON
        submitted timestamptz NOT NULL DEFAULT clock_timestamp(),
        started timestamptz,
        ended timestamptz,
        attempts bigint NOT NULL DEFAULT 0,
        cancel boolean NOT NULL DEFAULT false,
        token bigint,
        owner text, -- one worker
        worker text, -- for people
        machine text,
        process bigint,
        ends timestamptz,
        base text, -- the commit that the work began with
        outcome text, -- JSON
        patch bytea -- the work so far
    ) WITH (fillfactor = 70);
    CREATE INDEX tasks_to_do ON dragoman.tasks (submitted, id) WHERE state IN ('waiting', 'running');
    CREATE INDEX tasks_by_time ON dragoman.tasks (submitted DESC, id DESC);
", "
    -- The checksum of a fact, of its chat, its number, its kind and its body. Facts from before have none.
    ALTER TABLE dragoman.facts ADD COLUMN sum bigint;
"];

const CURRENT: i32 = STEPS.len() as i32;

/// "Drgm": one process at a time makes the tables.
const LOCK: i64 = 0x4472_676d;

/// Makes the tables where they are not there.
pub(crate) async fn prepare(client: &mut Client, address: &Address) -> Result<(), Trouble> {
    if version(client).await? == Some(CURRENT) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let found = version(&transaction).await?;
    let version = found.unwrap_or(0);
    if version > CURRENT {
        return Err(Failure::config(format!(
            "The chat database {address} was written by a newer Dragoman (format {version}; this one reads up to \
             {CURRENT})."
        ))
        .hint("Update Dragoman. The database was not changed.")
        .into());
    }
    // A role without the right to make schemas may have been given an empty one.
    let exists = "SELECT to_regnamespace('dragoman') IS NOT NULL";
    if !column::<bool>(&transaction.query_one(exists, &[]).await?, 0)? {
        transaction.batch_execute("CREATE SCHEMA dragoman").await?;
    }
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.batch_execute(step).await?;
    }
    transaction.execute("UPDATE dragoman.format SET version = $1", &[&CURRENT]).await?;
    Ok(transaction.commit().await?)
}

/// `None` where the database has none of our tables.
async fn version(client: &impl tokio_postgres::GenericClient) -> Result<Option<i32>, Trouble> {
    let row = client.query_one("SELECT to_regclass('dragoman.format') IS NOT NULL", &[]).await?;
    if !column::<bool>(&row, 0)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM dragoman.format", &[]).await?;
    row.map_or(Ok(Some(0)), |row| Ok(Some(column(&row, 0)?)))
}
