//! `dragoman serve --listen`: the server for other machines.
//!
//! Invariants: it listens only with a certificate, an account, a folder and a host name; the key of a certificate that is made
//! here is for its owner alone.

use std::io::Write as _;
use std::net::SocketAddr;
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
use super::serve::running;
use super::serve_arguments::ServeArguments;
use crate::workspaces::Workspaces;
use crate::{lifetime, stores};

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
    let names = names(&arguments, address);
    let tls = certificate(&arguments, &names, &environment)?;
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
        announce(&arguments, &url, port, &tls);
        listener.serve(router).await;
    };
    lifetime::until_signal(served).await;
    lifetime::shut_down(engine).await;
    Ok(())
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
    let is_plain = |name: &String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
    };
    if let Some(name) = arguments.host.iter().find(|name| !is_plain(name)) {
        return Err(Failure::user(format!("{name:?} is not the name of a host."))
            .hint("Give --host a name without port and scheme, such as build.example.com."));
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

/// The names that clients may use.
fn names(arguments: &ServeArguments, address: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> = arguments.host.iter().map(|name| name.to_ascii_lowercase()).collect();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names
}

/// As they stand in requests.
fn hosts(names: &[String], port: u16) -> Vec<String> {
    let bracketed = |name: &String| if name.contains(':') { format!("[{name}]") } else { name.clone() };
    let hosts = names.iter().map(bracketed);
    hosts.map(|name| if port == 443 { name } else { format!("{name}:{port}") }).collect()
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

fn announce(arguments: &ServeArguments, url: &str, port: u16, tls: &Tls) {
    if arguments.json {
        let value = json!({
            "url": url, "port": port, "pid": std::process::id(), "fingerprint": tls.fingerprint(),
        });
        println!("{value}");
        return;
    }
    println!("Server: {url}\nFingerprint of the certificate (SHA-256): {}", tls.fingerprint());
    println!("All users of this server share its operating-system account. Ctrl-C ends it.");
}
