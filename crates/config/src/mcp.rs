//! `mcpServers.<name>`: a program to start or an address to speak to.

use crate::cursor::Cursor;
use crate::lazy_text::{LazyText, SecretSource};
use crate::origin::Origin;

#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub transport: McpTransport,
    pub disabled: bool,
    /// A server of the user's own configuration has the network unless it says `"network": false`; one of a project
    /// reaches package registries alone.
    pub network: bool,
    /// What its sandbox is granted, as it is written; a project cannot grant.
    pub grants: Vec<String>,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    Stdio { command: LazyText, args: Vec<LazyText>, env: Vec<(String, SecretSource)> },
    Http { url: LazyText, headers: Vec<(String, SecretSource)> },
}

impl McpServer {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let transport = match (cursor.get("command").lazy_text(), cursor.get("url").lazy_text()) {
            (Some(command), _) => McpTransport::Stdio {
                command,
                args: cursor.get("args").lazy_texts(),
                env: cursor.get("env").secrets(),
            },
            (None, Some(url)) => McpTransport::Http { url, headers: cursor.get("headers").secrets() },
            (None, None) => {
                cursor
                    .report(domain::Level::Warning, "needs a `command` or a `url`; the server is left out.");
                return None;
            }
        };
        let disabled = cursor.get("disabled").flag().unwrap_or(false);
        // A project may have changed one part of a server of the user's.
        let mut parts = cursor.entries().into_iter();
        let is_of_project = parts.any(|part| matches!(part.origin(), Origin::ProjectFile { .. }));
        let network = !is_of_project && cursor.get("network").flag().unwrap_or(true);
        let grants = if is_of_project { Vec::new() } else { cursor.get("grants").texts() };
        Some(Self { transport, disabled, network, grants, origin: cursor.origin() })
    }
}
