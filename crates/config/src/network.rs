//! Certificates for requests over the network. Proxies come from variables that the HTTP client reads itself; here only
//! their passwords are registered as secrets.

use std::path::PathBuf;
use std::time::Duration;

use crate::address::secrets;
use crate::cursor::Cursor;
use crate::environment::Environment;
use crate::lazy_text::SecretSource;
use crate::secret::Redactor;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkSettings {
    /// PEM, beside the certificates that the system trusts.
    pub ca_cert_file: Option<PathBuf>,
    pub client_cert: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub client_key_passphrase: Option<SecretSource>,
    /// How long a connection to a provider may take until it is there; `None`: the usual time.
    pub connect_timeout: Option<Duration>,
}

impl NetworkSettings {
    pub(crate) fn read(root: &Cursor) -> Self {
        let cursor = &root.get("network");
        register_proxy_secrets(cursor.scope().environment, cursor.scope().redactor);
        let settings = Self {
            ca_cert_file: cursor.get("caCertFile").path(),
            client_cert: cursor.get("clientCert").path(),
            client_key: cursor.get("clientKey").path(),
            client_key_passphrase: cursor.get("clientKeyPassphrase").secret(),
            connect_timeout: root.get("connectTimeoutSeconds").number(1..=600).map(Duration::from_secs),
        };
        if settings.client_cert.is_some() != settings.client_key.is_some() {
            cursor.report_invalid("needs `clientCert` and `clientKey` together");
            return Self { client_cert: None, client_key: None, ..settings };
        }
        settings
    }
}

/// The address of a proxy may hold a password.
fn register_proxy_secrets(environment: &Environment, redactor: &Redactor) {
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        for secret in environment.var(name).map(secrets).unwrap_or_default() {
            redactor.add_secret(&secret);
        }
    }
}
