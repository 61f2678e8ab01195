//! `dragoman store`: what can be done with the store as a whole. `migrate` copies all chats between the SQLite file and the PostgreSQL database, in either direction.
//!
//! Invariants: a chat is copied with its numbers and times; each is compared by checksum after the copy; a run that was
//! interrupted is continued by the next one; a chat that differs in both stores is left alone and named.

use std::process::ExitCode;
use std::sync::Arc;

use config::Environment;
use domain::store::{Lease, ListFilter};
use domain::{Failure, Recorded, SessionId, Store};
use serde_json::json;
use sha2::{Digest, Sha256};
use terminal::text::clean_line;

use super::interfaces::copy_tabs;
use super::{failed, store_check};
use crate::{lifetime, stores};

/// Facts and chats that are read at a time.
const PAGE: usize = 512;

#[derive(clap::Subcommand)]
pub(crate) enum StoreTask {
    /// Copy all chats into another store, verify each, and go on where an earlier run stopped.
    #[command(
        after_help = "The database is the one that `store` or DRAGOMAN_STORE names (`dragoman docs scale`).\nExit code 1: a chat was left out.\n\nExample:\n  dragoman store migrate --to postgres\n  dragoman store migrate --to sqlite --delete"
    )]
    Migrate {
        /// Where the chats go; they come from the other one.
        #[arg(long, value_enum)]
        to: StoreKind,
        /// Delete each chat from where it came from, after it was verified.
        #[arg(long)]
        delete: bool,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Look at every stored chat and name the damaged ones.
    #[command(
        after_help = "Nothing is changed. Exit code 1: there is damage.\n\nExample:\n  dragoman store check\n  dragoman store check --json"
    )]
    Check {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Save what can be read of a damaged file, and keep a copy of it.
    #[command(
        after_help = "A file without damage is left as it is. Exit code 1: the file could not be repaired.\n\nExample:\n  dragoman store repair"
    )]
    Repair {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// The file in the data folder.
    Sqlite,
    /// The database that the settings name.
    Postgres,
}

/// What became of the chats.
#[derive(Default)]
struct Outcome {
    copied: u64,
    /// They were there already, and equal.
    known: u64,
    facts: u64,
    /// The cost of today, as the other store has it now.
    spent_today: f64,
    /// Tabs of studio that were copied.
    tabs: usize,
    /// With the reason.
    left: Vec<(SessionId, String)>,
}

pub(crate) fn run(task: StoreTask) -> ExitCode {
    match task {
        StoreTask::Migrate { to, delete, json } => run_migration(to, delete, json),
        StoreTask::Check { json } => store_check::check(json),
        StoreTask::Repair { json } => store_check::repair(json),
    }
}

fn run_migration(to: StoreKind, delete: bool, json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let opened = stores::open_database(&environment).and_then(|database| {
        let database = database.ok_or_else(|| {
            Failure::config("No PostgreSQL database is set.").hint(
                "Set `store` in your own config.json, or DRAGOMAN_STORE, to postgres://…; see `dragoman docs scale`.",
            )
        })?;
        Ok((database, stores::open_file(&environment)?))
    });
    let (database, file) = match opened {
        Ok(opened) => opened,
        Err(failure) => return failed(&failure),
    };
    lifetime::run(async {
        let (from, to) = match to {
            StoreKind::Postgres => (file, database),
            StoreKind::Sqlite => (database, file),
        };
        let mut outcome = migrate(from.as_ref(), to.as_ref(), delete).await?;
        outcome.spent_today = carry_today(from.as_ref(), to.as_ref()).await?;
        outcome.tabs = copy_tabs(from, to).await?;
        print(&outcome, json)?;
        if outcome.left.is_empty() {
            return Ok(());
        }
        Err(Failure::user(format!("{} of the chats were left out.", outcome.left.len()))
            .hint("Close them elsewhere, or delete one of the two versions, then run this again."))
    })
}

fn print(outcome: &Outcome, json: bool) -> Result<(), Failure> {
    let Outcome { copied, known, facts, spent_today, tabs, left } = outcome;
    let text = if json {
        let left: Vec<_> =
            left.iter().map(|(id, reason)| json!({"id": id.as_str(), "reason": reason})).collect();
        let object = json!({"copied": copied, "alreadyThere": known, "facts": facts,
            "spentToday": spent_today, "studioTabs": tabs, "leftOut": left});
        format!("{object}\n")
    } else {
        let mut text =
            format!("{copied} chats copied and verified ({facts} facts), {known} were there already.\n");
        if *tabs > 0 {
            text.push_str(&format!("{tabs} tabs of studio copied with their versions.\n"));
        }
        for (id, reason) in left {
            text.push_str(&format!("{} was left out: {}\n", clean_line(id.as_str()), clean_line(reason)));
        }
        text
    };
    crate::output::print(domain::visible_text(&text).as_bytes())
}

/// The cost of today counts for the cap of the day in both stores. Running it twice adds nothing.
async fn carry_today(from: &dyn Store, to: &dyn Store) -> Result<f64, Failure> {
    let (kind, key) = engine::record_of_today();
    let (source, target) = (from.add(kind, &key, 0.0).await?, to.add(kind, &key, 0.0).await?);
    to.add(kind, &key, (source - target).max(0.0)).await
}

async fn migrate(from: &dyn Store, to: &dyn Store, delete: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut after = None;
    // Deleting and copying change the list, so it is read first.
    let mut ids = Vec::new();
    loop {
        let filter = ListFilter { limit: Some(PAGE), after, ..ListFilter::default() };
        let page = from.list(filter).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.position());
        ids.extend(page.into_iter().map(|chat| chat.id));
    }
    // The oldest first, so that the order of a list by time is that of the keys as well.
    for id in ids.iter().rev() {
        match migrate_chat(from, to, id, delete).await? {
            Ok(0) => outcome.known += 1,
            Ok(facts) => (outcome.copied, outcome.facts) = (outcome.copied + 1, outcome.facts + facts),
            Err(reason) => outcome.left.push((id.clone(), reason)),
        }
    }
    Ok(outcome)
}

/// The number of facts that were copied, or why the chat was left out.
async fn migrate_chat(
    from: &dyn Store,
    to: &dyn Store,
    id: &SessionId,
    delete: bool,
) -> Result<Result<u64, String>, Failure> {
    for store in [from, to] {
        if let Lease::HeldBy { holder, .. } = store.lease(id).await? {
            from.release(id).await?;
            return Ok(Err(format!("Another Dragoman writes it: {holder}.")));
        }
    }
    let copied = copy_chat(from, to, id).await;
    to.release(id).await?;
    if delete && matches!(copied, Ok(Ok(_))) {
        from.delete(id).await?;
    }
    from.release(id).await?;
    copied
}

async fn copy_chat(from: &dyn Store, to: &dyn Store, id: &SessionId) -> Result<Result<u64, String>, Failure> {
    let (source, target) = (from.newest(id).await?.unwrap_or(0), to.newest(id).await?.unwrap_or(0));
    let common = source.min(target);
    if checksum(from, id, common).await? != checksum(to, id, common).await? {
        return Ok(Err("The other store has a chat of this name with other contents.".to_owned()));
    }
    let mut newest = target;
    while newest < source {
        let page = from.read(id, newest, PAGE).await?;
        let Some(last) = page.last() else { break };
        let last = last.number;
        to.adopt(id, page).await?;
        newest = last;
    }
    if checksum(from, id, source).await? != checksum(to, id, source).await? {
        return Ok(Err("Its copy differs from it. Nothing was deleted.".to_owned()));
    }
    Ok(Ok(newest - target))
}

/// SHA-256 of the first facts of a chat, as they stand in an export.
async fn checksum(store: &dyn Store, id: &SessionId, count: u64) -> Result<[u8; 32], Failure> {
    let mut hash = Sha256::new();
    let mut newest = 0;
    while newest < count {
        let page = store.read(id, newest, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for recorded in page.iter().filter(|recorded: &&Recorded| recorded.number <= count) {
            hash.update(store::export_line(recorded)?);
            hash.update(b"\n");
        }
        newest = page.last().map_or(count, |last| last.number);
    }
    Ok(hash.finalize().into())
}
