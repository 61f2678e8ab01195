//! Words by which programs say that something is not there or not allowed, where the sandbox is the reason. For messages
//! to people; it decides nothing.

/// What the sandbox took away, as far as a program's output tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Files outside of the workspace are read-only.
    ReadOnly,
    /// Sockets of services, such as the session's bus, are hidden.
    Socket,
    /// Other machines are not reached.
    Network,
    /// A file is hidden, or cannot be opened.
    Hidden,
    /// A program's own parts are not seen.
    Module,
}

const SIGNS: &[(Stopped, &[&str])] = &[
    (
        Stopped::ReadOnly,
        &["Read-only file system", "EROFS", "read-only file system", "os error 30", "Errno 30"],
    ),
    (
        Stopped::Socket,
        &[
            "Failed to connect to bus",
            "Cannot autolaunch D-Bus",
            "Could not connect: ",
            "Failed to connect to socket",
            "org.freedesktop.DBus",
            "cannot open display",
            "Can't open display",
            "Cannot open display",
            "could not connect to display",
            "Cannot connect to the Docker daemon",
            "Error connecting to agent",
            "connect ENOENT",
            "dial unix",
            "wl_display",
        ],
    ),
    (
        Stopped::Network,
        &[
            "Could not resolve host",
            "getaddrinfo ENOTFOUND",
            "getaddrinfo EAI_AGAIN",
            "Temporary failure in name resolution",
            "Name or service not known",
            "Network is unreachable",
            "The sandbox of Dragoman refused a connection",
        ],
    ),
    (
        Stopped::Module,
        &[
            "Cannot find module",
            "ERR_MODULE_NOT_FOUND",
            "ModuleNotFoundError",
            "No module named",
            "cannot open shared object file",
            "can't open file",
        ],
    ),
    (Stopped::Hidden, &["Permission denied", "EACCES", "os error 13", "Errno 13"]),
];

impl Stopped {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::ReadOnly => "files outside of the workspace are read-only there",
            Self::Socket => "sockets of services, such as the desktop's, are hidden there",
            Self::Network => "other machines are not reached from there",
            Self::Hidden => "secrets and Dragoman's own files cannot be opened there",
            Self::Module => "folders such as /tmp are empty there, but for the workspace and named programs",
        }
    }
}

/// The first thing that a program says it lacks, and the line that says so.
pub fn find(output: &str) -> Option<(Stopped, &str)> {
    let listed = SIGNS.iter().find_map(|(stopped, signs)| {
        let line = output.lines().find(|line| signs.iter().any(|sign| line.contains(sign)))?;
        Some((*stopped, line.trim()))
    });
    listed.or_else(|| {
        let line = output.lines().find(|line| is_missing(line) && names_replaced(line))?;
        Some((Stopped::Module, line.trim()))
    })
}

/// A line that says that a file is not there.
pub fn is_missing(line: &str) -> bool {
    ["No such file or directory", "ENOENT", "os error 2)"].iter().any(|words| line.contains(words))
}

/// A line that names something below a folder that is empty in the sandbox.
pub fn names_replaced(line: &str) -> bool {
    ["/tmp/", "/run/", "/var/tmp/"].iter().any(|folder| line.contains(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_lacks_is_known_by_its_words() {
        for (output, stopped) in [
            ("bash: /home/me/hooks.log: Read-only file system", Stopped::ReadOnly),
            ("Failed to connect to bus: No such file or directory", Stopped::Socket),
            ("x\nError: Cannot find module './lib'", Stopped::Module),
            ("curl: (6) Could not resolve host: example.com", Stopped::Network),
            ("cat: /home/me/.ssh/id: Permission denied", Stopped::Hidden),
            ("bash: /tmp/me/hooks.log: No such file or directory", Stopped::Module),
        ] {
            assert_eq!(find(output).map(|found| found.0), Some(stopped), "{output}");
        }
        assert_eq!(find("1 test failed"), None);
        assert_eq!(find("cat: src/main.rs: No such file or directory"), None);
    }
}
