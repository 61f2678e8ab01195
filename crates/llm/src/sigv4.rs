//! AWS request signatures, version 4, for the one kind of request we make: a POST with a body.
//!
//! Pure: the time is given. Written after the public description of the algorithm.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// The keys that sign, and the service they sign for.
pub(crate) struct Signer<'a> {
    pub access_key: &'a str,
    pub secret_key: &'a str,
    pub session_token: Option<&'a str>,
    pub region: &'a str,
    pub service: &'a str,
}

impl Signer<'_> {
    /// The headers to add to a POST of `body` to `https://{host}{path}`; `path` is written as in the url.
    pub(crate) fn headers(
        &self,
        host: &str,
        path: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let date = &time[..8];
        let body_hash = hex(&Sha256::digest(body));
        let mut signed = vec![
            ("content-type", "application/json".to_owned()),
            ("host", host.to_owned()),
            ("x-amz-content-sha256", body_hash.clone()),
            ("x-amz-date", time.clone()),
        ];
        if let Some(token) = self.session_token {
            signed.push(("x-amz-security-token", token.to_owned()));
        }
        let names: Vec<_> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let canonical = format!("POST\n{}\n\n{lines}\n{names}\n{body_hash}", encode_path(path));
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let text =
            format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
        let mut key = mac(format!("AWS4{}", self.secret_key).as_bytes(), date);
        for part in [self.region, self.service, "aws4_request"] {
            key = mac(&key, part);
        }
        let signature = hex(&mac(&key, &text));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        );
        signed.retain(|(name, _)| name.starts_with("x-amz-"));
        signed.push(("authorization", authorization));
        signed
    }
}

/// Encodes a segment of a path: everything but letters, digits and `-_.~`.
pub(crate) fn encode_segment(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The path once more encoded, as services other than S3 want it signed.
fn encode_path(path: &str) -> String {
    path.split('/').map(encode_segment).collect::<Vec<_>>().join("/")
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes keys of every length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signatures made by an independent implementation that reproduces the published test vectors.
    #[test]
    fn signatures_are_those_of_the_algorithm() {
        let host = "bedrock-runtime.eu-west-1.amazonaws.com";
        let path = format!("/model/{}/converse-stream", encode_segment("anthropic.claude-v1:0"));
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        for (session_token, signature) in [
            (None, "b2d9d09ac5f5ea77bede1ba3fedcbc3afcef7253c89816a10be9477a8833e887"),
            (Some("TOKEN"), "8c2d0dd952470929a528b5940044041557fd27843788829bf175ad1b725f134c"),
        ] {
            let signer = Signer {
                access_key: "AKIDEXAMPLE",
                secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                session_token,
                region: "eu-west-1",
                service: "bedrock",
            };
            let headers = signer.headers(host, &path, b"{\"a\":1}", now);
            let (_, authorization) = headers.last().unwrap();
            assert!(authorization.ends_with(signature), "{authorization}");
            assert!(authorization.contains("Credential=AKIDEXAMPLE/20260301/eu-west-1/bedrock/aws4_request"));
            assert_eq!(
                headers.iter().any(|(name, _)| *name == "x-amz-security-token"),
                session_token.is_some()
            );
        }
    }
}
