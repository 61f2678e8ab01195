//! The wall, tried from inside: real programs, real namespaces, and the files outside looked at afterwards.
//! Where the kernel allows no namespaces the tests of the whole wall say so and pass.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed; it looks at its own environment"
)]

mod behaves;
mod closed;
mod escapes;
mod git_directories;
mod home;
mod kit;
mod sockets;
mod wall;
mod works;
