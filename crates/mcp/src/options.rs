//! The input from `app`: the servers as plain data and the options to run them. Knows no configuration format.
//!
//! Invariant: the displayed command or address of a server holds no looked-up value; secrets are looked up only when the server starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::{LoginStore, OauthLookup, OauthSettings};
use crate::list_store::ListStore;
use domain::command::{ServerSpec, ServerTransport};
use domain::{BoxFuture, Failure};
use process::sandbox::{Grant, Sandbox};

/// Finds out how to reach a server, each time it is started: values may come from files or commands.
pub type Lookup = Arc<dyn Fn() -> BoxFuture<'static, Result<ServerTransport, Failure>> + Send + Sync>;

/// Opens an address in the user's browser.
pub type OpenBrowser = Arc<dyn Fn(&str) + Send + Sync>;

/// One server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Rules of approval name it, so it is kept as it is written.
    pub name: String,
    /// It does not start by itself.
    pub disabled: bool,
    pub display: ServerDisplay,
    pub lookup: Lookup,
    /// The settings of its login, over HTTP.
    pub oauth: OauthLookup,
    /// What its sandbox is granted.
    pub grants: Vec<Grant>,
    /// The user allowed it to use their model, each time with a question.
    pub sampling: bool,
}

/// The command or address that clients show: as it is written, with unresolved references.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerDisplay {
    pub command: String,
    pub args: Vec<String>,
    pub url: Option<String>,
}

/// How servers are run.
#[derive(Clone)]
pub struct Options {
    /// The workspace folders; the first is the working directory of child processes.
    pub roots: Arc<[PathBuf]>,
    /// Environment variables that no server inherits.
    pub withheld_environment: Vec<String>,
    /// The wall that child processes run behind; `None`: the user switched it off.
    pub sandbox: Option<Arc<Sandbox>>,
    /// From the start to the first lists.
    pub start_timeout: Duration,
    /// A server that is silent for so long when it is asked for its era is of the older one.
    pub probe_timeout: Duration,
    /// For one call. Each sign of life (progress, an answered form) starts it anew, ten times at most.
    pub call_timeout: Duration,
    /// The wait before a crashed server is started again; it doubles with each crash in a row.
    pub restart_wait: Duration,
    /// Whether the front-end can show forms, so that servers may ask the user.
    pub forms: bool,
    /// Where logins of HTTP servers are kept; `None`: there are none.
    pub logins: Option<Arc<dyn LoginStore>>,
    /// Where the tools of servers are kept between processes; `None`: nowhere.
    pub kept_lists: Option<Arc<dyn ListStore>>,
    /// Opens an address in the user's browser, where the user set one; must not block.
    pub open_browser: Option<OpenBrowser>,
    /// Called after each change of a status or an offer, without locks held; must not block.
    pub changed: Arc<dyn Fn() + Send + Sync>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const RESTART_WAIT: Duration = Duration::from_secs(1);

impl ServerConfig {
    /// A server that a client handed over: nothing has to be looked up. It is the user's own, so it keeps its network.
    pub fn fixed(spec: &ServerSpec) -> Self {
        let display = match &spec.transport {
            ServerTransport::Stdio { command, args, .. } => {
                ServerDisplay { command: command.clone(), args: args.clone(), url: None }
            }
            ServerTransport::Http { url, .. } => {
                ServerDisplay { url: Some(without_secrets(url)), ..ServerDisplay::default() }
            }
        };
        let transport = spec.transport.clone();
        let lookup: Lookup = Arc::new(move || {
            let transport = transport.clone();
            Box::pin(async move { Ok(transport) })
        });
        let oauth: OauthLookup = Arc::new(|| Box::pin(async { Ok(OauthSettings::default()) }));
        Self {
            name: spec.name.clone(),
            disabled: false,
            display,
            lookup,
            oauth,
            grants: vec![Grant::Network],
            sampling: false,
        }
    }
}

impl Options {
    pub fn new(roots: impl Into<Arc<[PathBuf]>>, changed: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            roots: roots.into(),
            withheld_environment: Vec::new(),
            sandbox: None,
            start_timeout: DEFAULT_TIMEOUT,
            probe_timeout: PROBE_TIMEOUT,
            call_timeout: DEFAULT_TIMEOUT,
            restart_wait: RESTART_WAIT,
            forms: true,
            logins: None,
            kept_lists: None,
            open_browser: None,
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
