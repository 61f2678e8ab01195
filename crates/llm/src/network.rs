//! The HTTP clients, made when the first request needs one and shared by all providers.
//!
//! Invariant: nothing of TLS is loaded before the first `https` request; no redirect carries a key elsewhere.

use std::sync::OnceLock;
use std::time::Duration;

use domain::Failure;
use reqwest::Client;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How requests leave the machine.
#[derive(Debug, Default)]
pub struct Network {
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
}

impl Network {
    /// The client for a url.
    pub async fn client(&self, url: &str) -> Result<Client, Failure> {
        if url.starts_with("http://") {
            return ready(&self.plain, plain);
        }
        if let Some(client) = self.secure.get() {
            return Ok(client.clone());
        }
        // Reading the system's certificates takes milliseconds of disk and parsing.
        tokio::task::spawn_blocking(secure)
            .await
            .map_err(|_| Failure::internal("The HTTP client could not be made."))?
            .map(|client| self.secure.get_or_init(|| client).clone())
    }
}

fn ready(cell: &OnceLock<Client>, make: fn() -> Result<Client, Failure>) -> Result<Client, Failure> {
    match cell.get() {
        Some(client) => Ok(client.clone()),
        None => make().map(|client| cell.get_or_init(|| client).clone()),
    }
}

fn builder() -> reqwest::ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_secs(90))
        .user_agent(concat!("dragoman/", env!("CARGO_PKG_VERSION")))
}

/// A client that never speaks TLS, so that it needs no certificates.
fn plain() -> Result<Client, Failure> {
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::internal(format!("TLS could not be set up: {error}.")))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    built(builder().tls_backend_preconfigured(tls).build())
}

fn secure() -> Result<Client, Failure> {
    // Installed once for the process; a second installation is refused and means nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    built(builder().build())
}

fn provider() -> std::sync::Arc<rustls::crypto::CryptoProvider> {
    static PROVIDER: OnceLock<std::sync::Arc<rustls::crypto::CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| std::sync::Arc::new(rustls::crypto::ring::default_provider())).clone()
}

fn built(client: reqwest::Result<Client>) -> Result<Client, Failure> {
    client.map_err(|error| {
        Failure::config(format!("The HTTP client could not be set up: {error}."))
            .hint("Check the proxy and certificate settings.")
    })
}
