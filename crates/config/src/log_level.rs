//! `logLevel`: how much the log says.

use crate::cursor::Cursor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        match cursor.text().as_deref() {
            Some("error") => Self::Error,
            Some("warn" | "warning") | None => Self::Warn,
            Some("info") => Self::Info,
            Some("debug") => Self::Debug,
            Some("trace") => Self::Trace,
            Some(_) => {
                cursor.report_invalid("must be error, warn, info, debug or trace");
                Self::Warn
            }
        }
    }
}
