//! Requests that nobody but the page may make: none changes state, none reads data.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Page, Server};

struct Hostile {
    name: String,
    head: String,
    body: Vec<u8>,
    /// The only good answers; empty: any refusal.
    expected: Vec<u16>,
}

/// The headers of a request that would pass, as names and values.
fn good(page: &Page) -> Vec<(String, String)> {
    let own = format!("127.0.0.1:{}", page.port);
    [
        ("Host", own.clone()),
        ("Origin", format!("http://{own}")),
        ("Sec-Fetch-Site", "same-origin".to_owned()),
        ("Cookie", page.cookie.clone()),
        ("X-Dragoman-Page", page.secret.clone()),
        ("Content-Type", "application/json".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn request(name: &str, line: &str, headers: &[(String, String)], body: &[u8], expected: &[u16]) -> Hostile {
    let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty()
        && !headers.iter().any(|(name, _)| {
            name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
        })
    {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    Hostile { name: format!("{name}: {line}"), head, body: body.to_vec(), expected: expected.to_vec() }
}

fn with(page: &Page, name: &str, value: Option<&str>) -> Vec<(String, String)> {
    let mut headers: Vec<_> =
        good(page).into_iter().filter(|(known, _)| !known.eq_ignore_ascii_case(name)).collect();
    headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    headers
}

fn twice(page: &Page, name: &str, value: &str) -> Vec<(String, String)> {
    let mut headers = good(page);
    headers.push((name.to_owned(), value.to_owned()));
    headers
}

/// Reads and changes, each tried with something wrong.
fn attempts(tab: &str) -> Vec<(&'static str, String, &'static [u8])> {
    vec![
        ("GET", "/api/state".to_owned(), b""),
        ("GET", "/api/events".to_owned(), b""),
        ("GET", format!("/api/tabs/{tab}/versions"), b""),
        ("POST", "/api/tabs".to_owned(), b"{}"),
        ("DELETE", format!("/api/tabs/{tab}"), b""),
        (
            "PUT",
            format!("/api/tabs/{tab}/base-url"),
            b"{\"url\":\"http://127.0.0.1:1\",\"allowPrivate\":true}",
        ),
        ("POST", format!("/api/tabs/{tab}/network"), b"{\"method\":\"GET\",\"path\":\"/\"}"),
    ]
}

fn wrong_headers(page: &Page, tab: &str, used_token: &str) -> Vec<Hostile> {
    let port = page.port;
    let other_port = format!("127.0.0.1:{}", if port == 1 { 2 } else { port - 1 });
    let rebound = format!("evil.test:{port}");
    let localhost = format!("localhost:{port}");
    let (bare, v6, trailing) = ("127.0.0.1", format!("[::1]:{port}"), format!("127.0.0.1:{port}."));
    let suffix = format!("127.0.0.1:{port}@evil.test");
    let hosts = [rebound.as_str(), &localhost, bare, &v6, &other_port, &trailing, &suffix, ""];
    let origins = [
        "null",
        "http://evil.test",
        &format!("http://localhost:{port}"),
        &format!("https://127.0.0.1:{port}"),
        "http://127.0.0.1",
        "",
    ];
    let sites = ["cross-site", "same-site", "none", "same-origin, none", "x"];
    let mut all = Vec::new();
    for (method, path, body) in attempts(tab) {
        let line = format!("{method} {path}");
        for host in hosts {
            all.push(request(
                &format!("host {host:?}"),
                &line,
                &with(page, "Host", Some(host)),
                body,
                &[400, 421],
            ));
        }
        for origin in origins {
            all.push(request(
                &format!("origin {origin:?}"),
                &line,
                &with(page, "Origin", Some(origin)),
                body,
                &[400, 403],
            ));
        }
        for site in sites {
            all.push(request(
                &format!("site {site:?}"),
                &line,
                &with(page, "Sec-Fetch-Site", Some(site)),
                body,
                &[403],
            ));
        }
        for (name, value) in [
            ("Cookie", None),
            ("Cookie", Some("other=1")),
            ("Cookie", Some(&*format!("dragoman_studio_{port}=wrong"))),
            ("Cookie", Some(&*format!("{}; {}x", page.cookie, page.cookie))),
            ("X-Dragoman-Page", None),
            ("X-Dragoman-Page", Some("")),
            ("X-Dragoman-Page", Some("wrong")),
            ("X-Dragoman-Page", Some(&page.secret[1..])),
            ("X-Dragoman-Page", Some(used_token)),
        ] {
            all.push(request(&format!("{name} {value:?}"), &line, &with(page, name, value), body, &[401]));
        }
        all.push(request("two hosts", &line, &twice(page, "Host", &rebound), body, &[400]));
        all.push(request("two origins", &line, &twice(page, "Origin", "http://evil.test"), body, &[400]));
        all.push(request("two secrets", &line, &twice(page, "X-Dragoman-Page", "x"), body, &[400]));
        let absolute = format!("{method} http://evil.test{path}");
        all.push(request("absolute address", &absolute, &good(page), body, &[400, 421]));
        if !body.is_empty() {
            all.push(request("no origin", &line, &with(page, "Origin", None), body, &[403]));
            for kind in [
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data; boundary=x",
                "",
                "application/jsonp",
            ] {
                all.push(request(
                    &format!("type {kind:?}"),
                    &line,
                    &with(page, "Content-Type", Some(kind)),
                    body,
                    &[415],
                ));
            }
            for broken in [b"{".as_slice(), b"[]", b"null", b"\xff\xfe", b"{\"order\":7}"] {
                let path = if path == "/api/tabs" { "PUT /api/tabs" } else { &line };
                all.push(request("broken body", path, &good(page), broken, &[400]));
            }
        }
    }
    all
}

fn tokens(page: &Page, used_token: &str) -> Vec<Hostile> {
    let mut all = Vec::new();
    for token in [used_token, "", "x", &page.secret, "' OR 1=1", &"a".repeat(100_000)] {
        let body = json!({"token": token}).to_string();
        all.push(request("token", "POST /session", &good(page), body.as_bytes(), &[401]));
    }
    for body in [b"{}".as_slice(), b"{\"token\":null}", b"{\"token\":[\"x\"]}", b"token=x"] {
        all.push(request("token", "POST /session", &good(page), body, &[400]));
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"] {
        all.push(request("method", &format!("{method} /session"), &good(page), b"", &[]));
    }
    all
}

fn paths(page: &Page) -> Vec<Hostile> {
    let mut all = Vec::new();
    for path in [
        "/assets/../Cargo.toml",
        "/assets/..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/assets/index.html%00.js",
        "/assets/nothing.js",
        "/assets/.hidden",
        "/assets/a\\b",
        "//api/state",
        "/api//state",
        "/api/./state",
        "/api/../api/state",
        "/API/state",
        "/api/state/",
        "/api/tabs/../state",
        "/api/tabs/%2e%2e/state",
        "/api",
        "/api/unknown",
        "/apix",
        "/session/x",
        "/.git/config",
        "/index.html",
        "/frame/studio.js",
        "/frame/..%2fassets/studio.js",
        "/oauth/callback/x",
    ] {
        all.push(request("path", &format!("GET {path}"), &good(page), b"", &[]));
    }
    for line in [
        "TRACE /",
        "CONNECT 127.0.0.1:80",
        "OPTIONS /api/state",
        "PATCH /api/state",
        "POST /api/state",
        "PUT /api/events",
        "POST /",
        "DELETE /assets/studio.js",
        "BREW /api/state",
        "POST /oauth/callback",
        "GET *",
    ] {
        all.push(request("method", line, &good(page), b"", &[]));
    }
    all.push(request("long path", &format!("GET /{}", "a".repeat(20_000)), &good(page), b"", &[]));
    let long = with(page, "X-Long", Some(&"a".repeat(60_000)));
    all.push(request("long head", "GET /api/state", &long, b"", &[]));
    let many: Vec<_> =
        good(page).into_iter().chain((0..500).map(|n| (format!("X-{n}"), "1".to_owned()))).collect();
    all.push(request("many headers", "GET /api/state", &many, b"", &[]));
    all
}

fn bodies(page: &Page, tab: &str) -> Vec<Hostile> {
    let mut all = Vec::new();
    let large = vec![b' '; (1 << 20) + 1];
    all.push(request("large body", "POST /api/tabs", &good(page), &large, &[413]));
    for length in ["99999999999", "18446744073709551616", "-1", "1e3", "0x10"] {
        let headers = with(page, "Content-Length", Some(length));
        all.push(request("length", "POST /api/tabs", &headers, b"{}", &[400, 413]));
    }
    let mut both = with(page, "Content-Length", Some("2"));
    both.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    all.push(request("length and chunked", &format!("DELETE /api/tabs/{tab}"), &both, b"0\r\n\r\n", &[400]));
    let body_of_get = with(page, "Content-Length", Some("2"));
    all.push(request("body of GET", "GET /api/state", &body_of_get, b"{}", &[400]));
    let mut chunked = good(page);
    chunked.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    let mut endless = Vec::new();
    for _ in 0..40 {
        endless.extend_from_slice(b"8000\r\n");
        endless.extend_from_slice(&vec![b' '; 0x8000]);
        endless.extend_from_slice(b"\r\n");
    }
    all.push(request("chunked beyond the limit", "POST /api/tabs", &chunked, &endless, &[413]));
    for title in ["", "   ", &"x".repeat(101), "a\u{0}b", "a\nb"] {
        let body = json!({"title": title}).to_string();
        all.push(request("title", &format!("PATCH /api/tabs/{tab}"), &good(page), body.as_bytes(), &[400]));
    }
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://u:p@h.test",
        "//h.test",
        "http://h.test/?a=b",
        "",
    ] {
        let body = json!({"url": url}).to_string();
        all.push(request(
            "base URL",
            &format!("PUT /api/tabs/{tab}/base-url"),
            &good(page),
            body.as_bytes(),
            &[400],
        ));
    }
    let order = json!({"order": ["x"]}).to_string();
    all.push(request("order", "PUT /api/tabs", &good(page), order.as_bytes(), &[409]));
    all
}

fn frames(page: &Page) -> Vec<Hostile> {
    let port = page.port;
    let at = |host: String| {
        with(page, "Host", Some(&host)).into_iter().filter(|(name, _)| name != "Origin").collect::<Vec<_>>()
    };
    vec![
        request("frame at the page's host", "GET /frame", &at(format!("127.0.0.1:{port}")), b"", &[421]),
        request("page at the frame's host", "GET /", &at(format!("localhost:{port}")), b"", &[421]),
        request("state at the frame's host", "GET /api/state", &at(format!("localhost:{port}")), b"", &[421]),
        request(
            "asset at the frame's host",
            "GET /assets/studio.js",
            &at(format!("localhost:{port}")),
            b"",
            &[421],
        ),
        request("frame elsewhere", "GET /frame", &at(format!("evil.test:{port}")), b"", &[421]),
        request("frame by POST", "POST /frame", &at(format!("localhost:{port}")), b"{}", &[]),
        request(
            "page from another site",
            "GET /",
            &with(page, "Sec-Fetch-Site", Some("cross-site")),
            b"",
            &[403],
        ),
        request("callback without state", "GET /oauth/callback?code=x", &good(page), b"", &[200]),
        request("callback with a guess", "GET /oauth/callback?code=x&state=guess", &good(page), b"", &[200]),
    ]
}

async fn exchange(port: u16, hostile: &Hostile) -> (u16, String) {
    let talk = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // The server may refuse before it has read everything.
        let _ = stream.write_all(hostile.head.as_bytes()).await;
        let _ = stream.write_all(&hostile.body).await;
        let mut answer = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..read]);
            if answer.len() > 1 << 20 {
                break;
            }
        }
        String::from_utf8_lossy(&answer).into_owned()
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), talk).await;
    let answer = answer.unwrap_or_else(|_| panic!("{} was not answered", hostile.name));
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (status, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_change_nothing_and_read_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let page = server.page.clone();
    let (_, tab) = page.send("POST", "/api/tabs", json!({"title": "Confidential title"})).await;
    let tab = tab["id"].as_str().unwrap().to_owned();
    let link = server.bound.new_link().unwrap();
    let token = link.split("#token=").nth(1).unwrap().to_owned();
    let body = json!({"token": token}).to_string();
    let use_it = request("use", "POST /session", &good(&page), body.as_bytes(), &[200]);
    assert_eq!(exchange(page.port, &use_it).await.0, 200, "a good token works once");

    let (_, before) = page.get("/api/state").await;
    let mut all = wrong_headers(&page, &tab, &token);
    all.extend(tokens(&page, &token));
    all.extend(paths(&page));
    all.extend(bodies(&page, &tab));
    all.extend(frames(&page));
    println!("{} hostile requests", all.len());
    assert!(all.len() >= 100);
    for hostile in &all {
        let (status, answer) = exchange(page.port, hostile).await;
        let is_refused = if hostile.expected.is_empty() {
            // A broken head is answered with 400 or with the end of the connection.
            status == 0 || (400..600).contains(&status)
        } else {
            hostile.expected.contains(&status) || status == 0 && hostile.expected.contains(&400)
        };
        assert!(is_refused, "{}: {status}\n{answer}", hostile.name);
        for secret in ["Confidential title", &page.secret, &page.cookie, "set-cookie", "access-control-allow"]
        {
            assert!(
                !answer.to_lowercase().contains(&secret.to_lowercase()),
                "{} gives {secret}",
                hostile.name
            );
        }
    }
    let (_, after) = page.get("/api/state").await;
    assert_eq!(before["tabs"], after["tabs"]);
    assert_eq!(before["connections"], after["connections"]);
    assert_eq!(before["preferences"], after["preferences"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_carry_their_policies_and_the_frame_is_another_site() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let port = server.page.port;
    let read = async |host: &str, path: &str, site: &str| {
        let headers =
            [("Host".to_owned(), format!("{host}:{port}")), ("Sec-Fetch-Site".to_owned(), site.to_owned())];
        exchange(port, &request("read", &format!("GET {path}"), &headers, b"", &[])).await
    };
    let (status, page) = read("127.0.0.1", "/", "none").await;
    assert_eq!(status, 200, "{page}");
    for part in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        &format!("frame-src http://localhost:{port}"),
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let (status, frame) = read("localhost", "/frame", "cross-site").await;
    assert_eq!(status, 200, "{frame}");
    let nonce = frame.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    for part in [
        format!("script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src blob: data:"),
        "connect-src 'none'; form-action 'none'; base-uri 'none'".to_owned(),
        format!("frame-ancestors http://127.0.0.1:{port}; sandbox allow-scripts"),
        format!("<script nonce=\"{nonce}\" src=\"/frame/frame.js\">"),
    ] {
        assert!(frame.contains(&part), "{part} in {frame}");
    }
    let (_, again) = read("localhost", "/frame", "cross-site").await;
    assert!(!again.contains(&nonce), "each frame has a nonce of its own");
    let (status, script) = read("localhost", "/frame/frame.js", "cross-site").await;
    assert!(status == 200 && script.contains("cross-origin-resource-policy: cross-origin"));
}
