//! What `app` hands in: the servers as plain data and how they are run. Knows no configuration format.
//!
//! Invariant: what is shown of a server holds no looked-up value; secrets are looked up only when the server starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{ServerSpec, ServerTransport};
use domain::{BoxFuture, Failure};

/// Finds out how to reach a server, each time it is started: values may come from files or commands.
pub type Lookup = Arc<dyn Fn() -> BoxFuture<'static, Result<ServerTransport, Failure>> + Send + Sync>;

/// One server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Rules of approval name it, so it is kept as it is written.
    pub name: String,
    /// It does not start by itself.
    pub disabled: bool,
    pub shown: Shown,
    pub lookup: Lookup,
}

/// What clients show of a server: as it is written, references and all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    pub command: String,
    pub args: Vec<String>,
    pub url: Option<String>,
}

/// How servers are run.
#[derive(Clone)]
pub struct Options {
    /// The workspace folders; the first is the working directory of child processes.
    pub roots: Arc<[PathBuf]>,
    /// Variables of ours that no server inherits.
    pub withheld_environment: Vec<String>,
    /// From the start to the first lists.
    pub start_deadline: Duration,
    /// For one call. Each sign of life (progress, an answered form) starts it anew, ten times at most.
    pub call_deadline: Duration,
    /// Told after each change of what the servers offer or how they are. Called without locks; must not block.
    pub changed: Arc<dyn Fn() + Send + Sync>,
}

const DEADLINE: Duration = Duration::from_secs(60);

impl ServerConfig {
    /// A server that a client handed over: nothing has to be looked up.
    pub fn fixed(spec: &ServerSpec) -> Self {
        let shown = match &spec.transport {
            ServerTransport::Stdio { command, args, .. } => {
                Shown { command: command.clone(), args: args.clone(), url: None }
            }
            ServerTransport::Http { url, .. } => {
                Shown { url: Some(without_secrets(url)), ..Shown::default() }
            }
        };
        let transport = spec.transport.clone();
        let lookup: Lookup = Arc::new(move || {
            let transport = transport.clone();
            Box::pin(async move { Ok(transport) })
        });
        Self { name: spec.name.clone(), disabled: false, shown, lookup }
    }
}

impl Options {
    pub fn new(roots: impl Into<Arc<[PathBuf]>>, changed: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            roots: roots.into(),
            withheld_environment: Vec::new(),
            start_deadline: DEADLINE,
            call_deadline: DEADLINE,
            changed,
        }
    }
}

/// An address without user, password and query, where keys are put.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or(host);
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_address_holds_no_key() {
        for (url, shown) in [
            ("https://me:key@host:8/mcp?token=1#x", "https://host:8/mcp"),
            ("http://host", "http://host"),
            ("https://host/a@b", "https://host/a@b"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
