//! Turns settings into HTTP clients: proxies, certificate authorities, client certificate.

use std::path::Path;

use config::Resolved;
use domain::Failure;
use llm::{Network, NetworkSettings};

/// Reads the certificate files that the settings name.
pub(crate) fn of(resolved: &Resolved) -> Result<Network, Failure> {
    let settings = &resolved.settings.network;
    let mut authorities = Vec::new();
    if let Some(path) = &settings.ca_cert_file {
        authorities.push(read(path, "network.caCertFile")?);
    }
    let identity = match &settings.client_cert {
        Some(path) => {
            let mut pem = read(path, "network.clientCert")?;
            if let Some(key) = &settings.client_key {
                pem.push(b'\n');
                pem.extend(read(key, "network.clientKey")?);
            }
            Some(pem)
        }
        None => None,
    };
    if settings.client_key_passphrase.is_some() {
        return Err(Failure::config(
            "`network.clientKeyPassphrase` is set, and encrypted keys cannot be read.",
        )
        .hint("Decrypt the key: openssl pkey -in KEY.pem -out PLAIN.pem"));
    }
    // The client itself reads HTTP_PROXY and similar variables.
    Ok(Network::new(NetworkSettings { authorities, identity, ..NetworkSettings::default() }))
}

fn read(path: &Path, setting: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::config(format!("{} ({setting}) cannot be read: {error}.", path.display())))
}
