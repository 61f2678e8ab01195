//! The HTTP client of a server, made when it is first reached.
//!
//! Invariants: nothing of TLS is loaded for a plain address; no redirect carries a header elsewhere; an address of this
//! machine is never reached through a proxy.

use std::time::Duration;

use reqwest::Client;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) async fn client(url: &str) -> Result<Client, String> {
    domain::hosts::check_address(url).map_err(|failure| failure.to_string())?;
    let made = match reqwest::Url::parse(url) {
        Ok(parsed) if parsed.scheme() == "http" => plain(is_local(&parsed)),
        Ok(parsed) if parsed.scheme() == "https" => {
            let local = is_local(&parsed);
            // Reading the system's certificates takes milliseconds of disk and parsing.
            tokio::task::spawn_blocking(move || secure(local))
                .await
                .unwrap_or_else(|error| Err(error.to_string()))
        }
        _ => return Err("Its url is no http:// or https:// address. Check the server's url.".to_owned()),
    };
    made.map_err(|error| {
        format!("The HTTP client could not be set up: {error}. Check the proxy and certificate settings.")
    })
}

pub(crate) fn is_local(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

fn builder(local: bool) -> reqwest::ClientBuilder {
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("dragoman/", env!("CARGO_PKG_VERSION")));
    if local { builder.no_proxy() } else { builder }
}

/// A client that never speaks TLS, so that it needs no certificates.
fn plain(local: bool) -> Result<Client, String> {
    let tls = tls::client_without_roots().map_err(|error| error.to_string())?;
    builder(local).tls_backend_preconfigured(tls).build().map_err(|error| error.to_string())
}

fn secure(local: bool) -> Result<Client, String> {
    tls::install();
    builder(local).build().map_err(|error| error.to_string())
}
