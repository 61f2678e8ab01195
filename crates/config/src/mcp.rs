//! `mcpServers.<name>`: a program to start or an address to speak to.

use crate::cursor::Cursor;
use crate::lazy_text::{LazyText, SecretSource};
use crate::origin::Origin;

#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub transport: McpTransport,
    pub disabled: bool,
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
        Some(Self { transport, disabled, origin: cursor.origin() })
    }
}
