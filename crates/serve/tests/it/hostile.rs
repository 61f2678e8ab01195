//! Requests that must reach nothing: without a session, from elsewhere, malformed.

use serde_json::json;

use crate::{Served, answer};

const ROUTES: &[(&str, &str)] = &[
    ("GET", "/state"),
    ("PUT", "/preferences"),
    ("GET", "/chats"),
    ("POST", "/chats"),
    ("GET", "/chats/c"),
    ("GET", "/chats/c/events"),
    ("POST", "/chats/c/prompt"),
    ("POST", "/chats/c/steer"),
    ("POST", "/chats/c/stop"),
    ("POST", "/chats/c/asks/ask-1"),
    ("PUT", "/chats/c/settings"),
    ("POST", "/chats/c/fork"),
    ("POST", "/chats/c/rollback"),
    ("GET", "/chats/c/cost"),
    ("GET", "/chats/c/tasks"),
];

/// What is wrong with a request: header and value; an empty value leaves the header out.
const WRONG: &[(&str, &str)] = &[
    ("cookie", ""),
    ("cookie", "dragoman_chats_1=x"),
    ("x-dragoman-page", ""),
    ("x-dragoman-page", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ("origin", "http://evil.example"),
    ("origin", "null"),
    ("origin", "http://localhost"),
    ("host", "evil.example"),
    ("host", "localhost:1"),
    ("host", "127.0.0.1"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-site", "same-site"),
    ("sec-fetch-site", "none"),
];

/// A body that the route would take.
fn body(path: &str) -> serde_json::Value {
    json!({
        "theme": "dark", "text": "x", "type": "allow", "title": "x", "until": "item-1", "from": "item-1",
        "scope": "both", "path": path,
    })
}

#[tokio::test]
async fn a_request_with_anything_wrong_reaches_nothing() {
    let mut served = Served::start(Vec::new()).await;
    let mut tried = 0;
    for (method, path) in ROUTES {
        for (name, value) in WRONG {
            let method_value = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let mut request = served.client.request(method_value, format!("{}/api{path}", served.origin));
            let good = [
                ("cookie", served.cookie.as_str()),
                ("x-dragoman-page", served.secret.as_str()),
                ("origin", served.origin.as_str()),
            ];
            for (known, good) in good.iter().filter(|(known, _)| known != name) {
                request = request.header(*known, *good);
            }
            if !value.is_empty() {
                request = request.header(*name, *value);
            }
            if *method != "GET" {
                request = request.json(&body(path));
            }
            let (status, answer) = answer(request).await;
            assert!(
                [401, 403, 421].contains(&status),
                "{method} {path} with {name}: {value}: {status} {answer}"
            );
            tried += 1;
        }
    }
    assert_eq!(tried, ROUTES.len() * WRONG.len());
    assert!(
        tokio::time::timeout(std::time::Duration::ZERO, served.engine.next()).await.is_err(),
        "no command"
    );
}

#[tokio::test]
async fn wrong_chats_items_and_bodies_are_refused() {
    let mut served = Served::start(Vec::new()).await;
    for (path, body, wanted) in [
        ("/chats/nobody/prompt", json!({"text": "x"}), 404),
        ("/chats/~!!/prompt", json!({"text": "x"}), 404),
        ("/chats/c/prompt", json!({"text": "  "}), 400),
        ("/chats/c/prompt", json!({}), 400),
        ("/chats/c/prompt", json!({"text": "x".repeat((1 << 20) + 1)}), 400),
        ("/chats/c/prompt", json!({"text": "x".repeat(3 << 20)}), 413),
        ("/chats/c/steer", json!({"text": ""}), 400),
        ("/chats/c/asks/7", json!({"type": "allow"}), 404),
        ("/chats/c/asks/ask-7", json!({"type": "all"}), 400),
        ("/chats/c/rollback", json!({"from": "1", "scope": "both"}), 400),
        ("/chats/c/rollback", json!({"from": "item-1", "scope": "everything"}), 400),
        ("/chats/c/fork", json!({"until": "item--1"}), 400),
        ("/chats/c/delete", json!({}), 404),
        ("/chats/c/../c/stop", json!({}), 404),
        ("/chats/%63/stop", json!({}), 404),
    ] {
        let (status, answer) = served.send("POST", path, body).await;
        // A path with dots is made plain by the client already.
        let is_plain = path.contains("..") && status == 200;
        assert!(status == wanted || is_plain, "{path}: {status} {answer}");
    }
    let (status, _) = served.send("PUT", "/preferences", json!({"theme": "pink"})).await;
    assert_eq!(status, 400);
    while let Ok(seen) = tokio::time::timeout(std::time::Duration::ZERO, served.engine.next()).await {
        let is_harmless = matches!(
            seen,
            testkit::fake_engine::Seen::Load { .. } | testkit::fake_engine::Seen::Cancel { .. }
        );
        assert!(is_harmless, "{seen:?}");
    }
}

/// `ssh -L` shows the page under another port of 127.0.0.1: that works, and other names stay out.
#[tokio::test]
async fn a_forwarded_port_reaches_the_page_and_other_names_do_not() {
    let served = Served::start(Vec::new()).await;
    let ask = |host: &str, origin: &str| {
        let request = served.client.get(format!("{}/api/state", served.origin));
        let request = request.header("cookie", &served.cookie).header("x-dragoman-page", &served.secret);
        answer(request.header("host", host).header("origin", origin))
    };
    let (status, said) = ask("127.0.0.1:9", "http://127.0.0.1:9").await;
    assert_eq!(status, 200, "{said}");
    for (host, origin, expected) in [
        ("127.0.0.1:9", "http://127.0.0.1:10", 403),
        ("127.0.0.1:9", "http://localhost:9", 403),
        ("127.0.0.1:9", "https://127.0.0.1:9", 403),
        ("evil.example:9", "http://evil.example:9", 421),
        ("localhost:9", "http://localhost:9", 421),
        ("127.0.0.1", "http://127.0.0.1", 421),
        ("127.0.0.1:0", "http://127.0.0.1:0", 421),
        ("127.0.0.1:99999", "http://127.0.0.1:99999", 421),
        ("127.0.0.1:+9", "http://127.0.0.1:+9", 421),
        ("127.0.0.1:9.evil.example", "http://127.0.0.1:9.evil.example", 421),
        ("127.0.0.1.evil.example:9", "http://127.0.0.1.evil.example:9", 421),
        ("127.0.0.2:9", "http://127.0.0.2:9", 421),
    ] {
        let (status, said) = ask(host, origin).await;
        assert_eq!(status, expected, "{host} {origin}: {said}");
    }
}
