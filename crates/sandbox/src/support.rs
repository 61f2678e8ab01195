//! Which wall this machine can build, and the words for it. Finding out starts a process, so it is not done here:
//! `process` tries each policy of `trials` in turn and keeps the first that works.

use crate::policy::{Mode, Network, Policy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The whole wall.
    Namespaces,
    /// Landlock and seccomp alone, with the reason.
    Landlock { reason: String },
    /// This kernel has none; commands run with the user's rights, unless the settings require a sandbox.
    Unavailable { reason: String },
    /// This attempt failed, for a reason that may pass. Commands are refused, and the next one tries again.
    Failed { reason: String },
}

impl Support {
    pub fn mode(&self) -> Option<Mode> {
        match self {
            Self::Namespaces => Some(Mode::Namespaces),
            Self::Landlock { .. } => Some(Mode::Landlock),
            Self::Unavailable { .. } | Self::Failed { .. } => None,
        }
    }

    /// One sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Namespaces => "Commands run in a sandbox: namespaces, Landlock and seccomp.".to_owned(),
            Self::Landlock { reason } => format!(
                "Commands run in a smaller sandbox (Landlock and seccomp), because namespaces are not available \
                 ({reason}). It has no network, and inside of the workspace it protects git directories only after a \
                 command. Every command that changes something is asked about."
            ),
            Self::Unavailable { reason } => {
                format!(
                    "There is no sandbox on this machine ({reason}): approved commands run with your rights. \
                     \"sandboxRequired\": true refuses them instead."
                )
            }
            Self::Failed { reason } => format!(
                "The sandbox could not be set up this time ({reason}), so the command was not run. The next command tries \
                 again."
            ),
        }
    }
}

/// What this machine will probably refuse, found out without starting anything. `None`: nothing speaks against the
/// whole wall.
pub fn expected() -> Option<Support> {
    if !cfg!(target_os = "linux") {
        let reason = "Dragoman has none for this operating system yet".to_owned();
        return Some(Support::Unavailable { reason });
    }
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let says = |file: &str, value: &str| read(file).trim() == value;
    let status = read("/proc/self/status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    let is_admin = u64::from_str_radix(&field("CapEff:"), 16).is_ok_and(|set| set & SYS_ADMIN != 0);
    let reason = if says("/proc/sys/user/max_user_namespaces", "0")
        || says("/proc/sys/kernel/unprivileged_userns_clone", "0")
        || says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")
    {
        "this system forbids user namespaces"
    } else if field("Seccomp:") == "2" && !is_admin {
        "a filter of system calls forbids them, as in most containers"
    } else if read("/proc/self/mountinfo").lines().any(hides_part_of_proc) {
        "parts of /proc are hidden, as in most containers"
    } else {
        return None;
    };
    Some(Support::Landlock { reason: reason.to_owned() })
}

/// Answers of the kernel about namespaces that stay the same: not permitted, no such call, unknown arguments. Others, such
/// as a lack of memory or of descriptors, may pass.
const LASTING: &[&str] =
    &["(os error 1)", "(os error 13)", "(os error 22)", "(os error 38)", "(os error 95)"];

/// The same for Landlock, which needs no permission.
const LASTING_LANDLOCK: &[&str] = &["the kernel has none", "(os error 38)", "(os error 95)"];

/// Whether the same trial would fail again, by the words of the helper.
pub fn is_lasting(mode: Mode, reason: &str) -> bool {
    match mode {
        Mode::Namespaces => LASTING.iter().any(|words| reason.contains(words)) || expected().is_some(),
        Mode::Landlock => LASTING_LANDLOCK.iter().any(|words| reason.contains(words)),
    }
}

/// The capability without which a container's filter refuses namespaces.
const SYS_ADMIN: u64 = 1 << 21;

/// The kernel mounts no new /proc beside one whose parts are covered.
fn hides_part_of_proc(line: &str) -> bool {
    line.split(' ').nth(4).is_some_and(|point| point.starts_with("/proc/"))
}

/// The smallest policies that prove each wall, the best first.
pub fn trials(temporary: std::path::PathBuf) -> [Policy; 2] {
    let policy = |mode| Policy {
        mode,
        writable: vec![temporary.clone()],
        protected: Vec::new(),
        hidden: vec!["/etc/shadow".into()],
        guarded: Vec::new(),
        unreadable: Vec::new(),
        exposed: Vec::new(),
        temporary: temporary.clone(),
        network: Network::Closed,
        ports: Vec::new(),
        directory: "/".into(),
        environment: Vec::new(),
        git_copies: Vec::new(),
        withheld: Vec::new(),
        memory: None,
        terminal: false,
    };
    [policy(Mode::Namespaces), policy(Mode::Landlock)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_not_taken_for_the_machine() {
        assert!(is_lasting(
            Mode::Namespaces,
            "user namespaces are forbidden: Operation not permitted (os error 1)"
        ));
        assert!(is_lasting(Mode::Landlock, "Landlock: the kernel has none"));
        for reason in
            ["fork: Resource temporarily unavailable (os error 11)", "covers: No space left (os error 28)"]
        {
            assert!(!is_lasting(Mode::Landlock, reason), "{reason}");
            assert!(!is_lasting(Mode::Namespaces, reason) || expected().is_some(), "{reason}");
        }
        assert!(!is_lasting(Mode::Landlock, "the working directory: Permission denied (os error 13)"));
    }
}
