//! One request to the server: its headers, the token of its login, and what a refusal means.
//!
//! Invariants: a request is repeated at most once for a renewed token; a refusal is recorded before its response is returned.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};

use super::exchange::{Exchange, HttpSession, SESSION_HEADER, lock};
use super::message::StatelessHeaders;
use super::response::{ExchangeError, failed, root_cause};
use super::{ParamHeader, Refusal};
use crate::auth::{Challenge, Renewal};

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// What a gateway answers while the server behind it is down.
const GATEWAY_ERRORS: [StatusCode; 3] =
    [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
const LAST_EVENT_HEADER: &str = "last-event-id";

impl Exchange {
    pub(super) fn refusal(&self) -> Option<Refusal> {
        lock(&self.refusal).clone()
    }

    pub(super) fn has_own_credentials(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }

    pub(super) fn set_param_headers(&self, headers: HashMap<String, Vec<ParamHeader>>) {
        *lock(&self.param_headers) = headers;
    }

    /// Sends with the token of the login; once more where the token could be renewed.
    pub(super) async fn send(
        &self,
        method: Method,
        session: &HttpSession,
        body: Option<Bytes>,
        last_event: Option<&str>,
    ) -> Result<Response, ExchangeError> {
        let mut is_renewed = false;
        loop {
            let bearer = match &self.authorization {
                Some(authorization) => authorization.bearer().await,
                None => None,
            };
            let request = self.build(&method, session, body.clone(), last_event, bearer.as_ref());
            let sent = request.send().await.map_err(|error| {
                let cause = root_cause(&error);
                failed(&format!("It cannot be reached: {cause}. Check its url, and that it is running."))
            });
            let is_away = |response: &Response| GATEWAY_ERRORS.contains(&response.status());
            self.is_unreachable.store(sent.as_ref().map_or(true, is_away), Ordering::Relaxed);
            let response = sent?;
            let challenge = Challenge::read(response.headers());
            let is_refused = match response.status() {
                StatusCode::UNAUTHORIZED => true,
                StatusCode::FORBIDDEN => challenge.is_insufficient_scope,
                _ => false,
            };
            if !is_refused {
                return Ok(response);
            }
            let renewal = match &self.authorization {
                Some(authorization) if !is_renewed => authorization.renew(&challenge, bearer.as_ref()).await,
                Some(_) => Renewal::Refused("It refuses the login that it was just given.".to_owned()),
                None => Renewal::LoginRequired("It requires a login (HTTP 401).".to_owned()),
            };
            is_renewed = true;
            let (reason, is_login) = match renewal {
                Renewal::Renewed => continue,
                Renewal::LoginRequired(reason) => (reason, true),
                Renewal::Refused(reason) => (reason, false),
            };
            // Without the right for one call the rest of the server still works.
            if !is_login && response.status() == StatusCode::FORBIDDEN {
                return Err(failed(&reason));
            }
            *lock(&self.refusal) = Some(Refusal { reason, is_login });
            self.login_required.cancel();
            return Ok(response);
        }
    }

    fn build(
        &self,
        method: &Method,
        session: &HttpSession,
        body: Option<Bytes>,
        last_event: Option<&str>,
        bearer: Option<&HeaderValue>,
    ) -> RequestBuilder {
        let accept =
            if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let old = self.old_endpoint().filter(|_| method == Method::POST);
        let url = old.unwrap_or_else(|| self.url.clone());
        let mut request: RequestBuilder =
            self.client.request(method.clone(), url).headers(self.headers.clone()).header(ACCEPT, accept);
        if let Some(bearer) = bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if let Some(id) = &session.id {
            request = request.header(SESSION_HEADER, id);
        }
        if let Some(version) = &session.version {
            request = request.header(VERSION_HEADER, version);
        }
        if let Some(StatelessHeaders { method, name, tool, .. }) = &session.stateless {
            request = request.header(METHOD_HEADER, method);
            if let Some(name) = name {
                request = request.header(NAME_HEADER, name);
            }
            let params = tool.as_ref().and_then(|tool| lock(&self.param_headers).get(tool).cloned());
            request = request.headers(params.map_or_else(HeaderMap::new, |params| {
                super::param_headers::values(&params, body.as_deref().unwrap_or_default())
            }));
        }
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT_HEADER, last_event);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        request
    }

    /// A server may repeat its token in an error.
    pub(super) fn mask(&self, text: String) -> String {
        match &self.authorization {
            Some(authorization) => authorization.mask(&text),
            None => text,
        }
    }
}
