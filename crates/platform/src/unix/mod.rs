//! Linux and macOS.

pub mod credentials;
pub(crate) mod files;
pub(crate) mod folder;
pub mod local_socket;
pub(crate) mod paths;
pub(crate) mod space;
pub mod terminal;
