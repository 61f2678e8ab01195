//! The HTTP clients, made when the first request needs one and shared by all providers.
//!
//! Owns proxies, certificate authorities and client certificates. Invariants: nothing of TLS is loaded before the
//! first request that needs it; servers of this machine are never asked through a proxy; no redirect carries a key
//! elsewhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::Failure;
use reqwest::{Certificate, Client, ClientBuilder, Identity, NoProxy, Proxy};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How requests leave the machine. `app` reads the files and says where they came from if they are broken.
#[derive(Clone, Default)]
pub struct NetworkSettings {
    /// The proxy for all requests; without it `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are honored.
    pub proxy: Option<String>,
    /// Hosts that are asked directly, as in `NO_PROXY`; only with `proxy`.
    pub no_proxy: Option<String>,
    /// Authorities that are trusted beside the system's: PEM, any number each.
    pub authorities: Vec<Vec<u8>>,
    /// Our own certificate and its key: PEM.
    pub identity: Option<Vec<u8>>,
    /// How long a connection may take until it is there; `None`: 15 seconds.
    pub connect_timeout: Option<Duration>,
}

/// Reads the settings and the files they name, when the first client is made.
type Loader = Arc<dyn Fn() -> Result<NetworkSettings, Failure> + Send + Sync>;

/// The clients of a process.
pub struct Network {
    load: Loader,
    local: OnceLock<Client>,
    secure: OnceLock<Client>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new(NetworkSettings::default())
    }
}

impl Network {
    pub fn new(settings: NetworkSettings) -> Self {
        Self::from_loader(move || Ok(settings.clone()))
    }

    /// A network whose certificate files are read only when a request leaves this machine.
    pub fn from_loader(load: impl Fn() -> Result<NetworkSettings, Failure> + Send + Sync + 'static) -> Self {
        Self { load: Arc::new(load), local: OnceLock::new(), secure: OnceLock::new() }
    }

    /// The client for a url.
    pub async fn client(&self, url: &str) -> Result<Client, Failure> {
        domain::hosts::check_address(url)?;
        if is_local(url) {
            return match self.local.get() {
                Some(client) => Ok(client.clone()),
                None => local().map(|client| self.local.get_or_init(|| client).clone()),
            };
        }
        if let Some(client) = self.secure.get() {
            return Ok(client.clone());
        }
        // Reading the system's certificates takes milliseconds of disk and parsing.
        let load = self.load.clone();
        tokio::task::spawn_blocking(move || secure(&load()?))
            .await
            .map_err(|_| Failure::internal("The HTTP client could not be made."))?
            .map(|client| self.secure.get_or_init(|| client).clone())
    }
}

/// A server of this machine, or of the link that gives it credentials, that speaks without TLS.
fn is_local(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let host = rest.split('/').next().unwrap_or(rest);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "localhost"
        || host == "[::1]"
        || host == "[fd00:ec2::254]"
        || host == "[fd00:ec2::23]"
        || (["127.", "169.254."].iter().any(|start| host.starts_with(start))
            && host.bytes().all(|b| b == b'.' || b.is_ascii_digit()))
}

fn builder(connect_timeout: Option<Duration>) -> ClientBuilder {
    Client::builder()
        .connect_timeout(connect_timeout.unwrap_or(CONNECT_TIMEOUT))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .pool_idle_timeout(Duration::from_secs(90))
        .user_agent(concat!("dragoman/", env!("CARGO_PKG_VERSION")))
}

/// A client that never speaks TLS, so that it needs no certificates.
fn local() -> Result<Client, Failure> {
    let tls = tls::client_without_roots()
        .map_err(|error| Failure::internal(format!("TLS could not be set up: {error}.")))?;
    builder(None)
        .no_proxy()
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| broken("HTTP client", &error))
}

fn secure(settings: &NetworkSettings) -> Result<Client, Failure> {
    tls::install();
    let authorities = authorities(settings)?;
    let client = with_settings(builder(settings.connect_timeout), settings)?
        .tls_certs_merge(authorities.clone())
        .build();
    match client {
        Ok(client) => Ok(client),
        Err(error) => {
            tracing::warn!(%error, "the system has no usable certificates, the built-in ones are used");
            let built_in = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
            let built_in = built_in.filter_map(|der| Certificate::from_der(der).ok());
            let roots: Vec<_> = built_in.chain(authorities).collect();
            let client =
                with_settings(builder(settings.connect_timeout), settings)?.tls_certs_only(roots).build();
            client.map_err(|error| broken("HTTP client", &error))
        }
    }
}

fn authorities(settings: &NetworkSettings) -> Result<Vec<Certificate>, Failure> {
    let mut found = Vec::new();
    for pem in &settings.authorities {
        let certificates =
            Certificate::from_pem_bundle(pem).map_err(|error| broken("certificate authority", &error))?;
        if certificates.is_empty() {
            return Err(Failure::config("A file of certificate authorities holds no certificate.")
                .hint("It must be in PEM form and begin with -----BEGIN CERTIFICATE-----."));
        }
        found.extend(certificates);
    }
    Ok(found)
}

fn with_settings(mut builder: ClientBuilder, settings: &NetworkSettings) -> Result<ClientBuilder, Failure> {
    if let Some(url) = &settings.proxy {
        let proxy = Proxy::all(url).map_err(|error| broken("proxy", &error))?;
        let except = settings.no_proxy.as_deref().and_then(NoProxy::from_string);
        builder = builder.no_proxy().proxy(proxy.no_proxy(except));
    }
    if let Some(pem) = &settings.identity {
        let identity = Identity::from_pem(pem).map_err(|error| broken("client certificate", &error))?;
        builder = builder.identity(identity);
    }
    Ok(builder)
}

/// The text of such an error may hold a proxy's password, so the failure names only the setting.
fn broken(what: &str, error: &reqwest::Error) -> Failure {
    tracing::debug!(what, builder = error.is_builder(), "a network setting is broken");
    Failure::config(format!("The {what} could not be set up."))
        .hint("Check the proxy, certificate authority and client certificate settings.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_local() {
        for url in [
            "http://localhost:11434",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:1",
            "http://127.1.2.3/",
            "http://169.254.169.254/latest",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "https://localhost",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://10.0.0.1",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }

    #[test]
    fn a_system_without_certificates_is_served_by_the_built_in_ones() {
        let roots =
            webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().map(|der| Certificate::from_der(der).unwrap());
        tls::install();
        assert!(builder(None).tls_certs_only(roots).build().is_ok());
    }

    #[test]
    fn broken_settings_are_told_without_their_secrets() {
        let bad = [
            NetworkSettings { proxy: Some("http://user:hunter2@:bad port".into()), ..Default::default() },
            NetworkSettings { authorities: vec![b"nothing".to_vec()], ..Default::default() },
            NetworkSettings { identity: Some(b"nothing".to_vec()), ..Default::default() },
        ];
        for settings in bad {
            let failure = secure(&settings).unwrap_err();
            assert!(failure.hint.is_some() && !format!("{failure:?}").contains("hunter2"), "{failure:?}");
        }
    }
}
