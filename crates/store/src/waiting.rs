//! How long a connection waits for a lock that another process holds.

use std::time::Duration;

use rusqlite::Connection;

/// The longest wait for a lock that another process holds.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Sets how long the connection waits for a lock that another process holds.
pub(crate) fn wait_for_others(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(pause_for_others))
}

/// A commit takes about as long as a disk write, so short and steady pauses keep several processes fair.
fn pause_for_others(tries: i32) -> bool {
    const SHORT: Duration = Duration::from_micros(100);
    const LONG: Duration = Duration::from_millis(5);
    const SHORT_TRIES: i32 = 200;
    const MOST_TRIES: i32 = SHORT_TRIES + (BUSY_TIMEOUT.as_millis() / LONG.as_millis()) as i32;
    std::thread::sleep(if tries < SHORT_TRIES { SHORT } else { LONG });
    tries < MOST_TRIES
}
