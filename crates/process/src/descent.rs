//! Whether a process was started by a child of a Dragoman: by a command of the model, a hook or an MCP server.
//!
//! The user id does not tell them from the user. Invariant: a process below a Dragoman is found whatever it does to its
//! environment, as long as its line of parents, its session or its group leads to that Dragoman; one that left all three is
//! found by the marker in the environment it was started with, where that can be read. On Windows the line of parents and the
//! job objects of this process tell it. Elsewhere only the own marker is known.

#[cfg(windows)]
use crate::reaper::MARKER;
#[cfg(unix)]
use crate::tree::MARKER;

/// Whether this program itself runs below a Dragoman.
pub fn is_inside_child() -> bool {
    #[expect(clippy::disallowed_methods, reason = "the parent says it by this variable")]
    let is_marked = std::env::var_os(MARKER).is_some();
    is_marked || is_below_dragoman(std::process::id())
}

/// Whether a process was started by a child of this program or of another Dragoman.
#[cfg(target_os = "linux")]
pub fn is_below_dragoman(process: u32) -> bool {
    let Ok(process) = i32::try_from(process) else { return true };
    linux::is_below(process)
}

/// Whether a process was started by a child of this program or of another Dragoman.
#[cfg(windows)]
pub fn is_below_dragoman(process: u32) -> bool {
    crate::parents::is_below(process)
}

/// Nothing is known about other processes here.
#[cfg(not(any(target_os = "linux", windows)))]
pub fn is_below_dragoman(_process: u32) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::ErrorKind;

    use super::MARKER;
    use crate::tree::{Kin, carries_marker, kin};

    /// No line of parents is longer.
    const GENERATIONS: usize = 256;
    /// How the program is called, whatever a copy of it is called.
    const PROGRAM: &str = "dragoman";

    pub(super) fn is_below(process: i32) -> bool {
        let Some(Kin { group, session, .. }) = kin(process) else { return true };
        [process, group, session].into_iter().any(has_dragoman_above) || carries_marker(process, MARKER)
    }

    fn has_dragoman_above(start: i32) -> bool {
        let (own, mut at) = (std::process::id(), start);
        for _ in 0..GENERATIONS {
            let Some(Kin { parent, .. }) = kin(at) else { return false };
            if parent <= 1 {
                return false;
            }
            if u32::try_from(parent) == Ok(own) || is_dragoman(parent) {
                return true;
            }
            at = parent;
        }
        true
    }

    /// By its name, and by its file where that can be seen: a script of the same name is a shell.
    fn is_dragoman(process: i32) -> bool {
        let name = |process: &str| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let found = name(&process.to_string());
        let found = found.trim_end();
        if found.is_empty() || (found != PROGRAM && found != name("self").trim_end()) {
            return false;
        }
        match fs::read_link(format!("/proc/{process}/exe")) {
            Ok(file) => file.file_name().and_then(|file| file.to_str()).is_some_and(|file| {
                // The system cuts the name of a process after 15 bytes.
                file.trim_end_matches(" (deleted)").starts_with(found)
            }),
            // It hides itself, as this program does.
            Err(error) => error.kind() == ErrorKind::PermissionDenied,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Spawn;
    use tokio_util::sync::CancellationToken;

    /// A child is known by its parents, without its environment, behind other processes, and as an orphan of its session.
    #[tokio::test]
    async fn a_child_of_ours_is_known_whatever_it_does() {
        assert!(!is_below_dragoman(std::process::id()), "the test itself");
        assert!(!is_below_dragoman(1));
        let lines = [
            "echo $$; sleep 5",
            "exec env -i sh -c 'echo $$; sleep 5'",
            "setsid --wait env -i sh -c 'echo $$; sleep 5'",
            // It lost its parent and has a session of its own: the mark tells.
            "setsid sh -c 'echo $$; sleep 5'",
            "(env -i sh -c 'echo $$; sleep 5' &) ; sleep 5",
            "setsid sh -c 'sh -c \"echo \\$\\$; sleep 5\" & sleep 0.1' & sleep 5",
        ];
        for line in lines {
            let child = Spawn::shell(line).start().await.unwrap();
            let pid = first_line(child).await;
            assert!(is_below_dragoman(pid.0), "{line}");
            drop(pid);
        }
        let finished = Spawn::shell("true").run(&CancellationToken::new()).await.unwrap();
        assert!(finished.success());
    }

    async fn first_line(mut child: crate::Child) -> (u32, crate::Child) {
        use tokio::io::{AsyncBufReadExt, BufReader};
        let mut line = String::new();
        let output = child.take_stdout().unwrap();
        BufReader::new(output).read_line(&mut line).await.unwrap();
        (line.trim().parse().unwrap(), child)
    }
}
