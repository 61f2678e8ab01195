//! What goes wrong with a database, and whether waiting helps.
//!
//! Invariant: no message holds text of a chat or a password; of the server's errors only the first line is shown.

use std::borrow::Cow;
use std::time::Duration;

use domain::{Failure, SessionId};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSql;

use crate::address::Address;

#[derive(Debug)]
pub(crate) enum Trouble {
    /// The database is away, restarting, full or busy: the same again may succeed.
    Away(String),
    /// Already a message for the user; trying again does not help.
    Refused(Failure),
}

impl Trouble {
    /// For the user, where nothing is tried again.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Away(reason) => away(None, &reason),
            Self::Refused(failure) => failure,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database) = error.as_db_error() else {
            let text = text_of(&error);
            let is_setting = text.starts_with("invalid configuration") || has_bad_certificate(&error);
            return if is_setting { Self::Refused(refused(&text)) } else { Self::Away(text) };
        };
        let message = first_line(database.message());
        let code = database.code();
        match (code.code().get(..2).unwrap_or_default(), code) {
            // Connections, resources, an operator's intervention, a restart, conflicts of transactions, and a replica
            // that is about to be promoted.
            ("08" | "40" | "53" | "57" | "58", _) => Self::Away(message),
            (_, code)
                if [&SqlState::READ_ONLY_SQL_TRANSACTION, &SqlState::LOCK_NOT_AVAILABLE].contains(&code) =>
            {
                Self::Away(message)
            }
            ("28" | "3D" | "42", _) => Self::Refused(refused(&message)),
            _ => Self::Refused(Failure::internal(format!("The chat database failed: {message}."))),
        }
    }
}

fn refused(message: &str) -> Failure {
    Failure::config(format!("The chat database cannot be used: {message}.")).hint(
        "Check user, password, database, rights and certificate in the setting `store`; see `dragoman docs scale`.",
    )
}

/// A value of a row.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Trouble> {
    row.try_get(index).map_err(|_| {
        Trouble::Refused(Failure::internal("A row of the chat database has an unexpected form."))
    })
}

/// PostgreSQL has signed numbers only.
pub(crate) fn unsigned(row: &Row, index: usize) -> Result<u64, Trouble> {
    Ok(u64::try_from(column::<i64>(row, index)?).unwrap_or(0))
}

/// The id of a chat as the tables have it: PostgreSQL stores no NUL.
pub(crate) fn stored_id(session: &SessionId) -> Cow<'_, str> {
    match session.as_str() {
        plain if !plain.contains(['\0', '\u{1}']) => Cow::Borrowed(plain),
        odd => Cow::Owned(odd.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0")),
    }
}

pub(crate) fn loaded_id(text: &str) -> SessionId {
    SessionId::new(text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}"))
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn has_bad_certificate(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let custom = inner.downcast_ref::<std::io::Error>().and_then(|error| error.get_ref());
        if matches!(
            custom.and_then(|custom| custom.downcast_ref::<rustls::Error>()),
            Some(rustls::Error::InvalidCertificate(_))
        ) {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// After all retries.
pub(crate) fn away(address: Option<&Address>, reason: &str) -> Failure {
    let name = address.map(|address| format!(" {address}")).unwrap_or_default();
    let mut failure = Failure::config(format!("The chat database{name} cannot be used now: {reason}.")).hint(
        "Check that its server runs and can be reached, then try again. Everything stored before is safe.",
    );
    failure.retry_after = Some(Duration::from_secs(1));
    failure
}

/// The error and its causes; the driver's own text names neither address nor password.
fn text_of(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    first_line(&text)
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars()
        .filter(|char| !char.is_control())
        .take(300)
        .collect::<String>()
        .trim_end_matches('.')
        .to_owned()
}
