//! The server for other machines, through real TLS: what accounts may do, and hostile requests that do nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use domain::command::{Catalog, SessionSettings};
use domain::event::SessionOpened;
use domain::link::Engine;
use domain::store::{AUDIT, ListFilter};
use domain::{Command, Fact, SessionId, Store};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use serve::{Accounts, Guard, Policy, ROUTES, Role, Server, ServerOptions, accounts};
use testkit::fake_engine::Seen;
use testkit::{FakeEngine, MemoryStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use web::{Asset, Listener, Tls};

use crate::WAIT;

const ASSETS: &[Asset] =
    &[Asset { name: "index.html", bytes: b"<p>page" }, Asset { name: "a.js", bytes: b"1" }];

/// A server on a loopback address, with three accounts and one that was revoked, and chats in two folders of which it names one.
struct Network {
    engine: FakeEngine,
    store: MemoryStore,
    folder: tempfile::TempDir,
    host: String,
    connector: TlsConnector,
    tokens: [String; 3],
    revoked: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Network {
    async fn start() -> Self {
        Self::start_with(|engine| engine).await
    }

    /// With something between the server and its engine.
    async fn start_with(between: impl FnOnce(Engine) -> Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = FakeEngine::start(Catalog::default());
        let store = MemoryStore::default();
        let real = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["ours", "theirs"] {
            std::fs::create_dir(real(name)).unwrap();
        }
        std::fs::write(real("theirs").join("secret.txt"), "secret").unwrap();
        let chats: [(&str, Vec<PathBuf>); 4] = [
            ("ours", vec![real("ours")]),
            ("theirs", vec![real("theirs")]),
            ("both", vec![real("ours"), real("theirs")]),
            ("nowhere", vec![]),
        ];
        for (name, workspace) in chats {
            let id = SessionId::new(name);
            let first = workspace.first().map_or_else(|| "/".into(), |path| path.display().to_string());
            store.lease(&id).await.unwrap();
            let opened = SessionOpened {
                workspace,
                settings: SessionSettings::default(),
                parent: None,
                client: String::new(),
            };
            store.append(&id, vec![Fact::SessionOpened(opened)]).await.unwrap();
            engine.store(&id, SessionSettings::default(), &first, Vec::new());
        }
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let mut tokens = Vec::new();
        for role in [Role::View, Role::Drive, Role::Admin] {
            tokens.push(accounts::add(&shared, role.as_str(), role, None, Vec::new()).await.unwrap());
        }
        let revoked = accounts::add(&shared, "gone", Role::Admin, None, Vec::new()).await.unwrap();
        accounts::revoke(&shared, "gone").await.unwrap();
        let (cert, key) = web::make_certificate(&["127.0.0.1".to_owned()]).unwrap();
        let tls = Tls::from_pem(cert.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(tls.fingerprint().len(), 95);
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
        let host = listener.address().unwrap().to_string();
        let guard = Guard::new(between(engine.engine()), shared.clone(), Policy::default());
        let (_, router) = Server::new(ServerOptions {
            accounts: Accounts::open(shared.clone(), &[real("ours")]).unwrap(),
            guard,
            store: shared,
            hosts: vec![host.clone()],
            running: Arc::new(|| Box::pin(async { Ok(Vec::new()) })),
            version: "1",
            assets: ASSETS,
            more: web::no_routes(),
        });
        tokio::spawn(listener.serve(router));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tokens = tokens.try_into().unwrap();
        Self { engine, store, folder, host, connector: TlsConnector::from(Arc::new(config)), tokens, revoked }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(&self.host).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        self.connector.connect(name, stream).await.unwrap()
    }

    /// Sends these bytes and reads the first answer; status 0 where the connection just ends.
    async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect().await;
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let mut part = [0; 16 * 1024];
        loop {
            match tokio::time::timeout(WAIT, stream.read(&mut part)).await.expect("an answer in time") {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// A request with these headers beside those that it needs.
    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Vec<u8> {
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("host: {}\r\n", self.host));
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != "-") {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("connection: close\r\n");
        if let Some(body) = body {
            let has = |wanted: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
            if !has("content-type") {
                text.push_str("content-type: application/json\r\n");
            }
            if !has("content-length") && !has("transfer-encoding") {
                text.push_str(&format!("content-length: {}\r\n", body.len()));
            }
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        text.into_bytes()
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        self.raw(&self.request(method, path, headers, body)).await
    }

    fn bearer(&self, role: Role) -> String {
        format!("Bearer {}", self.tokens[role as usize])
    }

    /// With the token of an account.
    async fn call(&self, role: Role, method: &str, path: &str, body: Option<Value>) -> Answer {
        let bearer = self.bearer(role);
        let body = body.map(|body| body.to_string());
        let path = format!("/api/v1{path}");
        self.send(method, &path, &[("authorization", &bearer)], body.as_deref()).await
    }

    /// Everything that a hostile request could have changed; the log without its refusals.
    async fn state(&mut self) -> Vec<String> {
        let mut state = Vec::new();
        for chat in self.store.list(ListFilter::default()).await.unwrap() {
            let facts = self.store.read(&chat.id, 0, 100).await.unwrap();
            state.push(format!("{chat:?} {facts:?}"));
        }
        for kind in ["serve.accounts", "serve"] {
            state.push(format!("{:?}", self.store.records(kind, "", 100).await.unwrap()));
        }
        for (_, value) in self.store.records(AUDIT, "", 10_000).await.unwrap() {
            if !value.contains("refused") {
                state.push(value);
            }
        }
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                state.push(format!("{:?} {:?}", entry.path(), entry.metadata().unwrap().modified()));
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        while let Ok(seen) = tokio::time::timeout(Duration::from_millis(1), self.engine.next()).await {
            // A caller with an account may open and leave its own chats.
            if !matches!(seen, Seen::Load { .. } | Seen::Detach | Seen::Close { .. }) {
                state.push(format!("{seen:?}"));
            }
        }
        state.sort();
        state
    }
}

/// A path and a body that each route would take.
fn examples(chat: &str) -> Vec<(&'static str, String, Option<String>)> {
    let body = json!({
        "theme": "dark", "text": "x", "type": "allow", "title": "x", "until": "item-1", "from": "item-1",
        "scope": "both",
    });
    let example = |route: &'static serve::Route| {
        let path = route.path.replace("{key}", chat).replace("{ask}", "ask-1");
        let body = (route.method != "GET").then(|| body.to_string());
        (route.method, format!("/api/v1{path}"), body)
    };
    ROUTES.iter().map(example).collect()
}

fn refusals(answer: &Answer, wanted: &[u16], what: &str) {
    assert!(wanted.contains(&answer.status), "{what}: {} {} {}", answer.status, answer.head, answer.body);
    assert!(!answer.body.contains("secret") && !answer.body.contains("theirs"), "{what}: {}", answer.body);
}

#[tokio::test]
async fn hostile_tokens_open_nothing() {
    let mut network = Network::start().await;
    let before = network.state().await;
    let admin = network.tokens[2].clone();
    let (short, long) = (&admin[..20], format!("{admin}x"));
    let upper = admin.to_uppercase();
    let huge = format!("Bearer {}", "x".repeat(5_000));
    let bearer = |token: &str| format!("Bearer {token}");
    let wrong: Vec<Vec<(&str, String)>> = vec![
        vec![],
        vec![("authorization", String::new())],
        vec![("authorization", "Bearer".into())],
        vec![("authorization", "Bearer ".into())],
        vec![("authorization", bearer(short))],
        vec![("authorization", bearer(&long))],
        vec![("authorization", bearer(&upper))],
        vec![("authorization", bearer(&network.revoked))],
        vec![("authorization", admin.clone())],
        vec![("authorization", format!("Basic {admin}"))],
        vec![("authorization", huge)],
        vec![("authorization", bearer(&admin)), ("authorization", bearer(&admin))],
        vec![("x-token", admin.clone())],
        vec![("cookie", format!("__Host-dragoman={admin}")), ("x-dragoman-page", admin.clone())],
        vec![("proxy-authorization", bearer(&admin))],
    ];
    let mut tried = 0;
    for (method, path, body) in examples("ours") {
        for headers in &wrong {
            let mut headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let origin = format!("https://{}", network.host);
            headers.push(("origin", &origin));
            let answer = network.send(method, &path, &headers, body.as_deref()).await;
            refusals(&answer, &[400, 401, 429], &format!("{method} {path} {headers:?}"));
            tried += 1;
        }
        // A token in an address is not looked at.
        let path = format!("{path}?token={admin}&access_token={admin}");
        let origin = format!("https://{}", network.host);
        let answer = network.send(method, &path, &[("origin", &origin)], body.as_deref()).await;
        refusals(&answer, &[401, 429], &path);
        tried += 1;
    }
    assert_eq!(tried, 256);
    assert_eq!(network.state().await, before);
}

#[tokio::test]
async fn hostile_origins_and_hosts_open_nothing() {
    let mut network = Network::start().await;
    let before = network.state().await;
    let admin = network.bearer(Role::Admin);
    let (host, port) = (network.host.clone(), network.host.rsplit_once(':').unwrap().1.to_owned());
    let wrong: Vec<(&str, String)> = vec![
        ("host", "evil.example".into()),
        ("host", "127.0.0.1".into()),
        ("host", format!("localhost:{port}")),
        ("host", format!("{host}.evil.example")),
        ("host", "-".into()),
        ("origin", "https://evil.example".into()),
        ("origin", "null".into()),
        ("origin", format!("http://{host}")),
        ("origin", format!("https://{host}.evil.example")),
        ("sec-fetch-site", "cross-site".into()),
        ("sec-fetch-site", "same-site".into()),
        ("sec-fetch-site", "none".into()),
    ];
    let mut tried = 0;
    for (method, path, body) in examples("ours") {
        for (name, value) in &wrong {
            let headers = [("authorization", admin.as_str()), (*name, value.as_str())];
            let answer = network.send(method, &path, &headers, body.as_deref()).await;
            refusals(&answer, &[400, 403, 421], &format!("{method} {path} {name}: {value}"));
            tried += 1;
        }
    }
    for path in
        [format!("https://{host}/api/v1/chats"), "http://evil.example/api/v1/chats".into(), "*".into()]
    {
        let answer = network.send("GET", &path, &[("authorization", &admin)], None).await;
        refusals(&answer, &[400, 404, 421], &path);
        tried += 1;
    }
    assert_eq!(tried, 195);
    assert_eq!(network.state().await, before);
}

#[tokio::test]
async fn roles_and_folders_hold_on_every_route() {
    let mut network = Network::start().await;
    let before = network.state().await;
    let mut tried = 0;
    for (route, (method, path, body)) in ROUTES.iter().zip(examples("ours")) {
        if route.role > Role::View {
            let view = network.bearer(Role::View);
            let answer = network.send(method, &path, &[("authorization", &view)], body.as_deref()).await;
            refusals(&answer, &[403], &format!("view {method} {path}"));
            tried += 1;
        }
    }
    // Chats outside of the folders are as if they were not there.
    let odd = ["theirs", "both", "nowhere", "unknown", "~dGhlaXJz", "~", "~!", "ours:", "-"];
    for chat in odd {
        for (method, path, body) in examples(chat).into_iter().filter(|(_, path, _)| path.contains("/chats/"))
        {
            let admin = network.bearer(Role::Admin);
            let answer = network.send(method, &path, &[("authorization", &admin)], body.as_deref()).await;
            let hidden = Answer { body: answer.body.replace("secret", ""), ..answer };
            refusals(&hidden, &[404], &format!("{method} {path}"));
            tried += 1;
        }
    }
    let root = network.folder.path().canonicalize().unwrap();
    let root = root.display();
    for folder in [
        "/".to_owned(),
        String::new(),
        ".".into(),
        "..".into(),
        "ours".into(),
        format!("{root}"),
        format!("{root}/theirs"),
        format!("{root}/ours/"),
        format!("{root}/ours/../theirs"),
        format!("{root}/ours/.."),
        format!("{root}/ours\u{0}"),
        "/etc".into(),
        "/proc/self/cwd".into(),
        "~".into(),
        "file:///etc".into(),
    ] {
        let answer = network.call(Role::Admin, "POST", "/chats", Some(json!({"folder": folder}))).await;
        // A path that only is written otherwise is the same folder; all others are refused.
        let is_ours = folder == format!("{root}/ours/");
        assert!(answer.status == 400 || is_ours && answer.status == 201, "{folder}: {}", answer.body);
        tried += 1;
    }
    for query in
        ["?here=true", "?search=SessionOpened", "?limit=100000", "?after=theirs&afterTime=99999999999999"]
    {
        let answer = network.call(Role::View, "GET", &format!("/chats{query}"), None).await;
        assert_eq!(answer.status, 200);
        let chats = answer.json()["chats"].as_array().unwrap().clone();
        assert!(chats.iter().all(|chat| chat["key"] == "ours"), "{query}: {chats:?}");
        tried += 1;
    }
    assert!(tried > 120, "{tried}");
    let after = network.state().await;
    let opened = after.iter().filter(|entry| entry.contains("Open {") || entry.contains("\"open\"")).count();
    assert!(opened <= 2, "one chat in the caller's own folder");
    let rest: Vec<_> =
        after.into_iter().filter(|entry| !entry.contains("Open {") && !entry.contains("\"open\"")).collect();
    assert_eq!(rest, before);
}

#[tokio::test]
async fn malformed_requests_do_nothing() {
    let mut network = Network::start().await;
    let before = network.state().await;
    let admin = network.bearer(Role::Admin);
    let auth = ("authorization", admin.as_str());
    let mut tried = 0;
    for body in [
        "",
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{\"text\":1}",
        "{\"text\":{}}",
        "{\"text\":\"x\"",
        "{\"text\":\"\\ud800\"}",
        "{\"text\":\"\"}",
        "{\"text\":\" \"}",
        "\u{feff}{}",
        "{\"tex\":\"x\"}",
        "text=x",
    ] {
        let answer = network.send("POST", "/api/v1/chats/ours/prompt", &[auth], Some(body)).await;
        refusals(&answer, &[400, 415], body);
        tried += 1;
    }
    let deep = "[".repeat(100_000);
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat((1 << 20) + 1));
    let huge = format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20));
    for (body, wanted) in [(&deep, 400), (&large, 400), (&huge, 413)] {
        let answer = network.send("POST", "/api/v1/chats/ours/prompt", &[auth], Some(body)).await;
        // A server that has said no may close before all of it was sent.
        assert!(answer.status == wanted || answer.status == 0, "{}", answer.status);
        tried += 1;
    }
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonx"]
    {
        let headers = [auth, ("content-type", kind)];
        let answer =
            network.send("POST", "/api/v1/chats/ours/prompt", &headers, Some("{\"text\":\"x\"}")).await;
        refusals(&answer, &[415], kind);
        tried += 1;
    }
    for method in
        ["PATCH", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PROPFIND", "get", "G\u{0}T", "POST", "PUT"]
    {
        for path in ["/api/v1/state", "/api/v1/openapi.json", "/api/v1/chats/ours/cost", "/assets/a.js", "/"]
        {
            let answer = network.send(method, path, &[auth], Some("{}")).await;
            assert!([0, 400, 404, 405, 415].contains(&answer.status), "{method} {path}: {}", answer.status);
            tried += 1;
        }
    }
    for path in [
        "/api/v1/chats/ours/../theirs",
        "/api/v1/chats/%74heirs",
        "/api/v1//chats",
        "/api/v1/./chats",
        "/api/v1/chats/",
        "/api/v1/../../etc/passwd",
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc",
        "/assets/.env",
        "/assets/none.js",
        "/api/v2/chats",
        "/api/chats",
        "/frame",
        "/metrics",
        "/api/v1/chats\\ours",
        "/api/v1/chats/ours/delete",
        "/api/v1/chats/ours;x=1/cost/x",
        "/admin",
        "/.git/config",
        "/api/v1/tokens",
        "/api/v1/audit",
    ] {
        let answer = network.send("GET", path, &[auth], None).await;
        refusals(&Answer { body: answer.body.replace("theirs", ""), ..answer }, &[400, 404], path);
        tried += 1;
    }
    let host = network.host.clone();
    let post = "POST /api/v1/chats/ours/stop HTTP/1.1";
    let tail = "GET /api/v1/chats/ours/cost HTTP/1.1";
    for raw in [
        format!(
            "{post}\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{tail}\r\n\r\n"
        ),
        format!(
            "{post}\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 40\r\n\r\n{{}}"
        ),
        format!(
            "{post}\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ncontent-length: -1\r\n\r\n{{}}"
        ),
        format!(
            "{post}\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ncontent-length: +2\r\n\r\n{{}}"
        ),
        format!(
            "{post}\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ntransfer-encoding: xchunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
        ),
        format!(
            "{post}\r\nhost: {host}\r\nhost: evil.example\r\nauthorization: {admin}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
        ),
        format!("{post}\r\nhost : {host}\r\nauthorization: {admin}\r\ncontent-length: 0\r\n\r\n"),
        format!("{post}\r\n host: {host}\r\nauthorization: {admin}\r\ncontent-length: 0\r\n\r\n"),
        format!("{post}\r\nhost: {host}\r\nauthorization: {admin}\u{0}\r\ncontent-length: 0\r\n\r\n"),
        format!(
            "{post}\r\nhost: {host}\r\nx: {}\r\nauthorization: {admin}\r\ncontent-length: 0\r\n\r\n",
            "y".repeat(64 << 10)
        ),
        format!(
            "POST /api/v1/chats/ours/stop HTTP/1.0\r\nauthorization: {admin}\r\ncontent-length: 0\r\n\r\n"
        ),
        "POST /api/v1/chats/ours/stop\r\n\r\n".to_owned(),
        format!("{post} \r\nhost: {host}\r\n\r\n"),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!(
            "GET /api/v1/{} HTTP/1.1\r\nhost: {host}\r\nauthorization: {admin}\r\nconnection: close\r\n\r\n",
            "x".repeat(20_000)
        ),
        format!(
            "GET /api/v1/state HTTP/1.1\r\nhost: {host}\r\nauthorization: {admin}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        ),
    ] {
        let answer = network.raw(raw.as_bytes()).await;
        assert!([0, 400, 404, 413, 414, 421, 431].contains(&answer.status), "{raw:?}: {}", answer.status);
        tried += 1;
    }
    assert!(tried > 100, "{tried}");
    assert_eq!(network.state().await, before);
}

/// What a page does, and what a thief of one part of it can do.
#[tokio::test]
async fn the_session_of_a_page_needs_cookie_secret_and_origin() {
    let network = Network::start().await;
    let origin = format!("https://{}", network.host);
    let login = json!({"token": network.tokens[1]}).to_string();
    for headers in [vec![], vec![("origin", "https://evil.example")]] {
        let answer = network.send("POST", "/session", &headers, Some(&login)).await;
        refusals(&answer, &[403], "a login from elsewhere");
    }
    let wrong = json!({"token": "dragoman_x"}).to_string();
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(network.send("POST", "/session", &[("origin", &origin)], Some(&wrong)).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 401, 429], "failed logins are slowed down");
    let mut answer;
    loop {
        answer = network.send("POST", "/session", &[("origin", &origin)], Some(&login)).await;
        if answer.status != 429 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(answer.status, 200, "{}", answer.body);
    let secret = answer.json()["secret"].as_str().unwrap().to_owned();
    assert_eq!(answer.json()["role"], "drive");
    let line = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap().to_owned();
    for part in ["__Host-", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(line.contains(part), "{line}");
    }
    let cookie = line.split(';').next().unwrap().to_owned();
    let good =
        [("cookie", cookie.as_str()), ("x-dragoman-page", secret.as_str()), ("origin", origin.as_str())];
    let state = network.send("GET", "/api/v1/state", &good, None).await.json();
    assert_eq!(state["account"]["role"], "drive");
    assert!(state["sharing"].as_str().unwrap().contains("operating-system account"));
    let twice = format!("{cookie}; {cookie}");
    for headers in [
        vec![good[0], good[2]],
        vec![good[1], good[2]],
        vec![("cookie", twice.as_str()), good[1], good[2]],
        vec![good[0], ("x-dragoman-page", "x"), good[2]],
        vec![("cookie", "__Host-dragoman=x"), good[1], good[2]],
    ] {
        let answer = network.send("GET", "/api/v1/chats", &headers, None).await;
        refusals(&answer, &[401], &format!("{headers:?}"));
    }
    let stop = network.send("POST", "/api/v1/chats/ours/stop", &good[..2], Some("{}")).await;
    refusals(&stop, &[403], "without an origin");
    let stop = network.send("POST", "/api/v1/chats/ours/stop", &good, Some("{}")).await;
    assert_eq!(stop.status, 200, "{}", stop.body);
    assert_eq!(network.send("DELETE", "/session", &good, None).await.status, 200);
    refusals(&network.send("GET", "/api/v1/chats", &good, None).await, &[401], "after the logout");
    let page = network.send("GET", "/", &[], None).await;
    assert!(page.status == 200 && page.head.contains("content-security-policy"));
    // Nothing that was sent as a secret is in the log.
    let log = loop {
        let entries = network.store.records(AUDIT, "", 1_000).await.unwrap();
        let log: String = entries.into_iter().map(|(_, value)| value).collect();
        // The stop goes on by itself.
        if log.contains("\"stop\"") {
            break log;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    for hidden in [&secret, &cookie, &network.tokens[0], &network.tokens[1], &network.tokens[2]] {
        assert!(!log.contains(hidden.as_str()));
    }
    assert!(log.contains("\"login\"") && log.contains("login refused"), "{log}");
}

#[tokio::test]
async fn a_revoked_account_loses_its_stream() {
    let network = Network::start().await;
    let mut stream = network.connect().await;
    let drive = network.bearer(Role::Drive);
    let request = network.request("GET", "/api/v1/chats/ours/events", &[("authorization", &drive)], None);
    stream.write_all(&request).await.unwrap();
    let mut seen = String::new();
    let mut part = [0; 4096];
    while !seen.contains("event: snapshot") {
        let count = tokio::time::timeout(WAIT, stream.read(&mut part)).await.unwrap().unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    let store: Arc<dyn Store> = Arc::new(network.store.clone());
    accounts::revoke(&store, "drive").await.unwrap();
    assert_eq!(network.call(Role::Drive, "GET", "/chats", None).await.status, 401);
    let ended = async {
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            seen.push_str(&String::from_utf8_lossy(&part[..count]));
        }
    };
    tokio::time::timeout(WAIT, ended).await.expect("the stream ends");
    assert!(seen.contains("event: end") && seen.contains(serve::ENDED), "its last event says why: {seen}");
    assert!(seen.contains("\"again\":false"), "{seen}");
    assert_eq!(network.call(Role::View, "GET", "/chats", None).await.status, 200);
}

/// An account whose role is changed keeps its token: what it has open ends, and what it opens next has the new role.
#[tokio::test]
async fn a_changed_role_holds_for_what_is_open() {
    let network = Network::start().await;
    let mut stream = network.connect().await;
    let drive = network.bearer(Role::Drive);
    let request = network.request("GET", "/api/v1/chats/ours/events", &[("authorization", &drive)], None);
    stream.write_all(&request).await.unwrap();
    let mut begun = [0; 64];
    tokio::time::timeout(WAIT, stream.read_exact(&mut begun)).await.expect("it begins").unwrap();
    let store: Arc<dyn Store> = Arc::new(network.store.clone());
    accounts::change(&store, "drive", Some(Role::View), None).await.unwrap();
    let mut seen = Vec::new();
    tokio::time::timeout(WAIT, stream.read_to_end(&mut seen)).await.expect("the stream ends").unwrap_or(0);
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(seen.contains("event: end"), "{seen}");
    assert_eq!(network.call(Role::Drive, "GET", "/chats", None).await.status, 200);
    let refused = network.call(Role::Drive, "POST", "/chats/ours/stop", Some(json!({}))).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(accounts::change(&store, "nobody", Some(Role::Admin), None).await.is_err());
    let log: String =
        network.store.records(AUDIT, "", 1_000).await.unwrap().into_iter().map(|(_, value)| value).collect();
    assert!(log.contains("account changed"), "{log}");
}

/// A reader that takes nothing of its stream holds no memory, and others get everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_does_not_read_costs_nothing() {
    let network = Network::start().await;
    let view = network.bearer(Role::View);
    let request = network.request("GET", "/api/v1/chats/ours/events", &[("authorization", &view)], None);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = network.connect().await;
        stream.write_all(&request).await.unwrap();
        streams.push(stream);
    }
    let (id, turn) = (SessionId::new("ours"), domain::TurnId(1));
    // Both follow the chat before anything happens in it.
    let mut begun = vec![0; 64];
    for stream in &mut streams {
        tokio::time::timeout(WAIT, stream.read_exact(&mut begun)).await.expect("it begins").unwrap();
    }
    let (mut stalled, mut reader) = (streams.remove(0), streams.remove(0));
    let before = resident();
    network.engine.begin(&id, turn, 1, "Hello");
    let reading = tokio::spawn(async move {
        let (mut count, mut tail, mut part) = (0, String::new(), vec![0; 64 << 10]);
        while !tail.contains("the last word") {
            let read = reader.read(&mut part).await.unwrap();
            assert!(read > 0, "{tail}");
            count += read;
            tail =
                tail[tail.len().saturating_sub(200)..].to_owned() + &String::from_utf8_lossy(&part[..read]);
            let start = (tail.len().saturating_sub(400)..tail.len()).find(|at| tail.is_char_boundary(*at));
            tail = tail[start.unwrap_or(0)..].to_owned();
        }
        count
    });
    let text = "x".repeat(64 << 10);
    for number in 0..600 {
        network.engine.say(&id, turn, 2 + number, &text);
        tokio::task::yield_now().await;
    }
    network.engine.say(&id, turn, 1_000, "the last word");
    let count = tokio::time::timeout(WAIT, reading).await.expect("the other reader gets all").unwrap();
    assert!(count > 600 * (64 << 10), "{count}");
    // The engine of this test keeps the 38 MiB of the chat; the stream that nobody reads adds a few buffers to it.
    let grown = resident().saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes");
    // What was not read is not lost: it comes when it is read.
    let mut part = vec![0; 256 << 10];
    let mut late = 0;
    while late < 600 * (64 << 10) {
        let read = tokio::time::timeout(WAIT, stalled.read(&mut part)).await.expect("it goes on").unwrap();
        assert!(read > 0);
        late += read;
    }
}

/// Streams of one account are bounded, because each holds a whole chat; other accounts have their own.
#[tokio::test]
async fn an_account_has_a_bounded_number_of_streams() {
    let network = Network::start().await;
    let open = async |role| {
        let bearer = network.bearer(role);
        let request =
            network.request("GET", "/api/v1/chats/ours/events", &[("authorization", &bearer)], None);
        let mut stream = network.connect().await;
        stream.write_all(&request).await.unwrap();
        let mut head = [0; 12];
        tokio::time::timeout(WAIT, stream.read_exact(&mut head)).await.expect("an answer").unwrap();
        (String::from_utf8_lossy(&head).into_owned(), stream)
    };
    let mut streams = Vec::new();
    for _ in 0..16 {
        let (head, stream) = open(Role::View).await;
        assert_eq!(head, "HTTP/1.1 200");
        streams.push(stream);
    }
    assert_eq!(open(Role::View).await.0, "HTTP/1.1 429");
    assert_eq!(open(Role::Drive).await.0, "HTTP/1.1 200");
    drop(streams);
    let again = async { while open(Role::View).await.0 != "HTTP/1.1 200" {} };
    tokio::time::timeout(WAIT, again).await.expect("a place is free again");
}

/// The memory of this process; 0 where it cannot be read.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// The document, the table and the routes are the same, in both directions.
#[tokio::test]
async fn the_document_describes_every_route() {
    let network = Network::start().await;
    let answer = network.call(Role::View, "GET", "/openapi.json", None).await;
    let text = answer.body.clone();
    let document: Value = serde_json::from_str(serve::OPENAPI).unwrap();
    assert!(answer.status == 200 && text.contains("\"openapi\""));
    let mut described = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let role = operation["description"].as_str().unwrap().trim_end_matches('.').rsplit(' ').next();
            described.push((method.to_uppercase(), path.clone(), role.unwrap().to_owned()));
        }
    }
    let mut table: Vec<_> = ROUTES
        .iter()
        .map(|route| (route.method.to_owned(), route.path.to_owned(), route.role.as_str().to_owned()))
        .collect();
    described.sort();
    table.sort();
    assert_eq!(described, table);
    // Each is there: with an empty body it answers otherwise than "nothing is here".
    for route in ROUTES.iter().filter(|route| !route.path.ends_with("/events")) {
        let path = route.path.replace("{key}", "ours").replace("{ask}", "ask-1");
        let body = (route.method != "GET").then(|| json!({"type": 1}));
        let answer = network.call(Role::Admin, route.method, &path, body).await;
        assert!(![404, 405].contains(&answer.status), "{} {path}: {}", route.method, answer.status);
    }
}

/// An engine that does not answer one account makes no other one wait.
#[tokio::test]
async fn an_account_whose_engine_is_slow_blocks_no_other_one() {
    let held = Arc::new(tokio::sync::Notify::new());
    let tell = held.clone();
    let network = Network::start_with(move |engine| {
        let (slow, mut commands) = domain::link::engine();
        tokio::spawn(async move {
            let mut first = None;
            while let Some(envelope) = commands.recv().await {
                if first.is_none() && matches!(envelope.command, Command::Enter { .. }) {
                    first = Some(envelope);
                    tell.notify_one();
                } else {
                    drop(engine.pass(envelope).await);
                }
            }
        });
        slow
    })
    .await;
    let waiting = network.call(Role::View, "GET", "/chats", None);
    let other = async {
        held.notified().await;
        network.call(Role::Drive, "GET", "/chats", None).await
    };
    tokio::select! {
        answer = waiting => panic!("nobody answers the first account, and it got {}", answer.status),
        answer = other => assert_eq!(answer.status, 200, "{}", answer.body),
    }
}
