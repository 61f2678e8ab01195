//! `mcpServers.<name>`: a program to start or an address to speak to.

use crate::cursor::Cursor;
use crate::destination::Destination;
use crate::lazy_text::{LazyText, SecretSource};
use crate::origin::Origin;

#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub transport: McpTransport,
    pub disabled: bool,
    /// A server of the user's own configuration has the network unless it says `"network": false`; one of a project
    /// reaches package registries alone.
    pub network: bool,
    /// What its sandbox is granted, as it is written; a project cannot grant.
    pub grants: Vec<String>,
    /// It may ask for answers of the user's model, each time with a question; a project cannot allow it.
    pub sampling: bool,
    pub origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    Stdio { command: LazyText, args: Vec<LazyText>, env: Vec<(String, SecretSource)> },
    Http { url: LazyText, headers: Vec<(String, SecretSource)>, oauth: McpOauth },
}

/// The settings of a server's login; everything is optional.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpOauth {
    pub client_id: Option<LazyText>,
    pub client_secret: Option<SecretSource>,
    /// The authorization server that secrets may go to.
    pub issuer: Option<String>,
    pub client_name: Option<String>,
    pub port: Option<u16>,
    pub grant: McpGrant,
    pub private_key: Option<SecretSource>,
    pub assertion: Option<SecretSource>,
    /// The token of a company's identity provider, the address where it is exchanged, and the client there.
    pub identity: Option<(SecretSource, LazyText, Option<LazyText>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpGrant {
    #[default]
    AuthorizationCode,
    ClientCredentials,
    JwtBearer,
}

impl McpOauth {
    /// Secrets that may not go to the address are left out; `is_short` then says so.
    fn read(cursor: &Cursor, destination: &Destination, is_short: &mut bool) -> Self {
        let mut secret = |name| {
            let member = cursor.get(name);
            let is_withheld = member.node().is_some() && !destination.takes(&member);
            *is_short |= is_withheld;
            if is_withheld { None } else { member.secret() }
        };
        let (client_secret, private_key, assertion) =
            (secret("clientSecret"), secret("privateKey"), secret("assertion"));
        let identity_token = secret("identityToken");
        // A project does not choose where secrets of the user go.
        let own = ["clientSecret", "privateKey", "assertion", "identityToken"]
            .into_iter()
            .map(|name| cursor.get(name))
            .filter(|member| member.node().is_some())
            .any(|member| member.project_root().is_none() || member.refers_outside_project());
        let address = |name| Some(cursor.get(name)).filter(|member| !own || member.project_root().is_none());
        let grant = cursor.get("grantType");
        let grant = match grant.text().as_deref() {
            None | Some("authorization_code") => McpGrant::AuthorizationCode,
            Some("client_credentials") => McpGrant::ClientCredentials,
            Some("jwt_bearer") => McpGrant::JwtBearer,
            Some(_) => {
                grant.report_invalid("must be authorization_code, client_credentials or jwt_bearer");
                McpGrant::AuthorizationCode
            }
        };
        Self {
            client_id: cursor.get("clientId").lazy_text(),
            client_secret,
            issuer: address("issuer").and_then(|issuer| issuer.text()),
            client_name: cursor.get("clientName").text(),
            port: cursor.get("oauthPort").number(1..=65_535).and_then(|port| u16::try_from(port).ok()),
            grant,
            private_key,
            assertion,
            identity: identity_token
                .zip(address("identityEndpoint").and_then(|endpoint| endpoint.lazy_text()))
                .map(|(token, endpoint)| (token, endpoint, cursor.get("identityClientId").lazy_text())),
        }
    }
}

impl McpServer {
    pub(crate) fn read(cursor: &Cursor) -> Option<Self> {
        let transport = match (cursor.get("command").lazy_text(), cursor.get("url").lazy_text()) {
            (Some(command), _) => read_stdio(cursor, command),
            (None, Some(url)) => read_http(cursor, url)?,
            (None, None) => {
                cursor
                    .report(domain::Level::Warning, "needs a `command` or a `url`; the server is left out.");
                return None;
            }
        };
        let disabled = cursor.get("disabled").flag().unwrap_or(false);
        // A project may have changed one part of a server of the user's.
        let mut parts = cursor.entries().into_iter();
        let is_of_project = parts.any(|part| matches!(part.origin(), Origin::ProjectFile { .. }));
        let network = !is_of_project && cursor.get("network").flag().unwrap_or(true);
        let grants = if is_of_project { Vec::new() } else { cursor.get("grants").texts() };
        let sampling = !is_of_project && cursor.get("sampling").flag().unwrap_or(false);
        Some(Self { transport, disabled, network, grants, sampling, origin: cursor.origin() })
    }
}

/// The variables of the user are not for a program that a project chose.
fn read_stdio(cursor: &Cursor, command: LazyText) -> McpTransport {
    let (args, env) = (cursor.get("args"), cursor.get("env"));
    let program = Destination::of_program(&[cursor.get("command"), args.clone()]);
    let of_user = |(name, _): &(String, SecretSource)| {
        let entries = env.entries();
        entries.iter().find(|entry| entry.name() == name).is_some_and(|entry| entry.project_root().is_none())
    };
    let mut variables = env.secrets();
    if program.foreign_host().is_some() && variables.iter().any(of_user) {
        variables.retain(|variable| !of_user(variable));
        program.report(&cursor.dotted());
    }
    McpTransport::Stdio { command, args: args.lazy_texts(), env: variables }
}

/// `None`: its address would carry a secret of the user to a place of a project.
fn read_http(cursor: &Cursor, url: LazyText) -> Option<McpTransport> {
    let destination = Destination::of(cursor, &[cursor.get("url")]);
    if destination.is_secret() {
        destination.report(&cursor.dotted());
        return None;
    }
    let headers = cursor.get("headers");
    let (headers, mut is_short) = destination.members(&headers, headers.secrets());
    let oauth = McpOauth::read(cursor, &destination, &mut is_short);
    if is_short {
        destination.report(&cursor.dotted());
    }
    Some(McpTransport::Http { url, headers, oauth })
}
