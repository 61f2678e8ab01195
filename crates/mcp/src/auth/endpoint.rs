//! Requests to authorization servers and for well-known documents: bounded, with a deadline, without redirects.
//!
//! Invariant: plain HTTP is used only between addresses of this machine, so that a server elsewhere cannot point us at local
//! services, and no token crosses a network in the clear.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::http::{client, is_local, read_limited};
use crate::text::single_line;

const TIMEOUT: Duration = Duration::from_secs(20);
const MAX_BYTES: usize = 256 << 10;

/// An address that may be used for the login of a server.
pub(super) fn allowed(server: &Url, address: &str) -> Result<Url, String> {
    let shown = single_line(address, 200);
    let url = Url::parse(address).map_err(|error| format!("{shown} is not an address: {error}."))?;
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_local(&url) && is_local(server),
        _ => false,
    };
    if is_safe { Ok(url) } else { Err(format!("{shown} is not an https:// address.")) }
}

/// A JSON document; `None`: there is none at this address.
pub(super) async fn fetch(url: &Url) -> Result<Option<Value>, String> {
    let request = client(url.as_str()).await?.get(url.clone()).header(ACCEPT, "application/json");
    let (status, body) = send(request).await?;
    Ok((status == StatusCode::OK).then(|| serde_json::from_slice(&body).ok()).flatten())
}

/// Posts a form and gives the status and the JSON of the answer.
pub(super) async fn post_form(
    url: &Url,
    form: &[(&str, &str)],
    authorization: Option<HeaderValue>,
) -> Result<(StatusCode, Value), String> {
    let mut request = client(url.as_str())
        .await?
        .post(url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(encode_form(form));
    if let Some(authorization) = authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let (status, body) = send(request).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

pub(super) async fn post_json(url: &Url, body: &Value) -> Result<(StatusCode, Value), String> {
    let request = client(url.as_str())
        .await?
        .post(url.clone())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let (status, body) = send(request).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

pub(super) fn encode_form(form: &[(&str, &str)]) -> String {
    let Ok(mut carrier) = Url::parse("http://localhost/") else { return String::new() };
    carrier.query_pairs_mut().extend_pairs(form);
    carrier.query().unwrap_or_default().to_owned()
}

async fn send(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), String> {
    let answered = async {
        let response = request.send().await.map_err(|error| {
            let host = error.url().and_then(Url::host_str).unwrap_or("the server").to_owned();
            format!("{host} cannot be reached.")
        })?;
        let status = response.status();
        Ok((status, read_limited(response, MAX_BYTES).await?))
    };
    tokio::time::timeout(TIMEOUT, answered)
        .await
        .unwrap_or_else(|_| Err(format!("no answer came within {} s.", TIMEOUT.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        let (local, remote) =
            (Url::parse("http://localhost:1/mcp").unwrap(), Url::parse("https://mcp.example.com").unwrap());
        assert!(allowed(&local, "http://127.0.0.1:9/token").is_ok());
        assert!(allowed(&remote, "https://id.example.com").is_ok());
        for (server, address) in [
            (&remote, "http://127.0.0.1:9/token"),
            (&remote, "http://id.example.com/token"),
            (&local, "http://id.example.com/token"),
            (&local, "file:///etc/passwd"),
            (&local, "javascript:alert(1)"),
            (&local, ""),
        ] {
            assert!(allowed(server, address).is_err(), "{address}");
        }
    }
}
