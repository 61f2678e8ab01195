//! How requests leave the machine: extra certificates and proxies.

use std::path::PathBuf;

use crate::address::secrets;
use crate::cursor::Cursor;
use crate::environment::Environment;
use crate::lazy_text::SecretSource;
use crate::secret::{Redactor, Secret};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkSettings {
    /// PEM, beside the certificates that the system trusts.
    pub ca_cert_file: Option<PathBuf>,
    pub client_cert: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub client_key_passphrase: Option<SecretSource>,
    pub proxies: Proxies,
}

/// From the usual variables; the lower-case spelling wins. Addresses may hold a password.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proxies {
    pub http: Option<Secret>,
    pub https: Option<Secret>,
    pub all: Option<Secret>,
    pub no_proxy: Option<String>,
}

impl NetworkSettings {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        let scope = cursor.scope();
        let settings = Self {
            ca_cert_file: cursor.get("caCertFile").path(),
            client_cert: cursor.get("clientCert").path(),
            client_key: cursor.get("clientKey").path(),
            client_key_passphrase: cursor.get("clientKeyPassphrase").secret(),
            proxies: Proxies::read(scope.environment, scope.redactor),
        };
        if settings.client_cert.is_some() != settings.client_key.is_some() {
            cursor.report_invalid("needs `clientCert` and `clientKey` together");
            return Self { client_cert: None, client_key: None, ..settings };
        }
        settings
    }
}

impl Proxies {
    fn read(environment: &Environment, redactor: &Redactor) -> Self {
        let address = |names: &[&str]| {
            let (_, address) = environment.first(names)?;
            for secret in secrets(address) {
                redactor.add_secret(&secret);
            }
            Some(Secret::new(address))
        };
        // A lower-case `no_proxy` wins also when it is empty.
        let no_proxy = environment.raw("no_proxy").or_else(|| environment.raw("NO_PROXY"));
        Self {
            http: address(&["http_proxy", "HTTP_PROXY"]),
            https: address(&["https_proxy", "HTTPS_PROXY"]),
            all: address(&["all_proxy", "ALL_PROXY"]),
            no_proxy: no_proxy.filter(|list| !list.is_empty()).map(str::to_owned),
        }
    }
}
