//! Certificates: from files, or one that is made here.
//!
//! Must not know files or settings. Invariant: no error names a byte of a key.

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    fingerprint: String,
}

impl Tls {
    /// The texts of the two files, in PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|_| "The certificate is not in PEM.".to_owned())?;
        let first = chain.first().ok_or("There is no certificate in the file.")?;
        let fingerprint = colons(digest(&SHA256, first).as_ref());
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "The key is not in PEM.".to_owned())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|_| "The certificate and the key do not belong together.".to_owned())?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint })
    }

    /// SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}
