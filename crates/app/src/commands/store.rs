//! `dragoman store`: what can be done with the store as a whole. `migrate` copies all chats between the SQLite file and the PostgreSQL database, in either direction.

use std::process::ExitCode;

use config::Environment;
use domain::{Failure, Store};
use serde_json::json;
use store::Migrated;
use terminal::text::clean_line;

use super::interfaces::copy_tabs;
use super::{failed, store_check};
use crate::{lifetime, stores};

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
        let migrated = store::migrate(from.as_ref(), to.as_ref(), delete).await?;
        let spent_today = carry_today(from.as_ref(), to.as_ref()).await?;
        let tabs = copy_tabs(from, to).await?;
        print(&migrated, spent_today, tabs, json)?;
        if migrated.left.is_empty() {
            return Ok(());
        }
        Err(Failure::user(format!("{} of the chats were left out.", migrated.left.len()))
            .hint("Close them elsewhere, or delete one of the two versions, then run this again."))
    })
}

/// `spent_today` is the cost of today as the other store has it now, `tabs` counts the copied tabs of studio.
fn print(migrated: &Migrated, spent_today: f64, tabs: usize, json: bool) -> Result<(), Failure> {
    let Migrated { copied, known, facts, left } = migrated;
    let text = if json {
        let left: Vec<_> =
            left.iter().map(|(id, reason)| json!({"id": id.as_str(), "reason": reason})).collect();
        let object = json!({"copied": copied, "alreadyThere": known, "facts": facts,
            "spentToday": spent_today, "studioTabs": tabs, "leftOut": left});
        format!("{object}\n")
    } else {
        let mut text =
            format!("{copied} chats copied and verified ({facts} facts), {known} were there already.\n");
        if tabs > 0 {
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
