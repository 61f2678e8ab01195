//! Connections to APIs: one set of credentials for each scheme, host and port, shared by all tabs that use it.
//!
//! Invariants: what the page is told holds no credential; credentials are in memory, and in a file of the owner only where
//! the user asked for it; a connection is called connected only after a request succeeded with its credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Failure;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::{TabRecord, now, origin_of};

/// A file that only its owner may read.
pub trait CredentialFile: Send + Sync {
    fn read(&self) -> Result<Option<String>, Failure>;
    fn write(&self, text: &str) -> Result<(), Failure>;
}

/// How requests to an API are signed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Credential {
    #[default]
    None,
    ApiKey {
        #[serde(rename = "in")]
        place: Place,
        parameter: String,
        value: String,
    },
    Bearer {
        value: String,
    },
    Basic {
        account: String,
        value: String,
    },
    Oauth2(Token),
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Header,
    Query,
    Cookie,
}

/// What a sign-in gave, and how to renew it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    pub access: String,
    pub refresh: Option<String>,
    /// Milliseconds since 1970.
    pub expires_at: Option<u64>,
    pub token_url: String,
    pub client_id: String,
    pub client_secret: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConnectionState {
    Disconnected,
    Connecting,
    Connected,
    Degraded,
    Expired,
    Unreachable,
}

struct Connection {
    credential: Credential,
    is_kept: bool,
    state: ConnectionState,
    message: Option<String>,
    response_time: Option<u64>,
    checked_at: Option<u64>,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            credential: Credential::None,
            is_kept: false,
            state: ConnectionState::Disconnected,
            message: None,
            response_time: None,
            checked_at: None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Connections {
    by_origin: BTreeMap<String, Connection>,
}

/// What a request told about a connection.
pub(crate) enum Observed {
    Status(u16, u64),
    Unreachable(String),
}

impl Connections {
    pub(crate) fn load(&mut self, file: &dyn CredentialFile) {
        let Ok(Some(text)) = file.read() else { return };
        let Ok(kept) = serde_json::from_str::<BTreeMap<String, Credential>>(&text) else { return };
        for (origin, credential) in kept {
            self.by_origin.insert(origin, Connection { credential, is_kept: true, ..Connection::default() });
        }
    }

    /// What belongs into the file.
    pub(crate) fn kept(&self) -> String {
        let kept: BTreeMap<&String, &Credential> = self
            .by_origin
            .iter()
            .filter(|(_, one)| one.is_kept && one.credential != Credential::None)
            .map(|(origin, one)| (origin, &one.credential))
            .collect();
        serde_json::to_string_pretty(&kept).unwrap_or_default()
    }

    pub(crate) fn credential(&self, origin: &str) -> Credential {
        self.by_origin.get(origin).map(|one| one.credential.clone()).unwrap_or_default()
    }

    pub(crate) fn set(&mut self, origin: &str, credential: Credential, is_kept: bool) {
        let connection = self.by_origin.entry(origin.to_owned()).or_default();
        *connection = Connection { credential, is_kept, ..Connection::default() };
    }

    /// Another token of the same sign-in.
    pub(crate) fn renew(&mut self, origin: &str, token: Token) {
        if let Some(connection) = self.by_origin.get_mut(origin) {
            connection.credential = Credential::Oauth2(token);
        }
    }

    pub(crate) fn forget(&mut self, origin: &str) {
        self.by_origin.remove(origin);
    }

    /// Credentials in memory go with the last tab that uses them.
    pub(crate) fn forget_unused(&mut self, tabs: &[TabRecord]) {
        self.by_origin.retain(|origin, one| one.is_kept || !users(tabs, origin).is_empty());
    }

    pub(crate) fn set_state(&mut self, origin: &str, state: ConnectionState, message: Option<String>) {
        let connection = self.by_origin.entry(origin.to_owned()).or_default();
        connection.state = state;
        connection.message = message;
    }

    /// Takes the outcome of a request over; returns whether the page has to be told.
    pub(crate) fn observe(&mut self, origin: &str, observed: &Observed) -> bool {
        let connection = self.by_origin.entry(origin.to_owned()).or_default();
        let before = (connection.state, connection.message.clone());
        let has_credential = connection.credential != Credential::None;
        let (state, message) = match observed {
            Observed::Status(401, _) if has_credential => {
                (ConnectionState::Expired, Some("The API refuses the credentials. Sign in again.".to_owned()))
            }
            Observed::Status(401, _) => {
                (ConnectionState::Disconnected, Some("The API requires authentication.".to_owned()))
            }
            Observed::Status(403, _) => {
                let message = "The API answers 403: the credentials do not allow this request.";
                (ConnectionState::Degraded, Some(message.to_owned()))
            }
            Observed::Status(status @ (429 | 500..), _) => {
                (ConnectionState::Degraded, Some(format!("The API answers {status}.")))
            }
            Observed::Status(_, _) => (ConnectionState::Connected, None),
            Observed::Unreachable(message) => (ConnectionState::Unreachable, Some(message.clone())),
        };
        connection.state = state;
        connection.message = message;
        connection.checked_at = Some(now());
        if let Observed::Status(_, time) = observed {
            connection.response_time = Some(*time);
        }
        before != (connection.state, connection.message.clone())
    }

    /// Connections that are to be looked at from time to time.
    pub(crate) fn active(&self) -> Vec<String> {
        let is_active = |one: &Connection| one.state != ConnectionState::Disconnected;
        self.by_origin.iter().filter(|(_, one)| is_active(one)).map(|(origin, _)| origin.clone()).collect()
    }

    /// One for each origin that a tab uses or that has credentials.
    pub(crate) fn shown(&self, tabs: &[TabRecord]) -> Vec<Value> {
        let used = tabs.iter().filter_map(|tab| origin_of(&tab.base_url.as_ref()?.url));
        let mut origins: Vec<String> = self.by_origin.keys().cloned().chain(used).collect();
        origins.sort();
        origins.dedup();
        let nothing = Connection::default();
        let shown = |origin: &String| {
            self.by_origin.get(origin).unwrap_or(&nothing).shown(origin, &users(tabs, origin))
        };
        origins.iter().map(shown).collect()
    }

    pub(crate) fn shown_one(&self, origin: &str, tabs: &[TabRecord]) -> Value {
        let nothing = Connection::default();
        self.by_origin.get(origin).unwrap_or(&nothing).shown(origin, &users(tabs, origin))
    }
}

impl Connection {
    fn shown(&self, origin: &str, tabs: &[&str]) -> Value {
        let (kind, parameter, place) = match &self.credential {
            Credential::None => ("none", None, None),
            Credential::ApiKey { place, parameter, .. } => ("apiKey", Some(parameter), Some(place)),
            Credential::Bearer { .. } => ("bearer", None, None),
            Credential::Basic { .. } => ("basic", None, None),
            Credential::Oauth2(_) => ("oauth2", None, None),
        };
        let expires_at = match &self.credential {
            Credential::Oauth2(token) => token.expires_at,
            Credential::None
            | Credential::ApiKey { .. }
            | Credential::Bearer { .. }
            | Credential::Basic { .. } => None,
        };
        json!({
            "key": origin,
            "kind": kind,
            "state": self.state,
            "message": self.message,
            "responseTime": self.response_time,
            "checkedAt": self.checked_at,
            "expiresAt": expires_at,
            "kept": if self.is_kept { "file" } else { "memory" },
            "tabs": tabs,
            "parameter": parameter,
            "in": place,
        })
    }
}

fn users<'t>(tabs: &'t [TabRecord], origin: &str) -> Vec<&'t str> {
    let uses = |tab: &&TabRecord| {
        tab.base_url.as_ref().and_then(|base| origin_of(&base.url)).as_deref() == Some(origin)
    };
    tabs.iter().filter(uses).map(|tab| tab.id.as_str()).collect()
}

impl Credential {
    /// Says what is wrong with it, if something is.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_text =
            |text: &str| !text.is_empty() && text.len() <= 64 * 1024 && HeaderValue::from_str(text).is_ok();
        match self {
            Credential::None => Ok(()),
            Credential::ApiKey { parameter, value, place } => {
                let is_name = *place == Place::Query || HeaderName::from_bytes(parameter.as_bytes()).is_ok();
                if is_name && is_text(parameter) && is_text(value) {
                    Ok(())
                } else {
                    Err("An API key needs the name of its parameter and a value.")
                }
            }
            Credential::Bearer { value } if is_text(value) => Ok(()),
            Credential::Bearer { .. } => Err("A bearer token is not empty and has no line breaks."),
            Credential::Basic { account, .. } if !account.is_empty() && !account.contains(':') => Ok(()),
            Credential::Basic { .. } => Err("A user name is not empty and has no colon."),
            Credential::Oauth2(token) if is_text(&token.access) => Ok(()),
            Credential::Oauth2(_) => Err("The token cannot be used."),
        }
    }

    pub(crate) fn apply(&self, url: &mut Url, headers: &mut HeaderMap) -> Result<(), String> {
        let broken = |_| "The credentials cannot be sent.".to_owned();
        let mut set = |name: HeaderName, text: &str| -> Result<(), String> {
            let mut value = HeaderValue::from_str(text).map_err(|_| broken(()))?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok(())
        };
        match self {
            Credential::None => Ok(()),
            Credential::Bearer { value } => set(AUTHORIZATION, &format!("Bearer {value}")),
            Credential::Oauth2(token) => set(AUTHORIZATION, &format!("Bearer {}", token.access)),
            Credential::Basic { account, value } => {
                set(AUTHORIZATION, &format!("Basic {}", STANDARD.encode(format!("{account}:{value}"))))
            }
            Credential::ApiKey { place: Place::Cookie, parameter, value } => {
                set(COOKIE, &format!("{parameter}={value}"))
            }
            Credential::ApiKey { place: Place::Header, parameter, value } => {
                set(HeaderName::from_bytes(parameter.as_bytes()).map_err(|_| broken(()))?, value)
            }
            Credential::ApiKey { place: Place::Query, parameter, value } => {
                // The frame's own value of the parameter would win in some servers.
                let others: Vec<(String, String)> = url
                    .query_pairs()
                    .filter(|(name, _)| name != parameter)
                    .map(|(name, text)| (name.into_owned(), text.into_owned()))
                    .collect();
                url.query_pairs_mut().clear().extend_pairs(others).append_pair(parameter, value);
                Ok(())
            }
        }
    }

    /// Texts that must not be shown.
    pub(crate) fn secrets(&self) -> Vec<String> {
        match self {
            Credential::None => Vec::new(),
            Credential::ApiKey { value, .. } | Credential::Bearer { value } => vec![value.clone()],
            Credential::Basic { account, value } => {
                vec![STANDARD.encode(format!("{account}:{value}")), value.clone()]
            }
            Credential::Oauth2(token) => {
                [Some(token.access.clone()), token.refresh.clone(), token.client_secret.clone()]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        }
        .into_iter()
        .filter(|secret| !secret.is_empty())
        .collect()
    }
}
