//! Which authorization server a login goes to: the documents of the protected resource and of its authorization servers.
//!
//! Invariants: a document is used only if it speaks of the address it was asked for (the resource covers the server, the issuer
//! equals the one that was named, byte for byte); every address in it passes `endpoint::allowed`.

use reqwest::Url;
use serde_json::Value;

use super::challenge::Challenge;
use super::endpoint::{allowed, fetch};
use crate::text::single_line;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthorizationServer {
    pub issuer: String,
    pub authorization_endpoint: Option<Url>,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    pub scopes: Vec<String>,
    /// How clients may prove themselves at the token endpoint; empty: it does not say.
    pub auth_methods: Vec<String>,
    /// An https address may be the id of a client.
    pub takes_metadata_documents: bool,
    /// It names itself in the answer to an authorization request.
    pub names_issuer: bool,
    /// `None`: it published no document at all (before 2025-06-18).
    pub has_pkce: Option<bool>,
}

/// The login that a server wants.
pub(super) struct Discovered {
    pub server: AuthorizationServer,
    /// As the server spells itself.
    pub resource: String,
    pub scopes: Option<Vec<String>>,
}

impl Discovered {
    pub(super) fn resource_scope(&self) -> Option<String> {
        self.scopes.as_ref().filter(|scopes| !scopes.is_empty()).map(|scopes| scopes.join(" "))
    }
}

/// `known`: the issuer of an earlier login, which is preferred where the server still names it.
pub(super) async fn discover(
    url: &Url,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Discovered, String> {
    let Some(document) = resource_document(url, challenge).await? else {
        return without_resource_document(url).await;
    };
    let resource = document["resource"].as_str().unwrap_or_default().to_owned();
    if !covers(&resource, url) {
        return Err(format!(
            "its metadata speaks of {}, which is another server.",
            single_line(&resource, 200)
        ));
    }
    let issuers: Vec<&str> = texts(&document["authorization_servers"]);
    let issuer = known.filter(|known| issuers.contains(known)).or(issuers.first().copied());
    let issuer = issuer.ok_or("its metadata names no authorization server.")?;
    let server = authorization_server(url, issuer, false)
        .await?
        .ok_or_else(|| format!("{} publishes no metadata.", single_line(issuer, 200)))?;
    let scopes = document.get("scopes_supported").map(|scopes| owned(&texts(scopes)));
    Ok(Discovered { server, resource, scopes })
}

async fn resource_document(url: &Url, challenge: &Challenge) -> Result<Option<Value>, String> {
    if let Some(named) = &challenge.resource_metadata {
        let named = allowed(url, named)?;
        if let Some(document) = fetch(&named).await? {
            return Ok(Some(document));
        }
    }
    for path in [url.path().trim_end_matches('/'), ""] {
        let mut place = url.clone();
        place.set_query(None);
        place.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        if let Some(document) = fetch(&place).await?.filter(|document| document["resource"].is_string()) {
            return Ok(Some(document));
        }
        if url.path().trim_end_matches('/').is_empty() {
            break;
        }
    }
    Ok(None)
}

/// Servers of the revision 2025-03-26 are their own authorization server, with or without a document.
async fn without_resource_document(url: &Url) -> Result<Discovered, String> {
    let issuer = url.origin().ascii_serialization();
    let server = match authorization_server(url, &issuer, true).await? {
        Some(server) => server,
        None => default_endpoints(url, issuer)?,
    };
    let mut resource = url.clone();
    resource.set_query(None);
    Ok(Discovered { server, resource: resource.to_string(), scopes: None })
}

fn default_endpoints(url: &Url, issuer: String) -> Result<AuthorizationServer, String> {
    let at = |path: &str| allowed(url, &format!("{issuer}{path}"));
    Ok(AuthorizationServer {
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        scopes: Vec::new(),
        auth_methods: Vec::new(),
        takes_metadata_documents: false,
        names_issuer: false,
        has_pkce: None,
        issuer,
    })
}

/// `is_own`: the server is its own authorization server, and may name any issuer at its own origin.
async fn authorization_server(
    server: &Url,
    issuer: &str,
    is_own: bool,
) -> Result<Option<AuthorizationServer>, String> {
    for place in well_known(&allowed(server, issuer)?) {
        let Some(document) = fetch(&place).await? else { continue };
        let named = document["issuer"].as_str().unwrap_or_default();
        let is_at_origin = || Url::parse(named).is_ok_and(|url| url.origin() == server.origin());
        if named != issuer && !(is_own && is_at_origin()) {
            return Err(format!(
                "the metadata of {} names {} as its issuer, so it is not trusted.",
                single_line(issuer, 200),
                single_line(named, 200)
            ));
        }
        return read_document(server, named, &document).map(Some);
    }
    Ok(None)
}

fn read_document(server: &Url, issuer: &str, document: &Value) -> Result<AuthorizationServer, String> {
    let endpoint = |name: &str| document[name].as_str().map(|address| allowed(server, address)).transpose();
    let token_endpoint = endpoint("token_endpoint")?
        .ok_or_else(|| format!("{} names no token endpoint.", single_line(issuer, 200)))?;
    Ok(AuthorizationServer {
        issuer: issuer.to_owned(),
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint,
        registration_endpoint: endpoint("registration_endpoint")?,
        scopes: owned(&texts(&document["scopes_supported"])),
        auth_methods: owned(&texts(&document["token_endpoint_auth_methods_supported"])),
        takes_metadata_documents: document["client_id_metadata_document_supported"] == true,
        names_issuer: document["authorization_response_iss_parameter_supported"] == true,
        has_pkce: Some(texts(&document["code_challenge_methods_supported"]).contains(&"S256")),
    })
}

/// The places of the document, in the order of the specification.
fn well_known(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |place: String| {
        let mut url = issuer.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.set_path(&place);
        url
    };
    places.into_iter().map(at).collect()
}

/// Whether a resource is the server or a place above it at the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let above = resource.path().trim_end_matches('/');
    let path = server.path().trim_end_matches('/');
    let is_above = path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    resource.origin() == server.origin() && resource.fragment().is_none() && is_above
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let server = Url::parse("https://host/api/mcp?key=1").unwrap();
        for (resource, is_covered) in [
            ("https://host/api/mcp", true),
            ("https://host/api/", true),
            ("https://host", true),
            ("https://host/ap", false),
            ("https://host/api/mcp/more", false),
            ("https://evil/api/mcp", false),
            ("http://host/api/mcp", false),
            ("https://host/api/mcp#x", false),
            ("", false),
        ] {
            assert_eq!(covers(resource, &server), is_covered, "{resource}");
        }
    }

    #[test]
    fn documents_are_looked_for_in_order() {
        let places = |issuer: &str| {
            let places = well_known(&Url::parse(issuer).unwrap());
            places.iter().map(|url| url.path().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            places("https://id/"),
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
        );
        assert_eq!(
            places("https://id/tenant"),
            [
                "/.well-known/oauth-authorization-server/tenant",
                "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration"
            ]
        );
    }
}
