//! TLS of a client: the certificates that the system trusts, or one certificate by its fingerprint.
//!
//! Invariant: a server that fits neither is never spoken to.

use std::sync::Arc;

use domain::Failure;
use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// The 32 bytes of a fingerprint: hexadecimal digits, with or without colons, with or without `SHA256:` before them.
pub fn read_fingerprint(text: &str) -> Result<[u8; 32], Failure> {
    let wrong = || {
        Failure::user("The fingerprint is not one of SHA-256.")
            .hint("It has 64 hexadecimal digits; `dragoman serve` prints it at its start.")
    };
    let text = text.trim();
    let digits =
        text.get(..7).filter(|start| start.eq_ignore_ascii_case("sha256:")).map_or(text, |_| &text[7..]);
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b':').collect();
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(bytes)
}

/// With a fingerprint the server's certificate must have it, and nothing else counts. `authorities`: more roots, in PEM.
pub fn client_config(
    fingerprint: Option<[u8; 32]>,
    authorities: Option<&[u8]>,
) -> Result<Arc<ClientConfig>, Failure> {
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities.unwrap_or_default()).collect();
    let authorities =
        roots.map_err(|_| Failure::config("The file of certificate authorities cannot be read."))?;
    let broken = |error: Error| Failure::config(format!("TLS could not be set up: {error}."));
    let config = match fingerprint {
        Some(fingerprint) => tls::client_with(Arc::new(Pinned { fingerprint, provider: tls::provider() })),
        None => tls::client_of_system(authorities),
    };
    let mut config = config.map_err(broken)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Takes the one certificate with this fingerprint, whoever signed it and whatever its names are.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if digest(&SHA256, end_entity).as_ref() == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("the certificate of the server has another fingerprint".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_as_programs_print_them() {
        let plain = "00".repeat(31) + "fF";
        let pairs: Vec<String> = (0..31).map(|_| "00".to_owned()).chain(["ff".to_owned()]).collect();
        let mut wanted = [0; 32];
        wanted[31] = 255;
        for text in [
            plain.clone(),
            format!("SHA256:{plain}"),
            pairs.join(":"),
            format!(" sha256:{} ", pairs.join(":")),
        ] {
            assert_eq!(read_fingerprint(&text).unwrap(), wanted, "{text}");
        }
        for text in [
            String::new(),
            "00".repeat(31),
            "zz".repeat(32),
            "+f".repeat(32),
            "ü".repeat(32),
            "00".repeat(33),
        ] {
            assert!(read_fingerprint(&text).is_err(), "{text}");
        }
    }
}
