//! How far a child has come, and how it ended. Plain data.

use std::time::Duration;

/// How long what a child left behind in its group may take to finish writing before it is ended.
pub(crate) const LINGER_TIME: Duration = Duration::from_millis(100);

/// How a child ended: by its own exit code or by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Exit {
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Phase {
    Running,
    Exited(Exit),
    Gone(Exit),
}

impl Phase {
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self {
            Self::Running => None,
            Self::Exited(exit) | Self::Gone(exit) => Some(*exit),
        }
    }
}
