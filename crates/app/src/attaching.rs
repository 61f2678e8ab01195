//! How this program takes part in chats of other processes: the socket, who may attach, and what a tool call may not do.
//!
//! Invariant: the model's commands, hooks and MCP servers attach to nothing and change no settings; only the user does.

use std::path::PathBuf;
use std::sync::Arc;

use config::Environment;
use domain::Failure;
use link::{SocketOptions, SocketPeers};

/// The other processes of the user on this machine. Opens nothing.
pub(crate) fn peers(environment: &Environment) -> SocketPeers {
    let program = format!("Dragoman {} (process {})", env!("CARGO_PKG_VERSION"), std::process::id());
    let folder = std::env::current_dir().unwrap_or_default();
    let refusal = || {
        Failure::user("A program that a Dragoman started may not attach to chats: only the user does.")
            .hint("Open the chat in an editor or terminal of your own.")
    };
    SocketPeers::new(SocketOptions {
        folders: socket_folders(environment),
        name: format!("{program} in {}", folder.display()),
        program,
        peer_check: Arc::new(move |process| process::is_below_dragoman(process).then(refusal)),
        own_check: Arc::new(move || process::is_inside_child().then(refusal)),
    })
}

/// The data folder, which sandboxed programs do not see. Where its path is too long for a socket: a private folder among
/// temporary files, which they do not see either, because they have a temporary folder of their own.
pub(crate) fn socket_folders(environment: &Environment) -> Vec<PathBuf> {
    let user = platform::local_socket::user();
    vec![environment.data_dir().join("sockets"), std::env::temp_dir().join(format!("dragoman-{user}"))]
}

/// Set inside a tool call, hook or MCP server; `what` ends the sentence "only the user …".
pub(crate) fn refusal_inside_tool_call(what: &str) -> Option<Failure> {
    process::is_inside_child().then(|| {
        Failure::user(format!("This command does not run inside a tool call: only the user {what}."))
            .hint("Run it in a terminal of your own.")
    })
}
