//! `dragoman serve --listen`: the server for other machines.
//!
//! Invariants: it listens only with a certificate, an account, a folder and a host name; the key of a certificate that is made
//! here is for its owner alone.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config::Environment;
use domain::{Failure, Store};
use platform::OpenOptionsExt as _;
use serde_json::json;
use serve::{Accounts, Entrance, Guard, Policy, Server, ServerOptions, Sockets, accounts};
use tokio::sync::Mutex;
use web::{ApiError, Listener, Tls};

use super::editors::ENDPOINTS;
use super::ps::SeenChats;
use super::running_chats::running;
use super::serve_arguments::ServeArguments;
use crate::workspaces::Workspaces;
use crate::{lifetime, output, stores};

/// How long a lost connection of an editor can be resumed.
const KEPT: Duration = Duration::from_secs(300);
/// The largest file of a certificate or a key.
const LARGEST_FILE: u64 = 1 << 20;

pub(super) async fn serve(
    arguments: ServeArguments,
    address: SocketAddr,
    environment: Environment,
) -> Result<(), Failure> {
    let store = stores::open(&environment)?;
    check(&arguments, address, store.as_ref()).await?;
    let names = names(&arguments, address)?;
    let mut plain: Vec<String> = names.iter().map(|name| name.name.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    plain.retain(|name| seen.insert(name.clone()));
    let tls = certificate(&arguments, &plain, &environment)?;
    let accounts = Accounts::open(store.clone(), &arguments.workspace)?;
    let bind = Listener::bind(address, tls.clone()).await;
    let listener = bind.map_err(|error| {
        Failure::user(format!("The server cannot listen at {address}: {error}."))
            .hint("Choose another address with --listen.")
    })?;
    let port = listener.address().map_or(address.port(), |address| address.port());
    let engine = Workspaces::open(environment.clone())?;
    let policy = Policy {
        servers: arguments.allow_mcp.clone(),
        environment: arguments.allow_env.clone(),
        settings: arguments.allow_setting.clone(),
        team_budget: arguments.budget,
    };
    let guard = Guard::new(engine.clone(), store.clone(), policy);
    let (running_store, seen) = (store.clone(), Arc::new(Mutex::new(SeenChats::new())));
    let (_, router) = Server::new(ServerOptions {
        more: editors(accounts.clone(), guard.clone()),
        accounts,
        guard,
        store,
        hosts: hosts(&names, port),
        running: Arc::new(move || Box::pin(running(running_store.clone(), seen.clone()))),
        version: env!("CARGO_PKG_VERSION"),
        assets: web::pages::CHATS,
    });
    let url = format!("https://{}", hosts(&names, port).first().cloned().unwrap_or_default());
    let served = async {
        announce(&arguments, &url, port, &tls)?;
        listener.serve(router).await;
        Ok(())
    };
    let served = lifetime::until_signal(served).await;
    lifetime::shut_down(engine).await;
    served.unwrap_or(Ok(()))
}

/// What a server for other machines must have.
async fn check(arguments: &ServeArguments, address: SocketAddr, store: &dyn Store) -> Result<(), Failure> {
    if arguments.workspace.is_empty() {
        return Err(Failure::user("A server for other machines needs a folder to work in.")
            .hint("Name each folder that accounts may open with --workspace DIR."));
    }
    if address.ip().is_unspecified() && arguments.host.is_empty() {
        return Err(Failure::user(format!("{address} has no name by which clients reach it."))
            .hint("Name it with --host NAME, or listen at one address of this machine."));
    }
    if arguments.budget.is_some_and(|budget| !budget.is_finite() || budget < 0.0) {
        return Err(Failure::user("A budget is an amount of US dollars, 0 or more."));
    }
    if accounts::list(store).await?.is_empty() {
        return Err(Failure::user("A server for other machines needs an account, and there is none.")
            .hint("Make one with `dragoman serve tokens add NAME --role view|drive|admin`."));
    }
    Ok(())
}

/// A name under which clients reach a server.
#[derive(Debug, PartialEq)]
pub(super) struct HostName {
    /// In lower case, an IPv6 address without brackets.
    pub(super) name: String,
    /// Where another port is forwarded to that of the server.
    pub(super) port: Option<u16>,
}

impl HostName {
    /// `NAME`, `NAME:PORT` or `[IPv6]:PORT`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::user(format!("{text:?} is not the name of a host.")).hint(
                "Give --host a name without scheme and path, such as build.example.com or localhost:9443.",
            )
        };
        let lower = text.to_ascii_lowercase();
        if let Ok(address) = lower.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Self { name: address.to_string(), port: None });
        }
        if let Ok(address) = lower.parse::<SocketAddr>() {
            let port = Some(address.port()).filter(|port| *port > 0).ok_or_else(wrong)?;
            return Ok(Self { name: address.ip().to_string(), port: Some(port) });
        }
        let (name, port) =
            lower.split_once(':').map_or((lower.as_str(), None), |(name, port)| (name, Some(port)));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(wrong());
        }
        let is_number = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            None => None,
            Some(port) => {
                let number = Some(port).filter(is_number).and_then(|port| port.parse::<u16>().ok());
                Some(number.filter(|port| *port > 0).ok_or_else(wrong)?)
            }
        };
        Ok(Self { name: name.to_owned(), port })
    }

    /// As requests have it: without the usual port.
    pub(super) fn with_port(&self, port: u16, usual: u16) -> String {
        let name = if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        if port == usual { name } else { format!("{name}:{port}") }
    }
}

/// The names that clients may use.
fn names(arguments: &ServeArguments, address: SocketAddr) -> Result<Vec<HostName>, Failure> {
    let mut names = arguments.host.iter().map(|name| HostName::parse(name)).collect::<Result<Vec<_>, _>>()?;
    if !address.ip().is_unspecified() {
        names.push(HostName { name: address.ip().to_string(), port: None });
    }
    Ok(names)
}

/// As they are in requests. A forwarded port is named by the user, so no other port is accepted.
fn hosts(names: &[HostName], port: u16) -> Vec<String> {
    names.iter().map(|name| name.with_port(name.port.unwrap_or(port), 443)).collect()
}

/// ACP and ECA over WebSocket, for callers with a token.
pub(super) fn editors(accounts: Accounts, guard: Guard) -> web::Router {
    let admit = move |token: String| {
        let (accounts, guard) = (accounts.clone(), guard.clone());
        Box::pin(async move {
            let found = accounts.authenticate(&token).await;
            let caller = found.map_err(|failure| ApiError::internal(failure.message))?;
            let caller = caller.ok_or_else(|| ApiError::unauthorized("The token is not valid."))?;
            let (name, ended) = (caller.name.clone(), caller.ended.clone());
            Ok(Entrance { caller: name, engine: guard.engine_for(caller), ended })
        }) as domain::BoxFuture<'static, _>
    };
    Sockets::new(Box::new(admit), KEPT).routes(&ENDPOINTS)
}

/// The certificate of the files, or the one that is kept in the data folder.
fn certificate(
    arguments: &ServeArguments,
    names: &[String],
    environment: &Environment,
) -> Result<Tls, Failure> {
    let unusable =
        |why: String| Failure::user(why).hint("Give --cert and --key files in PEM that belong together.");
    if let (Some(cert), Some(key)) = (&arguments.cert, &arguments.key) {
        let tls = Tls::from_pem(&read(cert)?, &read(key)?).map_err(unusable)?;
        return check_end(&tls, cert).map(|()| tls);
    }
    // One certificate per set of names.
    let folder = environment.data_dir().join("serve").join(names.join("_").replace(':', "-"));
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    if !key.exists() || !cert.exists() {
        let (cert_text, key_text) = web::make_certificate(names).map_err(Failure::internal)?;
        let kept = |error: std::io::Error| {
            Failure::config(format!("The certificate cannot be kept in {}: {error}.", folder.display()))
        };
        platform::create_private_folder(&folder).map_err(kept)?;
        write_private(&key, &key_text).map_err(kept)?;
        write_private(&cert, &cert_text).map_err(kept)?;
    }
    Tls::from_pem(&read(&cert)?, &read(&key)?).map_err(|why| {
        Failure::config(why).hint(format!("Remove the folder {} and start again.", folder.display()))
    })
}

/// No client accepts a certificate that has expired.
fn check_end(tls: &Tls, path: &Path) -> Result<(), Failure> {
    let now = jiff::Timestamp::now().strftime("%Y%m%d%H%M%S").to_string();
    match tls.valid_until() {
        Some(end) if end < now.as_str() => {
            let day = format!("{}-{}-{}", &end[..4], &end[4..6], &end[6..8]);
            Err(Failure::user(format!("The certificate {} has expired on {day}.", path.display()))
                .hint("Renew it and start again, or leave --cert and --key out: then one is made."))
        }
        _ => Ok(()),
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).private().open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::user(format!("{} cannot be read: {error}.", path.display()))
            .hint("Name files with --cert and --key that the user of this server may read.")
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST_FILE {
        return Err(Failure::user(format!("{} is too large for a certificate or a key.", path.display())));
    }
    std::fs::read(path).map_err(unreadable)
}

fn announce(arguments: &ServeArguments, url: &str, port: u16, tls: &Tls) -> Result<(), Failure> {
    if arguments.json {
        let value = json!({
            "url": url, "port": port, "pid": std::process::id(), "fingerprint": tls.fingerprint(),
        });
        return output::print(format!("{value}\n"));
    }
    output::print(format!(
        "Server: {url}\nFingerprint of the certificate (SHA-256): {}\n\
         All users of this server share its operating-system account. Ctrl-C ends it.\n",
        tls.fingerprint()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_ports_where_one_is_forwarded() {
        for (text, host) in [
            ("build.example.com", "build.example.com:8443"),
            ("Build.Example.com:9443", "build.example.com:9443"),
            ("localhost:443", "localhost"),
            ("192.0.2.7:9000", "192.0.2.7:9000"),
            ("[2001:db8::7]:9000", "[2001:db8::7]:9000"),
            ("2001:db8::7", "[2001:db8::7]:8443"),
        ] {
            let name = HostName::parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
            assert_eq!(hosts(&[name], 8443), [host], "{text}");
        }
        for wrong in ["", ":80", "a:", "a:0", "a:70000", "a:+80", "https://a", "a/b", "a b", "a:80:90", "a@b"]
        {
            assert!(HostName::parse(wrong).is_err(), "{wrong}");
        }
    }
}
