//! Owns what differs between Linux, macOS and Windows and is not a child process: private files, open folders, names,
//! terminals, local sockets, kept secrets, programs on the PATH, `file:` addresses. It must not know settings, tools, sessions or protocols.
//!
//! Invariants: the callers hold no `cfg` of a system (`xtask tidy`); what a system cannot do is an error or a documented
//! weaker promise, never a silent success. Rules about names are pure functions with the system as an argument, so that
//! the tests of one system test all of them.

pub mod file_uri;
pub mod memory;
pub mod names;
pub mod programs;
pub mod project_files;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use system::credentials;
pub use system::files::{
    OpenOptionsExt, check_owned_by_administrator, clone_file, create_folder, create_new_private_folder,
    create_private_folder, identity, identity_of, is_executable, is_own, is_writable, mode_of, name_bytes,
    name_from_bytes, open_unfollowed, permissions_for_all, replace_file, restrict, retry_while_busy,
    set_file_mode, set_mode, stamp_of, standard_streams, symlink, sync_file_system, sync_folder, try_lock,
};
pub use system::folder::{Folder, open_file};
pub use system::local_socket;
pub use system::paths::resolve_links;
pub use system::space::free_space;
pub use system::terminal;

/// The rules of a family of systems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

impl System {
    /// The system that this program was built for.
    pub const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_vendor = "apple") {
        Self::MacOs
    } else {
        Self::Linux
    };
}

/// What tells that a file has not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Nanoseconds since 1970.
    pub mtime: i64,
    pub ctime: i64,
    /// 0 where the system does not tell it with the metadata.
    pub inode: u64,
}
