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
    valid_until: Option<String>,
}

impl Tls {
    /// The texts of the two files, in PEM.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|_| "The certificate is not in PEM.".to_owned())?;
        let first = chain.first().ok_or("There is no certificate in the file.")?;
        let fingerprint = colons(digest(&SHA256, first).as_ref());
        let valid_until = valid_until(first);
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "The key is not in PEM.".to_owned())?;
        let refused = |error: Option<rustls::Error>| match error {
            Some(error) => error.to_string(),
            None => "The certificate and the key do not belong together.".to_owned(),
        };
        let mut config = tls::server(chain, key).map_err(refused)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), fingerprint, valid_until })
    }

    /// The end of the certificate in UTC, as 14 digits from the year to the second.
    pub fn valid_until(&self) -> Option<&str> {
        self.valid_until.as_deref()
    }

    /// SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// The second time of the member `validity` of an X.509 certificate.
fn valid_until(certificate: &[u8]) -> Option<String> {
    let (_, whole, _) = element(certificate)?;
    let (_, body, _) = element(whole)?;
    let (first, _, behind) = element(body)?;
    // The version comes first where it is not the first one.
    let mut rest = if first == 0xa0 { behind } else { body };
    for _ in ["serial number", "algorithm", "issuer"] {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, until) = element(validity)?;
    let (tag, text, _) = element(until)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let century = match (tag, text.as_bytes().first()?) {
        (0x18, _) => "",
        (_, b'0'..=b'4') => "20",
        _ => "19",
    };
    let text = format!("{century}{text}");
    (text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// The tag and the content of the first element in DER, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, short], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let count = usize::from(short & 0x7f);
        let digits = rest.get(..count).filter(|_| (1..=3).contains(&count))?;
        (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest.get(count..)?)
    };
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

fn colons(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_read_and_broken_ones_are_passed_over() {
        let (cert, key) = crate::make_certificate(&["a.example".to_owned()]).unwrap();
        let tls = Tls::from_pem(cert.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(tls.valid_until(), Some("40960101000000"));
        let der = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
        for length in 0..der.len() {
            let _ = valid_until(&der[..length]);
            let mut changed = der.to_vec();
            changed[length] ^= 0xff;
            let _ = valid_until(&changed);
        }
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let (cert, _) = crate::make_certificate(&["a.example".to_owned()]).unwrap();
        let (_, key) = crate::make_certificate(&["a.example".to_owned()]).unwrap();
        let told = Tls::from_pem(cert.as_bytes(), key.as_bytes()).err().unwrap();
        assert_eq!(told, "The certificate and the key do not belong together.");
    }
}
