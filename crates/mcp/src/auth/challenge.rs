//! `WWW-Authenticate`: what a server says about the login that it wants.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Longer parameters are not believed.
const MAX_PARAMETER_LENGTH: usize = 2_000;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Challenge {
    /// The address of the document that names the authorization servers.
    pub resource_metadata: Option<String>,
    pub scope: Option<String>,
    /// The token is good, but has too few rights.
    pub is_insufficient_scope: bool,
}

impl Challenge {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        for value in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
            let parameters = parameters(value);
            let find = |name: &str| {
                let found = parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
            };
            challenge.resource_metadata = challenge.resource_metadata.or_else(|| find("resource_metadata"));
            challenge.scope = challenge.scope.or_else(|| find("scope"));
            challenge.is_insufficient_scope |= find("error").as_deref() == Some("insufficient_scope");
        }
        challenge
    }
}

/// The `name=value` and `name="value"` pairs of a header; schemes and everything else are passed over.
fn parameters(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some(at) = rest.find('=') {
        let name = rest[..at].rsplit([' ', ',', '\t']).next().unwrap_or_default().to_owned();
        let (value, after) = value(&rest[at + 1..]);
        if !name.is_empty() && value.len() <= MAX_PARAMETER_LENGTH {
            found.push((name, value));
        }
        rest = after;
    }
    found
}

/// A value and the text behind it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            plain => value.push(plain),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn read(value: &str) -> Challenge {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, HeaderValue::try_from(value).unwrap());
        Challenge::read(&headers)
    }

    #[test]
    fn a_challenge_is_read() {
        let challenge = read(
            r#"Bearer error="insufficient_scope", scope="a b", resource_metadata="https://h/x?a=b", error_description="a \"quoted\", text=1""#,
        );
        assert_eq!(challenge.scope.as_deref(), Some("a b"));
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://h/x?a=b"));
        assert!(challenge.is_insufficient_scope);
        assert_eq!(read("Basic realm=x, Bearer scope=one").scope.as_deref(), Some("one"));
        for odd in ["", "Bearer", "=", "Bearer scope=\"", "Bearer scope=", "====", "Bearer scope=\"\\"] {
            assert!(!read(odd).is_insufficient_scope, "{odd}");
        }
    }
}
