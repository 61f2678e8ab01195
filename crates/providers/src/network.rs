//! Turns settings into HTTP clients: proxies, certificate authorities, client certificate.

use std::fs::File;
use std::path::Path;

use config::Resolved;
use domain::Failure;
use llm::{Network, NetworkSettings};

/// The clients for these settings. A file that cannot be opened is an error at once; its contents are read with the
/// first request that leaves this machine.
pub fn of(resolved: &Resolved) -> Result<Network, Failure> {
    let settings = resolved.settings.network.clone();
    if settings.client_key_passphrase.is_some() {
        return Err(Failure::config(
            "`network.clientKeyPassphrase` is set, and encrypted keys cannot be read.",
        )
        .hint("Decrypt the key: openssl pkey -in KEY.pem -out PLAIN.pem"));
    }
    for (path, setting) in [
        (&settings.ca_cert_file, "network.caCertFile"),
        (&settings.client_cert, "network.clientCert"),
        (&settings.client_key, "network.clientKey"),
    ] {
        if let Some(path) = path {
            File::open(path).map_err(|error| unreadable(path, setting, &error))?;
        }
    }
    Ok(Network::from_loader(move || load(&settings)))
}

fn load(settings: &config::NetworkSettings) -> Result<NetworkSettings, Failure> {
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
    // The client itself reads HTTP_PROXY and similar variables.
    let connect_timeout = settings.connect_timeout;
    Ok(NetworkSettings { authorities, identity, connect_timeout, ..NetworkSettings::default() })
}

fn read(path: &Path, setting: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| unreadable(path, setting, &error))
}

fn unreadable(path: &Path, setting: &str, error: &std::io::Error) -> Failure {
    Failure::config(format!("{} ({setting}) cannot be read: {error}.", path.display()))
}
