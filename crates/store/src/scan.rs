//! Reads the rows of a table of which a part may be damaged: from its beginning, and then from its end.

use rusqlite::{Connection, Row};

/// The keys and ids of chats as the index of ids has them: it does not read the table.
pub(crate) const IDS: &str =
    "SELECT key, id FROM sessions INDEXED BY sqlite_autoindex_sessions_1 ORDER BY id";

/// Shows the rows of a query that ends with its order, up to the first error, then from the other end.
pub(crate) fn scan(connection: &Connection, query: &str, mut see: impl FnMut(&Row<'_>)) {
    for query in [query.to_owned(), backwards(query)] {
        if scan_one_way(connection, &query, &mut see).is_ok() {
            return;
        }
    }
}

fn scan_one_way(
    connection: &Connection,
    query: &str,
    see: &mut impl FnMut(&Row<'_>),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        see(row);
    }
    Ok(())
}

/// The same query from its other end.
fn backwards(query: &str) -> String {
    match query.split_once(" ORDER BY ") {
        Some((select, order)) => {
            let order: Vec<String> = order.split(", ").map(|column| format!("{column} DESC")).collect();
            format!("{select} ORDER BY {}", order.join(", "))
        }
        None => query.to_owned(),
    }
}
