//! Requests of the frame through the process to a real API of this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::server::{BOOKS, KeptText, Server, working_child};

/// What the API has seen, and the key that it wants.
#[derive(Clone, Default)]
struct Api {
    seen: Arc<Mutex<Vec<String>>>,
    key: Arc<Mutex<Option<String>>>,
}

async fn start_api() -> (u16, Api) {
    let api = Api::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(answer).with_state(api.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, api)
}

async fn answer(State(api): State<Api>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, 1 << 20).await.unwrap()).into_owned();
    let headers: Vec<String> = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("?")))
        .collect();
    let line = format!("{} {}\n{}\n\n{body}", parts.method, parts.uri, headers.join("\n"));
    api.seen.lock().unwrap().push(line.clone());
    let wanted = api.key.lock().unwrap().clone();
    let given = format!("{}{}", headers.join(" "), parts.uri);
    let redirect = |to: String| (StatusCode::FOUND, [(header::LOCATION, to)]).into_response();
    match parts.uri.path() {
        "/v1/token" | "/token" => {
            let is_renewal = body.contains("grant_type=refresh_token");
            let token = if is_renewal { "renewed-access-token" } else { "first-access-token" };
            axum::response::Response::new(Body::from(
                json!({"access_token": token, "refresh_token": "refresh-token-1", "expires_in": 3600})
                    .to_string(),
            ))
        }
        _ if wanted.is_some_and(|key| !given.contains(&key)) => {
            (StatusCode::UNAUTHORIZED, "{\"message\":\"no key\"}").into_response()
        }
        "/v1/elsewhere" => redirect("http://localhost:1/x".to_owned()),
        "/v1/same" => redirect("/v1/books".to_owned()),
        "/v1/leave" => redirect("/admin".to_owned()),
        "/v1/escape" => redirect("/v1/..%2fadmin".to_owned()),
        "/v1/loop" => redirect("/v1/loop".to_owned()),
        "/v1/slow" => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            "late".into_response()
        }
        "/v1/large" => vec![b'x'; (16 << 20) + 1].into_response(),
        "/v1/bytes" => vec![0xff_u8, 0, 1].into_response(),
        "/v1/ticks" => ticks(given),
        "/v1/broken" => (StatusCode::INTERNAL_SERVER_ERROR, "no").into_response(),
        "/v1/echo" => ([(header::SET_COOKIE, "a=b")], line).into_response(),
        _ => "[{\"id\":1,\"title\":\"A\"}]".into_response(),
    }
}

/// One event at once, with the key in two pieces; the next when the reader is gone or never.
fn ticks(given: String) -> Response {
    let key =
        given.split("x-key: ").nth(1).unwrap_or("none ").split(' ').next().unwrap_or_default().to_owned();
    let (start, end) = key.split_at(key.len() / 2);
    let pieces = [format!("data: one {start}"), format!("{end}\n\n"), "data: two\n\n".to_owned()];
    let stream = futures_util::stream::unfold(pieces.into_iter(), |mut pieces| async move {
        match pieces.next() {
            Some(piece) => Some((Ok::<_, std::convert::Infallible>(piece), pieces)),
            None => std::future::pending().await,
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

async fn call(server: &Server, tab: &str, request: Value) -> Value {
    let (status, answer) = server.page.send("POST", &format!("/api/tabs/{tab}/network"), request).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

fn get(path: &str) -> Value {
    json!({"method": "GET", "path": path, "query": [], "headers": [], "body": null})
}

/// A tab whose base URL is the API's, allowed though it is on this machine.
async fn connected(server: &Server, port: u16) -> String {
    let tab = server.tab_with_interface(&BOOKS.replace("127.0.0.1:9", &format!("127.0.0.1:{port}"))).await;
    let path = format!("/api/tabs/{tab}/base-url");
    let url = format!("http://127.0.0.1:{port}/v1");
    let (status, refused) = server.page.send("PUT", &path, json!({"url": url})).await;
    assert_eq!((status, &refused["error"]["data"]["private"]), (409, &json!(url)), "it is asked about");
    let (status, answer) = server.page.send("PUT", &path, json!({"url": url, "allowPrivate": true})).await;
    assert_eq!((status, &answer["baseUrl"]["isConfirmed"]), (200, &json!(true)));
    tab
}

fn console_of(entries: &Value) -> Vec<Value> {
    entries["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "api").cloned().collect()
}

async fn connection(server: &Server) -> Value {
    server.page.get("/api/state").await.1["connections"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_before_the_base_url_is_confirmed() {
    let (port, api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(&BOOKS.replace("127.0.0.1:9", &format!("127.0.0.1:{port}"))).await;
    let base = server.tab(&tab).await["baseUrl"].clone();
    let expected = json!({"url": format!("http://127.0.0.1:{port}/v1"), "isConfirmed": false, "from": "specification", "isPrivate": true});
    assert_eq!(base, expected);
    let answer = call(&server, &tab, get("/books")).await;
    assert_eq!(answer["error"]["kind"], "notConfirmed");
    let input = json!({"kind": "bearer", "value": "t"});
    let (status, _) = server.page.send("PUT", &format!("/api/tabs/{tab}/connection"), input).await;
    assert_eq!(status, 409, "credentials have no host yet");
    assert!(api.seen.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_frame_reaches_its_base_url_and_nothing_else() {
    let (port, api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = connected(&server, port).await;
    let request = json!({
        "method": "POST", "path": "/echo", "query": [["q", "a b&c"], ["q", "2"]],
        "headers": [["X-Tenant", "7"], ["Authorization", "Bearer stolen"], ["Cookie", "a=b"], ["Host", "evil.test"],
            ["Origin", "http://evil.test"], ["Content-Type", "application/json"], ["X-Forwarded-For", "1.2.3.4"]],
        "body": {"text": "{\"n\": 12345678901234567890}"},
    });
    let answer = call(&server, &tab, request).await;
    assert_eq!((&answer["status"], &answer["ok"]), (&json!(200), &json!(true)));
    let seen = answer["body"]["text"].as_str().unwrap();
    assert!(seen.starts_with("POST /v1/echo?q=a+b%26c&q=2\n"), "{seen}");
    assert!(seen.contains("x-tenant: 7") && seen.ends_with("{\"n\": 12345678901234567890}"), "{seen}");
    for dropped in ["stolen", "cookie", "evil.test", "origin", "forwarded"] {
        assert!(!seen.to_lowercase().contains(dropped), "{dropped} in {seen}");
    }
    let headers = answer["headers"].to_string();
    assert!(!headers.contains("set-cookie"), "{headers}");

    let cases = [
        ("/same", Value::Null),
        ("/elsewhere", json!("redirect")),
        ("/loop", json!("redirect")),
        ("/leave", json!("redirect")),
        ("/escape", json!("redirect")),
        ("/..%2fadmin", json!("refused")),
        ("/%252e%252e%252fadmin", json!("refused")),
        ("/large", json!("tooLarge")),
        ("/../admin", json!("refused")),
        ("/%2e%2e/admin", json!("refused")),
        ("@evil.test/", json!("refused")),
        ("books", json!("refused")),
    ];
    for (path, kind) in cases {
        assert_eq!(call(&server, &tab, get(path)).await["error"]["kind"], kind, "{path}");
    }
    let bytes = call(&server, &tab, get("/bytes")).await;
    assert_eq!(bytes["body"]["base64"], "/wAB");
    let mut traced = get("/books");
    traced["method"] = json!("TRACE");
    assert_eq!(call(&server, &tab, traced).await["error"]["kind"], "refused");
    assert!(!api.seen.lock().unwrap().iter().any(|line| line.contains("/admin")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_api_is_given_up_after_ten_seconds_and_a_silent_one_is_unreachable() {
    let (port, _) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = connected(&server, port).await;
    let began = std::time::Instant::now();
    let answer = call(&server, &tab, get("/slow")).await;
    assert_eq!(answer["error"]["kind"], "timeout");
    assert!((9..13).contains(&began.elapsed().as_secs()));
    // A port that nobody listens on; the user typed it, so it is not asked about.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = listener.local_addr().unwrap().port();
    drop(listener);
    let input = json!({"url": format!("http://127.0.0.1:{free}")});
    let (status, answer) = server.page.send("PUT", &format!("/api/tabs/{tab}/base-url"), input).await;
    assert_eq!((status, &answer["baseUrl"]["from"]), (200, &json!("user")));
    assert_eq!(call(&server, &tab, get("/x")).await["error"]["kind"], "unreachable");
    let (_, state) = server.page.get("/api/state").await;
    let key = format!("http://127.0.0.1:{free}");
    let one = state["connections"].as_array().unwrap().iter().find(|one| one["key"] == key).unwrap();
    assert_eq!(one["state"], "unreachable");
    assert!(one["message"].as_str().unwrap().contains("cannot be reached"));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_added_here_and_never_shown() {
    let secrets = ["header-key-0123456789", "query-key-0123456789", "bearer-0123456789", "pass-0123456789"];
    let inputs = [
        json!({"kind": "apiKey", "in": "header", "parameter": "X-Key", "value": secrets[0]}),
        json!({"kind": "apiKey", "in": "query", "parameter": "key", "value": secrets[1]}),
        json!({"kind": "bearer", "value": secrets[2]}),
        json!({"kind": "basic", "account": "ada", "value": secrets[3]}),
    ];
    for (input, secret) in inputs.into_iter().zip(secrets) {
        let (port, api) = start_api().await;
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path()).await;
        let tab = connected(&server, port).await;
        let (status, shown) = server.page.send("PUT", &format!("/api/tabs/{tab}/connection"), input).await;
        assert_eq!((status, &shown["state"]), (200, &json!("connected")), "after the test request: {shown}");
        // An API that repeats everything; the frame tries to set the key itself.
        let mut request = get("/echo");
        request["query"] = json!([["key", "mine"]]);
        request["headers"] = json!([["X-Key", "mine"]]);
        let answer = call(&server, &tab, request).await;
        let (_, console) = server.page.get("/api/console").await;
        let (_, state) = server.page.get("/api/state").await;
        let encoded = "YWRhOnBhc3MtMDEyMzQ1Njc4OQ==";
        for text in [&answer, &console, &state, &shown] {
            assert!(!text.to_string().contains(secret) && !text.to_string().contains(encoded), "{text}");
        }
        let last = api.seen.lock().unwrap().last().cloned().unwrap();
        assert!(last.contains(secret) || last.contains(encoded), "{last}");
        assert_eq!(console_of(&console).len(), 2);
        assert!(server.kept.0.lock().unwrap().is_none(), "nothing is kept unless it was asked for");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_noticed_and_another_one_goes_on_in_all_tabs() {
    let (port, api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let kept: Arc<KeptText> = Arc::default();
    let server = Server::with_kept(folder.path(), working_child(), kept.clone()).await;
    let (first, second) = (connected(&server, port).await, connected(&server, port).await);
    *api.key.lock().unwrap() = Some("key-one-123456".to_owned());
    assert_eq!(call(&server, &first, get("/books")).await["status"], 401);
    assert_eq!(connection(&server).await["message"], "The API requires authentication.");
    let key = |value: &str| json!({"kind": "bearer", "value": value, "keep": true});
    let path = format!("/api/tabs/{first}/connection");
    let (_, wrong) = server.page.send("PUT", &path, key("nonsense-123")).await;
    assert_eq!(wrong["state"], "expired");
    let (_, right) = server.page.send("PUT", &path, key("key-one-123456")).await;
    assert_eq!((&right["state"], &right["kept"]), (&json!("connected"), &json!("file")));
    assert_eq!(right["tabs"], json!([first, second]));
    assert_eq!(call(&server, &second, get("/books")).await["status"], 200, "the other tab has it too");
    *api.key.lock().unwrap() = Some("key-two-123456".to_owned());
    assert_eq!(call(&server, &second, get("/books")).await["status"], 401);
    assert_eq!(connection(&server).await["state"], "expired");
    server.page.send("PUT", &path, key("key-two-123456")).await;
    assert_eq!(call(&server, &second, get("/books")).await["status"], 200);
    let versions = server.tab(&second).await["versions"].clone();
    assert_eq!(versions, 1, "nothing is generated again");
    assert_eq!(call(&server, &second, get("/broken")).await["status"], 500);
    assert_eq!(connection(&server).await["state"], "degraded");
    // What was kept is there after a restart.
    server.stop().await;
    let server = Server::with_kept(folder.path(), working_child(), kept).await;
    assert_eq!(call(&server, &second, get("/books")).await["status"], 200);
    let (status, _) =
        server.page.send("DELETE", &format!("/api/tabs/{second}/connection"), Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(call(&server, &second, get("/books")).await["status"], 401);
    assert_eq!(server.kept.0.lock().unwrap().as_deref(), Some("{}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_with_a_code_and_pkce_is_renewed_by_itself() {
    let (port, api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = connected(&server, port).await;
    let schemes = server.tab(&tab).await["specification"]["schemes"].clone();
    assert_eq!(schemes[1]["kind"], "oauth2");
    assert_eq!(schemes[1]["scopes"], json!([{"name": "read", "description": "Read"}]));
    let input = json!({"authorizationUrl": "https://id.test/a?x=1", "tokenUrl": format!("http://127.0.0.1:{port}/token"),
        "clientId": "me", "scopes": ["read", "write"]});
    let (status, begun) = server.page.send("POST", &format!("/api/tabs/{tab}/connection/oauth"), input).await;
    assert_eq!(status, 200, "{begun}");
    let address = reqwest::Url::parse(begun["authorizationUrl"].as_str().unwrap()).unwrap();
    let pairs: std::collections::HashMap<_, _> = address.query_pairs().into_owned().collect();
    assert_eq!((pairs["code_challenge_method"].as_str(), pairs["scope"].as_str()), ("S256", "read write"));
    assert_eq!(pairs["redirect_uri"], format!("http://127.0.0.1:{}/oauth/callback", server.page.port));
    *api.key.lock().unwrap() = Some("first-access-token".to_owned());
    let back =
        |state: &str| format!("http://127.0.0.1:{}/oauth/callback?code=abc&state={state}", server.page.port);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let wrong = client.get(back("x")).send().await.unwrap().text().await.unwrap();
    assert!(wrong.contains("Not signed in"));
    let right =
        client.get(back(&pairs["state"])).header("Sec-Fetch-Site", "cross-site").send().await.unwrap();
    assert!(right.text().await.unwrap().contains("You are signed in"));
    let again = client.get(back(&pairs["state"])).send().await.unwrap().text().await.unwrap();
    assert!(again.contains("Not signed in"), "a state works once");
    let exchange = api.seen.lock().unwrap().iter().find(|line| line.contains("/token")).cloned().unwrap();
    assert!(exchange.contains("code_verifier=") && exchange.contains("code=abc"), "{exchange}");
    assert_eq!(call(&server, &tab, get("/books")).await["status"], 200);
    // The API withdraws the token: it is renewed and the request sent again.
    *api.key.lock().unwrap() = Some("renewed-access-token".to_owned());
    assert_eq!(call(&server, &tab, get("/books")).await["status"], 200);
    assert_eq!(connection(&server).await["kind"], "oauth2");
    let (_, everything) = server.page.get("/api/state").await;
    let (_, console) = server.page.get("/api/console").await;
    for secret in ["first-access-token", "renewed-access-token", "refresh-token-1"] {
        assert!(!everything.to_string().contains(secret) && !console.to_string().contains(secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_handed_on_while_it_comes_and_ends_with_its_reader() {
    let (port, _api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = connected(&server, port).await;
    let input = json!({"kind": "apiKey", "in": "header", "parameter": "X-Key", "value": "a-secret-key-1"});
    server.page.send("PUT", &format!("/api/tabs/{tab}/connection"), input).await;
    let mut request = get("/ticks");
    request["inParts"] = json!(true);
    let path = format!("/api/tabs/{tab}/network");
    let mut response = server.page.request("POST", &path, request.clone()).send().await.unwrap();
    let mut text = String::new();
    while !text.contains("data: two") {
        let piece = tokio::time::timeout(Duration::from_secs(60), response.chunk()).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&piece.expect("the stream goes on")));
    }
    assert!(text.starts_with("event: part\ndata: "), "{text}");
    assert!(text.contains("•••") && !text.contains("a-secret") && !text.contains("key-1"), "{text}");
    drop(response);
    // The call is in the console when the reader is gone.
    for _ in 0..1200 {
        let (_, entries) = server.page.get("/api/console").await;
        if console_of(&entries).iter().any(|entry| entry.to_string().contains("/v1/ticks")) {
            // An answer that is no stream comes whole, as the last event.
            request["path"] = json!("/books");
            let response = server.page.request("POST", &path, request).send().await.unwrap();
            let whole = response.text().await.unwrap();
            assert!(whole.starts_with("event: answer\ndata: ") && whole.contains("title"), "{whole}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the stream did not end with its reader");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_looked_at_from_time_to_time() {
    assert_eq!(studio::HEALTH_CHECK, Duration::from_secs(300));
    let (port, api) = start_api().await;
    let folder = tempfile::tempdir().unwrap();
    let often = Duration::from_millis(50);
    let server = Server::with_checks(folder.path(), working_child(), Arc::default(), often).await;
    let tab = connected(&server, port).await;
    let input = json!({"kind": "apiKey", "in": "header", "parameter": "X-Key", "value": "a-secret-key-1"});
    server.page.send("PUT", &format!("/api/tabs/{tab}/connection"), input).await;
    let until = async |state: &str| {
        for _ in 0..1200 {
            if connection(&server).await["state"] == state {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the connection is not {state}: {}", connection(&server).await);
    };
    until("connected").await;
    // Nobody sends a request: only the check can notice that the key is not accepted any more, and that it is again.
    *api.key.lock().unwrap() = Some("another-key".to_owned());
    until("expired").await;
    *api.key.lock().unwrap() = None;
    until("connected").await;
}
