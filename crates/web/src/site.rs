//! What a site hands over: its name, its files, its routes, and the frame in which foreign code runs.
//!
//! Invariant: every document carries a policy that lets it load nothing from elsewhere.

use axum::Router;

/// A file that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    pub name: &'static str,
    pub bytes: &'static [u8],
}

pub struct Site {
    /// A word for the cookie's name.
    pub name: &'static str,
    pub version: &'static str,
    /// `index.html` is the page; `frame.js` and `frame.css` are served to the frame.
    pub assets: &'static [Asset],
    /// What the frame runs before `frame.js`, as `react.js`.
    pub frame_script: Option<&'static str>,
    /// Routes below `/api`, for pages that have shown their secret.
    pub api: Router,
    /// Routes that a browser may be sent to from elsewhere; each protects itself.
    pub open: Router,
    /// Paths of `open` for programs: each checks a token of its own, and no browser reaches them from another site.
    pub is_client: fn(&str) -> bool,
    /// The largest body of a path, in bytes.
    pub body_limit: fn(&str) -> usize,
}

/// For a site that nothing sends a browser to from elsewhere.
pub fn no_routes() -> Router {
    Router::new()
}

/// For a site that only browsers use.
pub fn no_clients(_path: &str) -> bool {
    false
}

/// Names of files whose bytes the frame may have.
pub(crate) const FRAME_FILES: [&str; 3] = [FRAME_SCRIPT, "frame.js", "frame.css"];
pub(crate) const FRAME_SCRIPT: &str = "react.js";

pub fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

pub(crate) fn page_policy(port: u16) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; \
         connect-src 'self'; frame-src http://localhost:{port}; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
}

pub(crate) fn frame_policy(port: u16, nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src blob: data:; \
         font-src 'none'; connect-src 'none'; form-action 'none'; base-uri 'none'; \
         frame-ancestors http://127.0.0.1:{port}; sandbox allow-scripts"
    )
}

/// The document of every frame; the code comes by a message.
pub(crate) fn frame_document(port: u16, nonce: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Interface</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"stylesheet\" nonce=\"{nonce}\" href=\"/frame/frame.css\">\n</head>\n\
         <body data-page=\"http://127.0.0.1:{port}\">\n<div id=\"root\"></div>\n\
         <script nonce=\"{nonce}\" src=\"/frame/{FRAME_SCRIPT}\"></script>\n\
         <script nonce=\"{nonce}\" src=\"/frame/frame.js\"></script>\n</body>\n</html>\n"
    )
}
