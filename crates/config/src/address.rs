//! Addresses: what in a URL may be a secret, and the URL without it. Pure.

use crate::secret::MASK;

/// Parameters of a query that everybody may read; all others may be keys.
const PLAIN: [&str; 3] = ["api-version", "version", "alt"];

/// `scheme://user:password@host/path?token=…` without user, password and the values of its query.
pub fn masked(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => authority.to_owned(),
    };
    let rest = match rest.split_once('?') {
        Some((path, query)) if !text.contains(char::is_whitespace) => {
            let shown: Vec<_> = query.split('&').map(masked_parameter).collect();
            format!("{path}?{}", shown.join("&"))
        }
        _ => rest.to_owned(),
    };
    format!("{scheme}://{authority}{rest}")
}

/// The password of an address and the values of its query.
pub(crate) fn secrets(address: &str) -> Vec<String> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|parameter| parameter.split_once('='));
    let values = values.filter(|(name, _)| !PLAIN.contains(name)).map(|(_, value)| value);
    password(address).into_iter().chain(values).map(str::to_owned).collect()
}

/// The password in `scheme://user:password@host`.
pub(crate) fn password(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let (user, _) = rest.split_once('/').unwrap_or((rest, "")).0.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn masked_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if !PLAIN.contains(&name) => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (address, shown) in [
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
            ("http://bob:hunter2@host/v1", "http://********@host/v1"),
            ("http://bob:hunter2@host?token=abc", "http://********@host?token=********"),
            (
                "https://x/y?api-version=2025-01-01&sig=s%3D1",
                "https://x/y?api-version=2025-01-01&sig=********",
            ),
            ("http://host/a@b?flag", "http://host/a@b?flag"),
            ("Is it at https://x/y?z=1 now?", "Is it at https://x/y?z=1 now?"),
            ("no address", "no address"),
        ] {
            assert_eq!(masked(address), shown);
        }
        assert_eq!(secrets("http://bob:hunter2@host?token=abc&alt=sse"), ["hunter2", "abc"]);
    }
}
