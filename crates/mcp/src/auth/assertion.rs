//! A signed statement of a client about itself (`private_key_jwt`), and random values for a login.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;

use super::logins::seconds_now;

/// A statement is good for this long.
const LIFETIME_SECONDS: i64 = 300;

const BAD_KEY: &str = "The private key of the client must be a PKCS #8 key for P-256 in PEM form.";

/// 256 random bits as text that fits into an address.
pub(super) fn random_text() -> Result<String, String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "There are no random numbers.".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// A JSON Web Token with which the client proves itself to this issuer.
pub(super) fn sign(client_id: &str, issuer: &str, private_key: &str) -> Result<String, String> {
    let now = seconds_now();
    let header = json!({"alg": "ES256", "typ": "JWT"});
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "iat": now,
        "exp": now + LIFETIME_SECONDS,
        "jti": random_text()?,
    });
    let encode = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&header), encode(&claims));
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key_bytes(private_key)?, &random)
        .map_err(|_| BAD_KEY.to_owned())?;
    let signature = pair.sign(&random, text.as_bytes()).map_err(|_| BAD_KEY.to_owned())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn key_bytes(pem: &str) -> Result<Vec<u8>, String> {
    let lines = pem.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).map_err(|_| BAD_KEY.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    #[test]
    fn a_statement_is_signed_by_the_key() {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(document.as_ref())
        );
        let token = sign("me", "https://id", &pem).unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        key.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(text.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!("me"), &json!("https://id")));
        assert!(sign("me", "https://id", "no key").is_err());
    }
}
