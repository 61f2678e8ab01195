//! The checks of each request, before any route sees it: the same for the page of this machine and for a server.
//!
//! Must not know what routes do, nor who may use them: a policy says that. Invariant: each check is independent; a request passes
//! only if all of them let it.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::{ApiError, set};

/// How long a body may take.
const BODY_DEADLINE: Duration = Duration::from_secs(60);
/// The longest path with its query.
const LONGEST_PATH: usize = 8 * 1024;
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The header with the secret of a page.
pub const SECRET: HeaderName = HeaderName::from_static("x-dragoman-page");

/// What differs between two kinds of servers.
pub trait RequestPolicy: Clone + Send + Sync + 'static {
    /// The parts of a server that have rules of their own.
    type Area: Copy + Send + Sync;

    fn area(&self, path: &str) -> Self::Area;

    /// The origin of our own pages at this host; an error where it is not ours.
    fn own_origin(&self, area: Self::Area, host: &str) -> Result<String, ApiError>;

    /// Browsers name an origin with everything but their own plain reads; programs name none.
    fn accepts_origin(&self, area: Self::Area, origin: Origin, parts: &Parts) -> bool;

    /// What a browser says about where the request comes from; other programs say nothing.
    fn accepts_site(&self, area: Self::Area, site: &str, is_read: bool) -> bool;

    /// Counts the request, before its address is looked at.
    fn count(&self, _parts: &Parts) -> Result<(), ApiError> {
        Ok(())
    }

    /// Decides who sends the request, and may leave it for the routes.
    fn admit(&self, area: Self::Area, parts: &mut Parts)
    -> impl Future<Output = Result<(), ApiError>> + Send;

    /// The largest body, in bytes.
    fn body_limit(&self, area: Self::Area, path: &str) -> usize;

    /// Headers of each answer besides those that all have.
    fn headers(&self, area: Self::Area) -> Vec<(HeaderName, &'static str)>;
}

/// The origin that a request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// It names none.
    None,
    /// One of our pages.
    Own,
    /// `null`: a frame, or a page that hides where it is from.
    Null,
    Other,
}

/// The middleware of a router whose state is the policy.
pub async fn check<P: RequestPolicy>(State(policy): State<P>, request: Request, next: Next) -> Response {
    let area = policy.area(request.uri().path());
    let mut response = match admit(&policy, area, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    set(&mut response, header::CACHE_CONTROL, "no-store");
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, header::REFERRER_POLICY, "no-referrer");
    for (name, value) in policy.headers(area) {
        set(&mut response, name, value);
    }
    response
}

async fn admit<P: RequestPolicy>(policy: &P, area: P::Area, request: Request) -> Result<Request, ApiError> {
    let (mut parts, body) = request.into_parts();
    let host = if parts.uri.authority().is_some() {
        // A host in the first line is never one of our own.
        ""
    } else {
        single(&parts.headers, &header::HOST)?.unwrap_or_default()
    };
    let own = policy.own_origin(area, host)?;
    let origin = match single(&parts.headers, &header::ORIGIN)? {
        None => Origin::None,
        Some("null") => Origin::Null,
        Some(origin) if origin == own => Origin::Own,
        Some(_) => Origin::Other,
    };
    if !policy.accepts_origin(area, origin, &parts) {
        return Err(ApiError::forbidden("The request comes from another origin."));
    }
    let is_read = is_read(&parts.method);
    let site = single(&parts.headers, &SITE)?;
    if site.is_some_and(|site| site != "same-origin" && !policy.accepts_site(area, site, is_read)) {
        return Err(ApiError::forbidden("The request comes from another site."));
    }
    policy.count(&parts)?;
    check_path(&parts.uri)?;
    policy.admit(area, &mut parts).await?;
    let limit = policy.body_limit(area, parts.uri.path());
    read_body(parts, body, limit).await
}

pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The value of the one cookie with this name; two of them are none.
pub fn single_cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut values = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == wanted)
        .map(|(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

/// None of our paths has an escape, a dot segment or an empty segment.
fn check_path(uri: &Uri) -> Result<(), ApiError> {
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let path = uri.path();
    let is_plain = !path.contains(['%', '\\']) && !path.contains("//") && !path.contains("/.");
    if length > LONGEST_PATH || !is_plain {
        return Err(ApiError::not_found("There is nothing at this address."));
    }
    Ok(())
}

/// A header that may come once; one that comes twice, or is not text, is refused.
pub fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(ApiError::invalid(format!("The header {name} cannot be used."))),
    }
}

/// Reads the whole body within its limit and its deadline.
async fn read_body(parts: Parts, body: Body, limit: usize) -> Result<Request, ApiError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, uri: &str, headers: &[(&str, &str)], body: &str) -> Request {
        let mut request = axum::http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::from(body.to_owned())).unwrap()
    }

    #[test]
    fn a_header_or_cookie_that_comes_twice_is_not_used() {
        let headers = |pairs: &[(&str, &str)]| request("GET", "/", pairs, "").headers().clone();
        assert_eq!(single(&headers(&[]), &header::HOST).unwrap(), None);
        assert_eq!(single(&headers(&[("host", "a")]), &header::HOST).unwrap(), Some("a"));
        assert!(single(&headers(&[("host", "a"), ("host", "a")]), &header::HOST).is_err());
        for (cookies, found) in [
            (&[("cookie", "a=1; b=2")][..], Some("1")),
            (&[("cookie", "ab=1;a=3")], Some("3")),
            (&[("cookie", "a=1; a=1")], None),
            (&[("cookie", "a=1"), ("cookie", "a=2")], None),
            (&[("cookie", "a")], None),
            (&[], None),
        ] {
            assert_eq!(single_cookie(&headers(cookies), "a"), found, "{cookies:?}");
        }
    }

    #[test]
    fn paths_with_escapes_and_dot_segments_are_nowhere() {
        for path in ["/", "/api/chats", "/assets/page.js?v=1", "/a..b"] {
            assert!(check_path(&path.parse().unwrap()).is_ok(), "{path}");
        }
        let long = format!("/{}", "a".repeat(LONGEST_PATH));
        for path in ["/a%2fb", "/a//b", "/../a", "/.git/config", "/a/./b", long.as_str()] {
            let refused = check_path(&path.parse().unwrap());
            assert_eq!(refused.unwrap_err().status, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn a_body_is_json_and_no_longer_than_its_limit() {
        let json = ("content-type", "application/json; charset=utf-8");
        let read = async |method: &str, headers: &[(&str, &str)], body: &str| {
            let (parts, body) = request(method, "/", headers, body).into_parts();
            read_body(parts, body, 8).await.map_err(|error| error.status.as_u16())
        };
        let whole = read("POST", &[json], "12345678").await.unwrap();
        assert_eq!(axum::body::to_bytes(whole.into_body(), 99).await.unwrap(), "12345678");
        for (method, headers, body, status) in [
            ("POST", &[json][..], "123456789", 413),
            ("POST", &[json, ("content-length", "9")], "1", 413),
            ("POST", &[("content-type", "text/plain")], "1", 415),
            ("POST", &[], "1", 415),
            ("GET", &[("content-length", "1")], "1", 400),
            ("DELETE", &[("transfer-encoding", "chunked")], "1", 400),
            ("POST", &[json, ("content-length", "1"), ("content-length", "1")], "1", 400),
        ] {
            assert_eq!(read(method, headers, body).await.err(), Some(status), "{method} {headers:?}");
        }
        assert!(read("GET", &[("content-length", "0")], "").await.is_ok());
    }
}
