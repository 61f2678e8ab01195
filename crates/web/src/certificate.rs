//! A certificate that is signed by itself: X.509 version 3, ECDSA over P-256, names as alternative names.
//!
//! Written by hand because it is one page, where a crate for it brings eight others. Invariant: the key leaves it as PEM only.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OCTETS: u8 = 0x04;
const UTF8: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const TIME: u8 = 0x18;
/// ecdsa-with-SHA256, id-ecPublicKey with prime256v1, commonName, subjectAltName.
const SIGNATURE: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const KEY: &[u8] =
    &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 4, 3];
const ALTERNATIVE_NAME: &[u8] = &[0x06, 3, 0x55, 0x1d, 17];

/// A certificate for these names and addresses, and its key, both in PEM.
pub fn make_certificate(names: &[String]) -> Result<(String, String), String> {
    let failed = |_| "The system gives no random numbers.".to_owned();
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random)
        .map_err(|_| "The new key cannot be read.".to_owned())?;
    let mut serial = [0; 16];
    random.fill(&mut serial).map_err(failed)?;
    // Positive, and without a zero in front.
    serial[0] = serial[0] & 0x7f | 0x40;
    let body = body(&serial, pair.public_key().as_ref(), names);
    let signature = pair.sign(&random, &body).map_err(failed)?;
    let whole = [body, tagged(SEQUENCE, SIGNATURE), bits(signature.as_ref())].concat();
    Ok((pem("CERTIFICATE", &tagged(SEQUENCE, &whole)), pem("PRIVATE KEY", key.as_ref())))
}

/// What is signed.
fn body(serial: &[u8], public_key: &[u8], names: &[String]) -> Vec<u8> {
    let name = [COMMON_NAME, &tagged(UTF8, b"dragoman")].concat();
    let name = tagged(SEQUENCE, &tagged(SET, &tagged(SEQUENCE, &name)));
    let validity = [tagged(UTC_TIME, b"240101000000Z"), tagged(TIME, b"40960101000000Z")].concat();
    let key = [tagged(SEQUENCE, KEY), bits(public_key)].concat();
    let alternatives: Vec<u8> = names.iter().flat_map(|name| alternative(name)).collect();
    let extension = [ALTERNATIVE_NAME, &tagged(OCTETS, &tagged(SEQUENCE, &alternatives))].concat();
    let extensions = tagged(0xa3, &tagged(SEQUENCE, &tagged(SEQUENCE, &extension)));
    let parts = [
        tagged(0xa0, &tagged(INTEGER, &[2])),
        tagged(INTEGER, serial),
        tagged(SEQUENCE, SIGNATURE),
        name.clone(),
        tagged(SEQUENCE, &validity),
        name,
        tagged(SEQUENCE, &key),
        extensions,
    ];
    tagged(SEQUENCE, &parts.concat())
}

/// An address, or the name of a host.
fn alternative(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => tagged(0x87, &address.octets()),
        Ok(IpAddr::V6(address)) => tagged(0x87, &address.octets()),
        Err(_) => tagged(0x82, name.as_bytes()),
    }
}

fn bits(bytes: &[u8]) -> Vec<u8> {
    tagged(BITS, &[&[0], bytes].concat())
}

/// A value with its tag and its length.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut all = vec![tag];
    if value.len() >= 0x80 {
        // At most eight bytes.
        all.push(0x80 | length.len() as u8);
    }
    all.extend_from_slice(length);
    all.extend_from_slice(value);
    all
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
