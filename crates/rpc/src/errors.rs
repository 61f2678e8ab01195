//! Why a message was not sent, and why a request has no result.

use std::fmt;

use crate::message::Fault;

/// Why a message was not queued.
#[derive(Debug)]
pub enum NotSent {
    /// The peer is behind: drop what is queued up here, await [`Outgoing::ready`], read on from the journal.
    Full,
    /// The connection has ended.
    Closed,
    /// The params cannot be written as JSON.
    Unserializable(serde_json::Error),
}

/// Why a request has no result.
#[derive(Debug)]
pub enum RequestError {
    /// The peer answered with an error.
    Fault(Fault),
    /// No answer came in time.
    Deadline,
    /// The connection ended first.
    Closed,
    /// Far too much is waiting to be sent already.
    Full,
    /// The answer was over the message limit.
    TooLarge,
    /// The params cannot be written as JSON.
    Unserializable(serde_json::Error),
    /// The result is not of the expected shape.
    Unexpected(serde_json::Error),
}

impl From<NotSent> for RequestError {
    fn from(error: NotSent) -> RequestError {
        match error {
            NotSent::Full => RequestError::Full,
            NotSent::Closed => RequestError::Closed,
            NotSent::Unserializable(error) => RequestError::Unserializable(error),
        }
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSent::Full => formatter.write_str("the peer does not read fast enough"),
            NotSent::Closed => formatter.write_str("the connection has ended"),
            NotSent::Unserializable(error) => {
                write!(formatter, "the params cannot be written as JSON: {error}")
            }
        }
    }
}

impl std::error::Error for NotSent {}

impl fmt::Display for RequestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Fault(fault) => write!(formatter, "the peer answered: {fault}"),
            RequestError::Deadline => formatter.write_str("the peer did not answer in time"),
            RequestError::Closed => formatter.write_str("the connection has ended"),
            RequestError::Full => formatter.write_str("the peer does not read fast enough"),
            RequestError::TooLarge => formatter.write_str("the peer's answer is over the message limit"),
            RequestError::Unserializable(error) => {
                write!(formatter, "the params cannot be written as JSON: {error}")
            }
            RequestError::Unexpected(error) => {
                write!(formatter, "the peer's answer was not understood: {error}")
            }
        }
    }
}

impl std::error::Error for RequestError {}
