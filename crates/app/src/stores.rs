//! Opens the store of the chats: the SQLite file in the data folder, or the PostgreSQL database that the user's own
//! settings name.
//!
//! Invariants: opening reads two small files and connects to nothing; the first use of the store does. What was opened is
//! closed at the end of every command, also where a task that outlives the command still has it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use config::{Environment, Inputs};
use domain::{Failure, Store};
use store::Journal;

use crate::logging;

/// The files that this process has opened.
static OPENED: Mutex<Vec<Weak<dyn Store>>> = Mutex::new(Vec::new());

/// Lets the stores write back what is left and close their files.
pub(crate) fn close_all() {
    let opened = std::mem::take(&mut *OPENED.lock().unwrap_or_else(PoisonError::into_inner));
    opened.iter().filter_map(Weak::upgrade).for_each(|store| store.close());
}

/// The store that the user's settings name.
pub(crate) fn open(environment: &Environment) -> Result<Arc<dyn Store>, Failure> {
    match open_database(environment)? {
        Some(database) => Ok(database),
        None => open_file(environment),
    }
}

/// Whether `open` finds a store: a database that the settings name, or the file.
pub(crate) fn is_there(environment: &Environment) -> bool {
    config::may_name_store(environment) || environment.data_dir().join("chats.sqlite").exists()
}

/// The SQLite file in the data folder, whatever the settings name.
pub(crate) fn open_file(environment: &Environment) -> Result<Arc<dyn Store>, Failure> {
    let store: Arc<dyn Store> = Arc::new(Journal::open(&environment.data_dir())?);
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&store));
    Ok(store)
}

/// The PostgreSQL database, where the settings name one.
pub(crate) fn open_database(environment: &Environment) -> Result<Option<Arc<dyn Store>>, Failure> {
    if !config::may_name_store(environment) {
        return Ok(None);
    }
    // Without a workspace: no project and no editor has a say.
    let resolved = config::resolve(environment, &Inputs::default());
    let Some(address) = resolved.settings.store.clone() else { return Ok(None) };
    logging::redact_with(&resolved.redactor);
    connect_later(address, resolved.settings.network.ca_cert_file.clone()).map(Some)
}

/// The queue of tasks in the same database.
#[cfg(feature = "postgres")]
pub(crate) fn open_queue(environment: &Environment) -> Result<Option<store_postgres::TaskQueue>, Failure> {
    if !config::may_name_store(environment) {
        return Ok(None);
    }
    let resolved = config::resolve(environment, &Inputs::default());
    let Some(address) = resolved.settings.store.clone() else { return Ok(None) };
    logging::redact_with(&resolved.redactor);
    let authority = resolved.settings.network.ca_cert_file.clone();
    Ok(Some(store_postgres::TaskQueue::new(look_up(address, authority))))
}

/// Looks the address up when a connection is made.
#[cfg(feature = "postgres")]
fn look_up(
    address: config::StoreAddress,
    authority: Option<std::path::PathBuf>,
) -> impl store_postgres::AddressLookup {
    move || -> domain::BoxFuture<'static, Result<store_postgres::Address, Failure>> {
        let (address, authority) = (address.clone(), authority.clone());
        Box::pin(async move { store_postgres::Address::parse(address.get().await?.expose(), authority) })
    }
}

#[cfg(feature = "postgres")]
fn connect_later(
    address: config::StoreAddress,
    authority: Option<std::path::PathBuf>,
) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(store_postgres::PostgresStore::new(look_up(address, authority))))
}

#[cfg(not(feature = "postgres"))]
fn connect_later(_: config::StoreAddress, _: Option<std::path::PathBuf>) -> Result<Arc<dyn Store>, Failure> {
    Err(Failure::config(
        "The setting `store` names a PostgreSQL database, and this build has no support for it.",
    )
    .hint("Use a released build, or build with the feature `postgres`."))
}

/// The snapshots of what turns changed, beside the chats.
pub(crate) fn undo_store(environment: &Environment, settings: config::UndoSettings) -> undo::UndoStore {
    let config::UndoSettings { file_megabytes, total_megabytes } = settings;
    let limits =
        undo::Limits { file: file_megabytes << 20, total: total_megabytes << 20, ..undo::Limits::default() };
    undo::UndoStore::new(environment.data_dir().join("undo"), limits)
}
