//! The one error that crosses the link. Each protocol maps its kind to a code of its own, in one place.
//!
//! Invariant: the message and hint are sentences for a person and never hold a secret.

use std::fmt;
use std::time::Duration;

/// Whose turn it is to do something about a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The request itself is wrong: unknown session, bad parameter.
    User,
    /// Another process has what is asked for; it may be free later.
    Taken,
    /// A configuration file or setting is wrong.
    Config,
    /// A key is missing or refused.
    Auth,
    /// A limit of money, rate or size was reached.
    Quota,
    /// The model's server failed.
    Provider,
    /// A tool failed in a way that ends the turn.
    Tool,
    /// A bug in Dragoman.
    Internal,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub kind: FailureKind,
    /// What happened, as a sentence.
    pub message: String,
    /// What to do next, as a sentence.
    pub hint: Option<String>,
    /// When trying again makes sense.
    pub retry_after: Option<Duration>,
    /// The prompt does not fit into the model's context: a shorter one may. Not kept, and not sent to other processes.
    pub is_too_long: bool,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, retry_after: None, is_too_long: false }
    }

    pub fn user(message: impl Into<String>) -> Self {
        Self::new(FailureKind::User, message)
    }

    pub fn taken(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Taken, message)
    }

    pub fn config(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Config, message)
    }

    pub fn auth(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Auth, message)
    }

    pub fn provider(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Provider, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The process that ran a turn ended before the turn did.
    pub fn interrupted() -> Self {
        Self::internal("The answer was interrupted: the Dragoman that worked on it has ended.")
            .hint("Send the prompt again, or ask it to go on.")
    }

    /// The engine is gone: the answer to every command after shutdown began.
    pub fn closed() -> Self {
        Self::internal("Dragoman is shutting down.")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
