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
    Stdio {
        command: LazyText,
        args: Vec<LazyText>,
        env: Vec<(String, SecretSource)>,
    },
    Http {
        url: LazyText,
        headers: Vec<(String, SecretSource)>,
        client_id: Option<String>,
        client_secret: Option<SecretSource>,
        client_name: Option<String>,
        oauth_port: Option<u64>,
    },
}

impl McpServer {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let transport = match (cursor.get("command").lazy_text(), cursor.get("url").lazy_text()) {
            (Some(command), _) => McpTransport::Stdio {
                command,
                args: cursor.get("args").lazy_texts(),
                env: cursor.get("env").secrets(),
            },
            (None, Some(url)) => McpTransport::Http {
                url,
                headers: cursor.get("headers").secrets(),
                client_id: cursor.get("clientId").text(),
                client_secret: cursor.get("clientSecret").secret(),
                client_name: cursor.get("clientName").text(),
                oauth_port: cursor.get("oauthPort").number(1..=65535),
            },
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
