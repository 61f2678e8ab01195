//! Who may use a page of this machine: browsers of this machine that opened a link, and programs that show a token.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, header};

use crate::access::Access;
use crate::answer::ApiError;
use crate::guard::{Origin, RequestPolicy, SECRET, single, single_cookie};
use crate::host::Forwarding;

#[derive(Clone)]
pub(crate) struct PagePolicy {
    pub access: Arc<Access>,
    pub port: u16,
    pub forwarding: Arc<Forwarding>,
    pub cookie_name: String,
    pub body_limit: fn(&str) -> usize,
    /// Paths that a browser may be sent to from elsewhere.
    pub is_open: fn(&str) -> bool,
    /// Paths for programs that show a token of their own.
    pub is_client: fn(&str) -> bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Area {
    /// The page and its files.
    Page,
    Session,
    Api,
    Frame,
    Open,
    Client,
}

impl RequestPolicy for PagePolicy {
    type Area = Area;

    fn area(&self, path: &str) -> Area {
        if path == "/session" {
            Area::Session
        } else if path == "/frame" || path.starts_with("/frame/") {
            Area::Frame
        } else if path == "/" || path.starts_with("/assets/") {
            Area::Page
        } else if (self.is_open)(path) {
            Area::Open
        } else if (self.is_client)(path) {
            Area::Client
        } else {
            Area::Api
        }
    }

    fn own_origin(&self, area: Area, host: &str) -> Result<String, ApiError> {
        let name = if area == Area::Frame { "localhost" } else { "127.0.0.1" };
        let wanted = format!("{name}:{}", self.port);
        if host == wanted || area != Area::Frame && self.forwarding.accepts(host) {
            return Ok(format!("http://{host}"));
        }
        let (status, text) = (StatusCode::MISDIRECTED_REQUEST, "The request names another host.");
        Err(ApiError::new(status, "forbidden", text).hint(format!(
            "Open http://{wanted}, or start `dragoman serve` with --host NAME:PORT where a port is forwarded."
        )))
    }

    fn accepts_origin(&self, area: Area, origin: Origin, parts: &Parts) -> bool {
        let is_get = parts.method == Method::GET;
        match origin {
            Origin::None => is_get || area == Area::Client,
            Origin::Null => area == Area::Frame || area == Area::Open && is_get,
            Origin::Own => area != Area::Frame,
            Origin::Other => false,
        }
    }

    fn accepts_site(&self, area: Area, site: &str, is_read: bool) -> bool {
        match site {
            "none" => is_read && matches!(area, Area::Page | Area::Open),
            "cross-site" | "same-site" => is_read && matches!(area, Area::Frame | Area::Open),
            _ => false,
        }
    }

    /// The cookie of the browser and the secret of its page.
    async fn admit(&self, area: Area, parts: &mut Parts) -> Result<(), ApiError> {
        if area != Area::Api {
            return Ok(());
        }
        let refused = || ApiError::unauthorized("This page is no longer connected to the program.");
        let secret = single(&parts.headers, &SECRET)?.ok_or_else(refused)?;
        let cookie = single_cookie(&parts.headers, &self.cookie_name);
        let has_cookie = cookie.is_some_and(|value| self.access.is_cookie(value));
        // Both are looked at, whatever the first one says.
        let has_secret = self.access.is_secret(secret);
        if has_cookie && has_secret { Ok(()) } else { Err(refused()) }
    }

    fn body_limit(&self, _area: Area, path: &str) -> usize {
        (self.body_limit)(path)
    }

    fn headers(&self, area: Area) -> Vec<(HeaderName, &'static str)> {
        let resource = HeaderName::from_static("cross-origin-resource-policy");
        if area == Area::Frame {
            return vec![(resource, "cross-origin")];
        }
        vec![
            (resource, "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (header::X_FRAME_OPTIONS, "DENY"),
        ]
    }
}
