//! The policy of one command as plain data: the parent builds it, the helper enforces it.
//! It knows no reasons. Invariant: every path is absolute.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub mode: Mode,
    /// Folders and files that may be written. Everything else is read-only.
    pub writable: Vec<PathBuf>,
    /// Read-only again, though they are inside of a writable folder.
    pub protected: Vec<PathBuf>,
    /// Covered: a folder by one that cannot be opened, a file by an empty one.
    pub hidden: Vec<PathBuf>,
    /// Neither made nor replaced, whether they exist or not: what is on the way to them cannot be renamed.
    #[serde(default)]
    pub guarded: Vec<PathBuf>,
    /// Covered by something that cannot be opened. The name stays visible.
    pub unreadable: Vec<PathBuf>,
    /// Shown read-only though `/run` or `/tmp` around them is replaced.
    pub exposed: Vec<PathBuf>,
    /// Takes the place of `/tmp` and `/var/tmp`.
    pub temporary: PathBuf,
    pub network: Network,
    /// Ports of this machine that are reached as ports of the sandbox.
    pub ports: Vec<u16>,
    /// Where the command starts.
    pub directory: PathBuf,
    /// Variables that lead package managers to folders they may write.
    pub environment: Vec<(String, String)>,
    /// Git directories that the command may change in a copy.
    #[serde(default)]
    pub git_copies: Vec<GitCopy>,
    /// Variables that the command does not get.
    pub withheld: Vec<String>,
    /// Bytes of memory that everything behind the wall may use together.
    pub memory: Option<u64>,
    /// The command's input is a pseudo-terminal that was made for it, and becomes the terminal of its session.
    #[serde(default)]
    pub terminal: bool,
}

/// A git directory of which the command sees a copy. At its end, plain state is taken over from the copy: commits,
/// branches, the index. Whatever git would obey is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GitCopy {
    pub folder: PathBuf,
    /// A private folder for what the command writes.
    pub place: PathBuf,
    /// Settings that name no program are taken over too.
    pub configuration: bool,
}

/// Which wall the kernel can build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// User, mount, pid, IPC and network namespaces, with Landlock and seccomp on top.
    Namespaces,
    /// Landlock and seccomp alone.
    Landlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// Loopback of the sandbox alone.
    Closed,
    /// And our proxy.
    Proxy,
    /// The network of this machine.
    Open,
}
