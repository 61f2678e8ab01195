//! Calls of a tab to its API: the base URL that its user confirmed, the credentials of its host, tests, and what each call
//! tells about the connection.

use std::time::Duration;

use apiui::spec::{Location, Spec};
use axum::http::StatusCode;
use futures_util::Stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use web::ApiError;

use crate::base_url::{base_address, leads_inside};
use crate::connections::{ConnectionState, Credential, Observed, Token};
use crate::console::{EntryKind, Level};
use crate::exchange::{NetworkAnswer, NetworkBody, NetworkFault, NetworkRequest};
use crate::model::{BaseUrl, BaseUrlSource, now, origin_of};
use crate::network::{PartSender, Prepared};
use crate::studio::{Studio, no_tab, not_kept};

/// Connections are looked at this often.
pub const HEALTH_CHECK: Duration = Duration::from_secs(300);
/// A token is renewed this long before it ends, in milliseconds.
const RENEW_BEFORE: u64 = 60_000;
/// Parts of a stream that may be ahead of the page.
const PARTS_AHEAD: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BaseUrlInput {
    url: String,
    #[serde(default)]
    allow_private: bool,
}

#[derive(Deserialize)]
pub(crate) struct ConnectionInput {
    #[serde(flatten)]
    credential: Credential,
    #[serde(default)]
    keep: bool,
}

impl Studio {
    /// The user confirms where the interface of a tab may send requests.
    pub(crate) async fn confirm_base_url(&self, tab: &str, input: BaseUrlInput) -> Result<(), ApiError> {
        let url = base_address(&input.url).map_err(ApiError::invalid)?;
        let url = url.as_str().trim_end_matches('/').to_owned();
        let from = {
            let model = self.model();
            let specification = &model.tab(tab).ok_or_else(no_tab)?.specification;
            let origin = origin_of(&url);
            let is_named = specification
                .iter()
                .flat_map(|one| &one.servers)
                .any(|server| origin_of(&server.url) == origin);
            if is_named { BaseUrlSource::Specification } else { BaseUrlSource::User }
        };
        let is_private = leads_inside(&url).await;
        if is_private && from == BaseUrlSource::Specification && !input.allow_private {
            return Err(ApiError::conflict(format!(
                "The specification names {url}, which is on this machine or in a private network."
            ))
            .hint("Allow it only if you know this server.")
            .data(json!({"private": url})));
        }
        self.change_tab(tab, |tab| {
            tab.base_url = Some(BaseUrl { url, is_confirmed: true, from, is_private });
            Ok(())
        })
        .await?;
        self.show_connections();
        Ok(())
    }

    /// The base URL and its origin, once it is confirmed.
    fn target(&self, tab: &str) -> Result<(BaseUrl, String), NetworkFault> {
        let unconfirmed = || {
            let message = "The base URL of this tab is not confirmed, so nothing is sent. Confirm it in the connection panel.";
            NetworkFault::new("notConfirmed", message)
        };
        let model = self.model();
        let base = model.tab(tab).and_then(|tab| tab.base_url.clone()).filter(|base| base.is_confirmed);
        let base = base.ok_or_else(unconfirmed)?;
        let origin = origin_of(&base.url).ok_or_else(unconfirmed)?;
        Ok((base, origin))
    }

    /// A request of the frame; the answer goes back to it.
    pub(crate) async fn call_api(&self, tab: &str, request: &NetworkRequest) -> Result<Value, ApiError> {
        self.model().tab(tab).ok_or_else(no_tab)?;
        let outcome = self.send(tab, request, None).await;
        Ok(outcome.map_or_else(|fault| fault.shown(), |answer| answer.shown()))
    }

    /// A request whose answer is read while it comes: `part` events, then one `answer`. Ends when the reader goes away.
    pub(crate) fn stream_api(
        &self,
        tab: &str,
        request: NetworkRequest,
    ) -> Result<impl Stream<Item = (&'static str, String)> + Send + use<>, ApiError> {
        self.model().tab(tab).ok_or_else(no_tab)?;
        let (sender, parts) = mpsc::channel(PARTS_AHEAD);
        let (studio, tab) = (self.clone(), tab.to_owned());
        let sending = tokio::spawn(async move {
            let outcome = studio.send(&tab, &request, Some(&sender)).await;
            outcome.map_or_else(|fault| fault.shown(), |answer| answer.shown())
        });
        Ok(futures_util::stream::unfold(Some((parts, sending)), |state| async move {
            let (mut parts, sending) = state?;
            if let Some(text) = parts.recv().await {
                return Some((("part", json!({"text": text}).to_string()), Some((parts, sending))));
            }
            let broken = |_| NetworkFault::new("unreachable", "The request broke off.").shown();
            let answer = sending.await.unwrap_or_else(broken);
            Some((("answer", answer.to_string()), None))
        }))
    }

    async fn send(
        &self,
        tab: &str,
        request: &NetworkRequest,
        parts: Option<&PartSender>,
    ) -> Result<NetworkAnswer, NetworkFault> {
        let (base, origin) = self.target(tab).inspect_err(|fault| {
            self.log(Some(tab), EntryKind::Api, Level::Warning, &fault.message, None);
        })?;
        let credential = self.fresh_credential(&origin).await;
        let answer = self.send_once(tab, &base, &origin, (request, parts), &credential).await;
        let is_refused = answer.as_ref().is_ok_and(|answer| answer.status == 401);
        // A token that was withdrawn is renewed once.
        if let (true, Credential::Oauth2(token)) = (is_refused, &credential)
            && let Some(renewed) = self.renew(&origin, token).await
        {
            return self.send_once(tab, &base, &origin, (request, parts), &renewed).await;
        }
        answer
    }

    async fn send_once(
        &self,
        tab: &str,
        base: &BaseUrl,
        origin: &str,
        (request, parts): (&NetworkRequest, Option<&PartSender>),
        credential: &Credential,
    ) -> Result<NetworkAnswer, NetworkFault> {
        let prepared =
            Prepared::new(&base.url, base.is_private, request, credential).inspect_err(|fault| {
                self.log(Some(tab), EntryKind::Api, Level::Warning, &fault.message, None);
            })?;
        let answer = self.network.send(&prepared, parts).await;
        let entry = prepared.entry(&answer);
        let (level, message) = match &answer {
            Ok(answer) if answer.status < 400 => (Level::Info, format!("{} {}", entry.method, answer.status)),
            Ok(answer) => (Level::Warning, format!("{} {}", entry.method, answer.status)),
            Err(fault) => (Level::Error, fault.message.clone()),
        };
        self.log(Some(tab), EntryKind::Api, level, &message, Some(entry));
        let observed = match &answer {
            Ok(answer) => {
                let time = u64::try_from(answer.duration.as_millis()).unwrap_or(u64::MAX);
                Some(Observed::Status(answer.status, time))
            }
            Err(fault) if matches!(fault.kind, "unreachable" | "timeout") => {
                Some(Observed::Unreachable(fault.message.clone()))
            }
            Err(_) => None,
        };
        if observed.is_some_and(|observed| self.model().connections.observe(origin, &observed)) {
            self.show_connections();
        }
        answer
    }

    /// The credential of an origin; a token that ends soon is renewed first.
    async fn fresh_credential(&self, origin: &str) -> Credential {
        let credential = self.model().connections.credential(origin);
        if let Credential::Oauth2(token) = &credential
            && token.expires_at.is_some_and(|end| end < now() + RENEW_BEFORE)
        {
            return self.renew(origin, token).await.unwrap_or(credential);
        }
        credential
    }

    async fn renew(&self, origin: &str, token: &Token) -> Option<Credential> {
        let renewed = match self.renewed_token(token).await {
            Some(Ok(renewed)) => renewed,
            Some(Err(message)) => {
                self.log(None, EntryKind::Studio, Level::Warning, &message, None);
                return None;
            }
            None => return None,
        };
        self.model().connections.renew(origin, renewed.clone());
        self.keep_credentials();
        self.show_connections();
        Some(Credential::Oauth2(renewed))
    }

    /// Takes credentials over and tries them at once.
    pub(crate) async fn set_connection(&self, tab: &str, input: ConnectionInput) -> Result<Value, ApiError> {
        input.credential.check().map_err(ApiError::invalid)?;
        if matches!(input.credential, Credential::Oauth2(_)) {
            return Err(ApiError::invalid("A sign-in is begun by its own route."));
        }
        let (_, origin) = self.target(tab).map_err(|fault| ApiError::conflict(fault.message))?;
        self.take_credential(&origin, input.credential, input.keep)?;
        self.test_connection(tab, None).await
    }

    pub(crate) fn take_credential(
        &self,
        origin: &str,
        credential: Credential,
        keep: bool,
    ) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            model.connections.set(origin, credential, keep);
            model.connections.set_state(origin, ConnectionState::Connecting, None);
        }
        self.write_credentials()?;
        self.show_connections();
        Ok(())
    }

    pub(crate) fn forget_connection(&self, tab: &str) -> Result<(), ApiError> {
        let (_, origin) = self.target(tab).map_err(|fault| ApiError::conflict(fault.message))?;
        self.model().connections.forget(&origin);
        self.write_credentials()?;
        self.show_connections();
        Ok(())
    }

    fn write_credentials(&self) -> Result<(), ApiError> {
        let text = self.model().connections.kept();
        let is_needed = text != "{}" || matches!(self.credentials.read(), Ok(Some(_)));
        if !is_needed {
            return Ok(());
        }
        self.credentials.write(&text).map_err(|failure| not_kept(&failure))
    }

    fn keep_credentials(&self) {
        if let Err(error) = self.write_credentials() {
            self.log(None, EntryKind::Studio, Level::Error, &error.message, None);
        }
    }

    pub(crate) fn show_connections(&self) {
        let model = self.model();
        self.publish("connections", &model.connections.shown(&model.tabs));
    }

    /// Sends a request that changes nothing and says what came of it.
    pub(crate) async fn test_connection(&self, tab: &str, path: Option<String>) -> Result<Value, ApiError> {
        let (_, origin) = self.target(tab).map_err(|fault| ApiError::conflict(fault.message))?;
        self.model().connections.set_state(&origin, ConnectionState::Connecting, None);
        self.show_connections();
        let request = match path {
            Some(path) => read_request(path),
            None => test_request(&self.spec(tab).await?),
        };
        if let Err(fault) = self.send(tab, &request, None).await
            && !matches!(fault.kind, "unreachable" | "timeout")
        {
            let mut model = self.model();
            model.connections.set_state(&origin, ConnectionState::Degraded, Some(fault.message));
        }
        self.show_connections();
        let model = self.model();
        Ok(model.connections.shown_one(&origin, &model.tabs))
    }

    /// Looks at the connections in use from time to time.
    pub(crate) async fn watch_connections(self) {
        loop {
            tokio::time::sleep(self.health_check).await;
            let active = self.model().connections.active();
            for origin in active {
                let tab = {
                    let model = self.model();
                    let uses = |base: &BaseUrl| {
                        base.is_confirmed && origin_of(&base.url).as_deref() == Some(origin.as_str())
                    };
                    model
                        .tabs
                        .iter()
                        .find(|tab| tab.base_url.as_ref().is_some_and(uses))
                        .map(|tab| tab.id.clone())
                };
                if let Some(tab) = tab {
                    let _ = self.test_connection(&tab, None).await;
                }
            }
        }
    }

    /// The origin whose credentials a sign-in is for.
    pub(crate) fn connection_origin(&self, tab: &str) -> Result<(String, bool), ApiError> {
        let (base, origin) = self
            .target(tab)
            .map_err(|fault| ApiError::new(StatusCode::CONFLICT, "conflict", fault.message))?;
        Ok((origin, base.is_private))
    }
}

fn read_request(path: String) -> NetworkRequest {
    NetworkRequest {
        method: "GET".to_owned(),
        path,
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
        is_in_parts: false,
    }
}

/// The simplest request that tells whether credentials work: one that reads, needs nothing and is protected, if there is one.
fn test_request(spec: &Spec) -> NetworkRequest {
    if !spec.queries.is_empty() {
        return NetworkRequest {
            method: "POST".to_owned(),
            path: String::new(),
            query: Vec::new(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            body: Some(NetworkBody::Text("{\"query\":\"{ __typename }\"}".to_owned())),
            is_in_parts: false,
        };
    }
    let is_simple = |endpoint: &&apiui::spec::Endpoint| {
        let needs =
            |parameter: &apiui::spec::Parameter| parameter.required && parameter.location != Location::Cookie;
        endpoint.method == "GET" && !endpoint.path.contains('{') && !endpoint.parameters.iter().any(needs)
    };
    let is_protected = |endpoint: &&apiui::spec::Endpoint| !endpoint.security_requirements.is_empty();
    let mut simple = spec.endpoints.iter().filter(is_simple);
    let protected = simple.clone().find(is_protected);
    read_request(
        protected.or_else(|| simple.next()).map_or_else(String::new, |endpoint| endpoint.path.clone()),
    )
}
