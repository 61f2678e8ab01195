//! Which wall this machine can build, and the words for it. Finding out starts a process, so it is not done here:
//! `process` tries each policy of `trials` in turn and keeps the first that works.

use crate::policy::{Mode, Network, Policy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The whole wall.
    Namespaces,
    /// Landlock and seccomp alone, with the reason.
    Landlock { reason: String },
    /// Nothing; commands run with the user's rights, as they always did.
    Unavailable { reason: String },
}

impl Support {
    pub fn mode(&self) -> Option<Mode> {
        match self {
            Self::Namespaces => Some(Mode::Namespaces),
            Self::Landlock { .. } => Some(Mode::Landlock),
            Self::Unavailable { .. } => None,
        }
    }

    /// One sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Namespaces => "Commands run in a sandbox: namespaces, Landlock and seccomp.".to_owned(),
            Self::Landlock { reason } => format!(
                "Commands run in a smaller sandbox (Landlock and seccomp), because namespaces are not available \
                 ({reason}). It has no network, and inside of the workspace it protects neither git hooks nor \
                 .git/config."
            ),
            Self::Unavailable { reason } => {
                format!(
                    "There is no sandbox on this machine ({reason}): approved commands run with your rights."
                )
            }
        }
    }
}

/// The smallest policies that prove each wall, the best first.
pub fn trials(temporary: std::path::PathBuf) -> [Policy; 2] {
    let policy = |mode| Policy {
        mode,
        writable: vec![temporary.clone()],
        protected: Vec::new(),
        hidden: vec!["/etc/shadow".into()],
        exposed: Vec::new(),
        temporary: temporary.clone(),
        network: Network::Closed,
        ports: Vec::new(),
        directory: "/".into(),
        environment: Vec::new(),
    };
    [policy(Mode::Namespaces), policy(Mode::Landlock)]
}
