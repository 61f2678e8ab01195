//! Who may use a page of this machine: browsers of this machine that opened a link, and programs that show a token.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, header};

use crate::access::Access;
use crate::answer::ApiError;
use crate::guard::{Origin, RequestPolicy, SECRET, single, single_cookie};

/// The addresses under which a forwarded port shows the page, beside its own.
#[derive(Default)]
pub(crate) struct Forwarding {
    /// Other ports of 127.0.0.1, as `ssh -L` has them. A page of another name cannot use them: its requests name it.
    pub(crate) has_other_ports: bool,
    /// `NAME:PORT`, as the user gave them.
    pub(crate) hosts: Vec<String>,
}

impl Forwarding {
    pub(crate) fn accepts(&self, host: &str) -> bool {
        let port =
            host.strip_prefix("127.0.0.1:").filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        self.has_other_ports && is_port || self.hosts.iter().any(|known| known == host)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 4711;

    fn policy(forwarding: Forwarding) -> PagePolicy {
        PagePolicy {
            access: Arc::new(Access::new().unwrap()),
            port: PORT,
            forwarding: Arc::new(forwarding),
            cookie_name: "page".to_owned(),
            body_limit: |_| 9,
            is_open: |path| path == "/open",
            is_client: |path| path == "/acp",
        }
    }

    fn parts(method: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = axum::http::Request::builder().method(method).uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_hosts_of_this_page_are_its_own() {
        let plain = policy(Forwarding::default());
        assert_eq!(plain.own_origin(Area::Api, "127.0.0.1:4711").unwrap(), "http://127.0.0.1:4711");
        for host in
            ["", "127.0.0.1", "127.0.0.1:4712", "localhost:4711", "evil.example:4711", "127.0.0.1:4711.evil"]
        {
            assert_eq!(plain.own_origin(Area::Api, host).unwrap_err().status.as_u16(), 421, "{host}");
        }
        // The frame has an origin of its own, so that the code in it cannot reach the page.
        assert!(plain.own_origin(Area::Frame, "localhost:4711").is_ok());
        assert!(plain.own_origin(Area::Frame, "127.0.0.1:4711").is_err());
        let forwarded =
            policy(Forwarding { has_other_ports: true, hosts: vec!["localhost:9000".to_owned()] });
        for host in ["127.0.0.1:1", "127.0.0.1:65535", "localhost:9000"] {
            assert!(forwarded.own_origin(Area::Api, host).is_ok(), "{host}");
        }
        for host in ["127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:+1", "127.0.0.1:", "localhost:9001"] {
            assert!(forwarded.own_origin(Area::Api, host).is_err(), "{host}");
        }
    }

    #[test]
    fn other_origins_and_sites_reach_nothing_but_what_is_open() {
        let policy = policy(Forwarding::default());
        let (get, post) = (parts("GET", &[]), parts("POST", &[]));
        for area in [Area::Page, Area::Session, Area::Api, Area::Frame, Area::Open, Area::Client] {
            assert!(!policy.accepts_origin(area, Origin::Other, &get));
            assert_eq!(policy.accepts_origin(area, Origin::Own, &post), area != Area::Frame);
            assert_eq!(policy.accepts_origin(area, Origin::None, &post), area == Area::Client);
            let is_shown = matches!(area, Area::Frame | Area::Open);
            assert_eq!(policy.accepts_site(area, "cross-site", true), is_shown);
            assert!(
                !policy.accepts_site(area, "cross-site", false) && !policy.accepts_site(area, "none", false)
            );
        }
    }

    #[test]
    fn every_path_without_a_rule_of_its_own_needs_the_secret() {
        let policy = policy(Forwarding::default());
        for (path, area) in [
            ("/", Area::Page),
            ("/assets/page.js", Area::Page),
            ("/session", Area::Session),
            ("/session/", Area::Api),
            ("/frame", Area::Frame),
            ("/frames", Area::Api),
            ("/open", Area::Open),
            ("/acp", Area::Client),
            ("/api/chats", Area::Api),
            ("/assets", Area::Api),
        ] {
            assert!(policy.area(path) == area, "{path}");
        }
    }

    #[tokio::test]
    async fn a_request_needs_the_cookie_and_the_secret() {
        let policy = policy(Forwarding::default());
        let token = policy.access.new_token().unwrap();
        let secret = policy.access.exchange(&token).unwrap().unwrap();
        let cookie = format!("page={}", policy.access.cookie());
        let header = SECRET;
        let right = [("cookie", cookie.as_str()), (header.as_str(), secret.as_str())];
        assert!(policy.admit(Area::Api, &mut parts("POST", &right)).await.is_ok());
        let other = [("cookie", "page=x"), (header.as_str(), secret.as_str())];
        let swapped = [("cookie", cookie.as_str()), (header.as_str(), policy.access.cookie())];
        for wrong in [&right[..1], &right[1..], &other, &swapped, &[right[0], right[0], right[1]], &[]] {
            let refused = policy.admit(Area::Api, &mut parts("POST", wrong)).await;
            assert_eq!(refused.unwrap_err().status, StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
        assert!(policy.admit(Area::Page, &mut parts("GET", &[])).await.is_ok());
    }
}
