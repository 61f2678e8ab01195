//! The checks of each request, before any route sees it.
//!
//! Must not know what routes do. Invariant: each check stands alone; a request passes only if all of them let it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::Access;
use crate::answer::{ApiError, set};
use crate::host::Forwarding;

/// How long a body may take.
const BODY_DEADLINE: Duration = Duration::from_secs(60);
/// The longest path with its query.
const LONGEST_PATH: usize = 8 * 1024;
const SECRET: HeaderName = HeaderName::from_static("x-dragoman-page");

pub(crate) struct Guard {
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
enum Area {
    /// The page and its files.
    Page,
    Session,
    Api,
    Frame,
    Open,
    Client,
}

pub(crate) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let area = guard.area(request.uri().path());
    let mut response = match guard.admit(area, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    set(&mut response, header::CACHE_CONTROL, "no-store");
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, header::REFERRER_POLICY, "no-referrer");
    let shared = if area == Area::Frame { "cross-origin" } else { "same-origin" };
    set(&mut response, HeaderName::from_static("cross-origin-resource-policy"), shared);
    if area != Area::Frame {
        set(&mut response, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
        set(&mut response, header::X_FRAME_OPTIONS, "DENY");
    }
    response
}

impl Guard {
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

    async fn admit(&self, area: Area, request: Request) -> Result<Request, ApiError> {
        let host = self.check_place(area, &request)?;
        check_origin(area, &host, request.method(), request.headers())?;
        check_site(area, request.method(), request.headers())?;
        if area == Area::Api {
            self.check_page(request.headers())?;
        }
        let limit = (self.body_limit)(request.uri().path());
        read_body(request, limit).await
    }

    /// One host, the right one, and a plain path. Returns the host.
    fn check_place(&self, area: Area, request: &Request) -> Result<String, ApiError> {
        let name = if area == Area::Frame { "localhost" } else { "127.0.0.1" };
        let wanted = format!("{name}:{}", self.port);
        let host = single(request.headers(), &header::HOST)?.unwrap_or_default();
        let is_ours = host == wanted || area != Area::Frame && self.forwarding.accepts(host);
        if !is_ours || request.uri().authority().is_some() {
            let (status, text) = (StatusCode::MISDIRECTED_REQUEST, "The request names another host.");
            return Err(ApiError::new(status, "forbidden", text).hint(format!(
                "Open http://{wanted}, or start `dragoman serve` with --host NAME:PORT where a port is forwarded."
            )));
        }
        check_path(request.uri())?;
        Ok(host.to_owned())
    }

    fn check_page(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let refused = || ApiError::unauthorized("This page is not connected to the program any more.");
        let secret = single(headers, &SECRET)?.ok_or_else(refused)?;
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut values = cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie_name)
            .map(|(_, value)| value);
        let has_cookie =
            values.next().is_some_and(|value| self.access.is_cookie(value)) && values.next().is_none();
        // Both are looked at, whatever the first one says.
        let has_secret = self.access.is_secret(secret);
        if has_cookie && has_secret { Ok(()) } else { Err(refused()) }
    }
}

/// A page of ours has the host of the request as its origin.
fn check_origin(area: Area, host: &str, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_allowed = match single(headers, &header::ORIGIN)? {
        // Programs name no origin; browsers name it with everything but their own plain reads.
        None => method == Method::GET || area == Area::Client,
        Some("null") => area == Area::Frame || area == Area::Open && method == Method::GET,
        Some(origin) => area != Area::Frame && origin == format!("http://{host}"),
    };
    if is_allowed { Ok(()) } else { Err(ApiError::forbidden("The request comes from another origin.")) }
}

/// What the browser says about where the request comes from; other programs say nothing.
fn check_site(area: Area, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let is_read = method == Method::GET || method == Method::HEAD;
    let is_allowed = match single(headers, &HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin") => true,
        Some("none") => is_read && matches!(area, Area::Page | Area::Open),
        Some("cross-site" | "same-site") => is_read && matches!(area, Area::Frame | Area::Open),
        Some(_) => false,
    };
    if is_allowed { Ok(()) } else { Err(ApiError::forbidden("The request comes from another site.")) }
}

/// No path of ours has an escape, a dot segment or an empty segment.
pub fn check_path(uri: &Uri) -> Result<(), ApiError> {
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let path = uri.path();
    let is_plain = !path.contains(['%', '\\']) && !path.contains("//") && !path.contains("/.");
    if length > LONGEST_PATH || !is_plain {
        return Err(ApiError::not_found("There is nothing at this address."));
    }
    Ok(())
}

/// A header that may stand once; one that stands twice, or is no text, is refused.
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(ApiError::invalid(format!("The header {name} cannot be used."))),
    }
}

/// Reads the whole body within its limit and its deadline.
pub async fn read_body(request: Request, limit: usize) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let has_length = |value: &str| value.trim() != "0";
    let length = single(&parts.headers, &header::CONTENT_LENGTH)?;
    let has_body = length.is_some_and(has_length) || parts.headers.contains_key(header::TRANSFER_ENCODING);
    if matches!(parts.method, Method::GET | Method::HEAD | Method::DELETE) {
        if has_body {
            return Err(ApiError::invalid("A request of this kind has no body."));
        }
        return Ok(Request::from_parts(parts, Body::empty()));
    }
    let kind = single(&parts.headers, &header::CONTENT_TYPE)?.unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(ApiError::new(status, "invalid", "The body of a request is JSON."));
    }
    let too_large = || {
        let message = format!("The request is larger than {} KiB.", limit / 1024);
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "tooLarge", message)
    };
    if length.and_then(|text| text.parse::<u64>().ok()).is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let bytes = match tokio::time::timeout(BODY_DEADLINE, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(too_large()),
        Err(_) => {
            return Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "invalid",
                "The request came too slowly.",
            ));
        }
    };
    Ok(Request::from_parts(parts, Body::from(bytes)))
}
