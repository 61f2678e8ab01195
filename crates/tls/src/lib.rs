//! The one set-up of TLS: which cryptography is used, which versions are spoken, and which certificates are trusted.
//!
//! Must not know addresses, files or settings. Invariant: every configuration verifies its peer, or has no roots and therefore
//! accepts none.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig};
use rustls_platform_verifier::Verifier;

/// The cryptography of all connections.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Makes it the one of the process, for HTTP clients that take what is installed. A second call changes nothing.
pub fn install() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// For a client that never speaks TLS: it trusts no certificate, so none is loaded.
pub fn client_without_roots() -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// Trusts what the system trusts, and these authorities.
pub fn client_of_system(authorities: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    client_with(Arc::new(Verifier::new_with_extra_roots(authorities, provider())?))
}

/// Trusts what the verifier accepts.
pub fn client_with(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .dangerous() // The name of the method: the verifier checks the server.
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// Shows this certificate. `Err(None)`: the certificate and the key do not belong together.
pub fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Option<Error>> {
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(Some)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_can_be_made_and_installing_twice_does_no_harm() {
        install();
        install();
        assert!(client_without_roots().is_ok());
        assert!(!provider().cipher_suites.is_empty());
    }
}
