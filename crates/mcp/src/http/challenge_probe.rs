//! A request without a token, sent to learn what login a server wants.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, StatusCode, Url};
use serde_json::json;

use super::response::root_cause;
use crate::auth::Challenge;
use crate::wire::{Offered, STATELESS_VERSION, meta};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The status and the challenge with which a server answers a request without a login.
pub(crate) async fn challenge_of(client: &Client, url: &Url) -> Result<(StatusCode, Challenge), String> {
    let method = "server/discover";
    let body =
        json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": {"_meta": meta(Offered::NOTHING)}});
    let request = client
        .post(url.clone())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .header("mcp-protocol-version", STATELESS_VERSION)
        .header("mcp-method", method)
        .body(body.to_string());
    let response = tokio::time::timeout(TIMEOUT, request.send())
        .await
        .map_err(|_| format!("it did not answer within {} s.", TIMEOUT.as_secs()))?
        .map_err(|error| format!("it cannot be reached: {}.", root_cause(&error)))?;
    Ok((response.status(), Challenge::read(response.headers())))
}
