//! Base URLs of APIs: which ones can be confirmed, and which ones lead into a private network.
//!
//! Must not know requests. Invariant: a name that has one private address counts as private.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tools::web::address::is_public;

/// Resolves names to public addresses only. The connection is made to one of these and no other.
pub(crate) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let addresses: Vec<_> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if addresses.iter().any(|address| !is_public(address.ip())) {
                let message =
                    format!("{host} is in a private network. Confirm the base URL again to allow it");
                return Err(io::Error::other(message).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A base URL that can be confirmed: http(s), no user, no query, no fragment.
pub(crate) fn base_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| format!("This is not an address: {error}."))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("The address must begin with http:// or https://.".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("The address must not hold a user name or password.".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("The address must not have a query or a fragment.".to_owned());
    }
    Ok(url)
}

/// Whether an address is, by its looks, one of this machine or of a private network.
pub(crate) fn looks_private(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']'])
        .trim_end_matches('.')
        .to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        return !is_public(address);
    }
    let endings = [".localhost", ".local", ".internal", ".lan", ".home", ".intranet", ".corp"];
    host == "localhost" || !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
}

/// Whether a name leads to a private address; a name that cannot be resolved does not.
pub(crate) async fn leads_inside(address: &str) -> bool {
    if looks_private(address) {
        return true;
    }
    let Some(host) = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)) else {
        return false;
    };
    let lookup = tokio::net::lookup_host((host, 0));
    match tokio::time::timeout(Duration::from_secs(3), lookup).await {
        Ok(Ok(mut addresses)) => addresses.any(|address| !is_public(address.ip())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_look_private() {
        for address in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:8080/v1",
            "http://10.1.2.3",
            "http://169.254.169.254/latest",
            "http://printer.local",
            "http://intranet",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(looks_private(address), "{address}");
        }
        for address in ["https://api.example.com", "https://8.8.8.8"] {
            assert!(!looks_private(address), "{address}");
        }
    }
}
