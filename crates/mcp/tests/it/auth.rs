//! Logins against a small authorization server in the test: refresh, step-up without an end, mixed-up servers, logout.
//! What the official suites check is checked by them (`crates/app/tests/it/conformance.rs`).

use super::*;
use std::any::Any;
use std::time::SystemTime;

use domain::tool::ServerAction;

use mcp::{LoginPrompt, LoginStore, OauthGrant, OauthLookup, OauthSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What the server did and does.
#[derive(Default)]
struct World {
    /// The token that the MCP server takes.
    good_token: String,
    granted: u32,
    /// Every token request, as its form.
    token_requests: Vec<String>,
    registrations: u32,
    refuses_refresh: bool,
    /// A second authorization server that the metadata names instead.
    issuer: Option<String>,
    /// Every bearer that was seen.
    bearers: Vec<String>,
    forged: Option<Forged>,
    /// Every address that a browser was sent to.
    authorized: Vec<String>,
    /// Clients must prove themselves with a secret.
    wants_secret: bool,
}

/// How an authorization server pretends to be another one.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Forged {
    /// Its document names another issuer.
    Document,
    /// Its answer to the browser does.
    Answer,
    /// It says that answers name the issuer, and its answer does not.
    Silence,
}

const OTHER_ISSUER: &str = "https://issuer.example.com";

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

/// Serves MCP at /mcp and OAuth beside it; the address of its origin.
async fn serve(shared: Shared) -> String {
    serve_at(TcpListener::bind("127.0.0.1:0").await.unwrap(), shared)
}

fn serve_at(listener: TcpListener, shared: Shared) -> String {
    let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let base = origin.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (shared, base) = (shared.clone(), base.clone());
            tokio::spawn(async move {
                let Some((line, bearer, body)) = read_request(&mut stream).await else { return };
                let (head, text) = answer(&shared, &base, &line, bearer.as_deref(), &body);
                let response = format!(
                    "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                let _ = stream.write_all(response.as_bytes()).await;
            });
        }
    });
    origin
}

/// The first line, the token and the body.
async fn read_request(stream: &mut tokio::net::TcpStream) -> Option<(String, Option<String>, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let length: usize = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        if body.len() >= length {
            let bearer = header("authorization").and_then(|it| it.strip_prefix("Bearer ").map(str::to_owned));
            return Some((head.lines().next()?.to_owned(), bearer, body.to_owned()));
        }
    }
}

fn answer(shared: &Shared, base: &str, line: &str, bearer: Option<&str>, body: &str) -> (String, String) {
    let json = |value: Value| ("200 OK\r\ncontent-type: application/json".to_owned(), value.to_string());
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path = target.split('?').next().unwrap();
    let mut world = shared.world();
    match (method, path) {
        ("GET", "/.well-known/oauth-protected-resource/mcp") => {
            let issuer = world.issuer.clone().unwrap_or_else(|| base.to_owned());
            json(json!({"resource": format!("{base}/mcp"), "authorization_servers": [issuer]}))
        }
        ("GET", "/.well-known/oauth-authorization-server") => json(json!({
            "issuer": if world.forged == Some(Forged::Document) { OTHER_ISSUER } else { base },
            "authorization_response_iss_parameter_supported": world.forged == Some(Forged::Silence),
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": [if world.wants_secret { "client_secret_post" } else { "none" }],
        })),
        ("POST", "/register") => {
            world.registrations += 1;
            json(json!({"client_id": format!("client-of-{base}")}))
        }
        ("GET", "/authorize") => {
            world.authorized.push(target.to_owned());
            let url = reqwest::Url::parse(&format!("{base}{target}")).unwrap();
            let get = |name: &str| url.query_pairs().find(|(it, _)| it == name).unwrap().1.into_owned();
            let issuer = if world.forged == Some(Forged::Answer) { OTHER_ISSUER } else { "" };
            let issuer = if issuer.is_empty() { String::new() } else { format!("&iss={issuer}") };
            let back = format!("{}?code=c&state={}{issuer}", get("redirect_uri"), get("state"));
            (format!("302 Found\r\nlocation: {back}"), String::new())
        }
        ("POST", "/token") => {
            world.token_requests.push(body.to_owned());
            if body.contains("grant_type=refresh_token") && world.refuses_refresh {
                let head = "400 Bad Request\r\ncontent-type: application/json".to_owned();
                return (head, json!({"error": "invalid_grant"}).to_string());
            }
            world.granted += 1;
            world.good_token = format!("token-number-{}", world.granted);
            json(
                json!({"access_token": world.good_token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-secret"}),
            )
        }
        ("POST", "/mcp") => {
            world.bearers.extend(bearer.map(str::to_owned));
            if bearer != Some(world.good_token.as_str()) || world.good_token.is_empty() {
                return (
                    "401 Unauthorized\r\nwww-authenticate: Bearer".to_owned(),
                    format!("no: {bearer:?}"),
                );
            }
            let message: Value = serde_json::from_str(body).unwrap();
            let result = match message["method"].as_str().unwrap() {
                "server/discover" => return ("404 Not Found".to_owned(), String::new()),
                "initialize" => {
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
                }
                "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
                "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
                _ => return ("202 Accepted".to_owned(), String::new()),
            };
            json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        }
        _ => ("404 Not Found".to_owned(), String::new()),
    }
}

/// Logins in memory.
#[derive(Default)]
struct MemoryLogins(Mutex<(String, u64)>);

impl LoginStore for MemoryLogins {
    fn read(&self) -> Result<Option<String>, Failure> {
        Ok(Some(self.0.lock().unwrap().0.clone()).filter(|text| !text.is_empty()))
    }

    fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let mut kept = self.0.lock().unwrap();
        let after = change(&kept.0)?;
        if after != kept.0 {
            *kept = (after, kept.1 + 1);
        }
        Ok(())
    }

    fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure> {
        Ok(Box::new(()))
    }

    fn changed_at(&self) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.lock().unwrap().1))
    }
}

/// Follows the address at once, as a browser would.
struct Browser;

impl LoginPrompt for Browser {
    fn show(&self, url: &str) {
        let url = url.to_owned();
        tokio::spawn(async move { reqwest_client().get(url).send().await });
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }
}

fn reqwest_client() -> reqwest::Client {
    let tls = tls::client_without_roots().unwrap();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

struct Setup {
    shared: Shared,
    origin: String,
    logins: Arc<MemoryLogins>,
    servers: Supervisor,
    _bench: Bench,
}

async fn setup() -> Setup {
    setup_with(OauthSettings::default()).await
}

async fn setup_with(settings: OauthSettings) -> Setup {
    let (shared, logins, bench) = (Shared::default(), Arc::new(MemoryLogins::default()), Bench::new());
    let origin = serve(shared.clone()).await;
    let transport = ServerTransport::Http { url: format!("{origin}/mcp"), headers: Vec::new() };
    let oauth: OauthLookup = Arc::new(move || {
        let settings = settings.clone();
        Box::pin(async move { Ok(settings) })
    });
    let config = ServerConfig { oauth, ..ServerConfig::fixed(&ServerSpec { name: "web".into(), transport }) };
    let options = Options { logins: Some(logins.clone()), ..bench.options() };
    let servers = Supervisor::new(vec![config], options);
    servers.start();
    Setup { shared, origin, logins, servers, _bench: bench }
}

impl Setup {
    async fn login(&self) {
        let done = tokio::time::timeout(LONG, self.servers.login("web", &Browser)).await.unwrap();
        done.unwrap();
    }
}

#[tokio::test]
async fn a_login_is_used_refreshed_and_forgotten() {
    let setup = setup().await;
    let waiting = reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    assert!(waiting.error.unwrap().contains("dragoman mcp login web") && !waiting.has_login);
    setup.login().await;
    assert!(reaches(&setup.servers, "web", ServerStatus::Running).await.has_login);
    let result = call(&setup.servers, "web__echo", json!({})).await;
    assert_eq!(said(&result.parts), "hello");

    // The token is taken back: it is refreshed, and the call succeeds without a person.
    setup.shared.world().good_token = "another".into();
    let result = call(&setup.servers, "web__echo", json!({})).await;
    assert_eq!((said(&result.parts).as_str(), result.error), ("hello", false));
    let form = setup.shared.world().token_requests.last().unwrap().clone();
    assert!(form.contains("grant_type=refresh_token") && form.contains("resource="), "{form}");

    // The refresh is refused: a login is required, at any time.
    setup.shared.world().good_token = "another".into();
    setup.shared.world().refuses_refresh = true;
    let result = call(&setup.servers, "web__echo", json!({})).await;
    assert!(result.error && !said(&result.parts).contains("token-number"), "{result:?}");
    reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    assert_eq!(setup.shared.world().registrations, 1);
    setup.login().await;
    reaches(&setup.servers, "web", ServerStatus::Running).await;
    assert!(setup.servers.logout("web").await.unwrap() && !setup.servers.logout("web").await.unwrap());
    assert!(!setup.logins.read().unwrap().unwrap().contains("token-number"));
}

#[tokio::test]
async fn nothing_of_one_issuer_reaches_another() {
    let setup = setup().await;
    reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    setup.login().await;
    reaches(&setup.servers, "web", ServerStatus::Running).await;
    let other = Shared::default();
    let other_origin = serve(other.clone()).await;
    setup.shared.world().issuer = Some(other_origin.clone());
    setup.shared.world().good_token = "another".into();
    let refreshes = setup.shared.world().token_requests.len();
    call(&setup.servers, "web__echo", json!({})).await;
    reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    assert_eq!(setup.shared.world().token_requests.len(), refreshes, "no refresh at the former issuer");
    setup.login().await;
    let forms = other.world().token_requests.join("\n");
    assert_eq!(other.world().registrations, 1);
    let client_of = |origin: &str| {
        let name = format!("client-of-{origin}");
        let url = reqwest::Url::parse_with_params("http://h/", [("x", &name)]).unwrap();
        url.query().unwrap()[2..].to_owned()
    };
    assert!(forms.contains(&client_of(&other_origin)), "{forms}");
    assert!(!forms.contains("refresh-secret") && !forms.contains(&client_of(&setup.origin)), "{forms}");
}

#[tokio::test]
async fn a_forged_issuer_gets_no_code_and_nothing_is_kept() {
    for forged in [Forged::Document, Forged::Answer, Forged::Silence] {
        let setup = setup().await;
        setup.shared.world().forged = Some(forged);
        reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
        let login = tokio::time::timeout(LONG, setup.servers.login("web", &Browser)).await.unwrap();
        let failure = login.err().unwrap_or_else(|| panic!("{forged:?} is refused")).to_string();
        assert!(failure.contains("issuer"), "{forged:?}: {failure}");
        assert!(setup.shared.world().token_requests.is_empty(), "{forged:?}: the code is not redeemed");
        let kept = setup.logins.read().unwrap().unwrap_or_default();
        assert!(!kept.contains("token-number"), "{forged:?}");
    }
}

#[tokio::test]
async fn a_client_of_the_users_own_is_used_with_its_secret_and_port() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let setup = setup_with(OauthSettings {
        client_id: Some("mine".into()),
        client_secret: Some("the-secret-of-mine".into()),
        port: Some(port),
        ..OauthSettings::default()
    })
    .await;
    setup.shared.world().wants_secret = true;
    reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    setup.login().await;
    reaches(&setup.servers, "web", ServerStatus::Running).await;
    let world = setup.shared.world();
    assert_eq!(world.registrations, 0, "no other client is registered");
    let (address, form) = (&world.authorized[0], &world.token_requests[0]);
    assert!(
        address.contains("client_id=mine") && address.contains(&format!("127.0.0.1%3A{port}%2Fcallback")),
        "{address}"
    );
    assert!(form.contains("client_secret=the-secret-of-mine") && !address.contains("the-secret"), "{form}");
    let shown = format!("{:?}", setup.servers.servers());
    assert!(!shown.contains("the-secret-of-mine"), "{shown}");
}

fn machine(issuer: Option<&str>) -> OauthSettings {
    OauthSettings {
        client_id: Some("mine".into()),
        client_secret: Some("the-secret-of-mine".into()),
        grant: OauthGrant::ClientCredentials,
        issuer: issuer.map(str::to_owned),
        ..OauthSettings::default()
    }
}

/// A server names its authorization server itself: a secret goes to the one of the first login, and to another one only
/// after a second.
#[tokio::test]
async fn a_secret_goes_to_no_issuer_that_nobody_accepted() {
    let setup = setup_with(machine(None)).await;
    setup.shared.world().wants_secret = true;
    let waiting = reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    let error = waiting.error.unwrap();
    assert!(error.contains(&setup.origin) && error.contains("dragoman mcp login web"), "{error}");
    assert!(setup.shared.world().token_requests.is_empty(), "nothing is sent before somebody agrees");
    setup.login().await;
    reaches(&setup.servers, "web", ServerStatus::Running).await;

    // A new token needs nobody while the issuer stays the same.
    setup.shared.world().good_token = "another".into();
    assert_eq!(said(&call(&setup.servers, "web__echo", json!({})).await.parts), "hello");

    let other = Shared::default();
    other.world().wants_secret = true;
    let other_origin = serve(other.clone()).await;
    setup.shared.world().issuer = Some(other_origin.clone());
    setup.shared.world().good_token = "a third".into();
    let refused = call(&setup.servers, "web__echo", json!({})).await;
    assert!(refused.error && said(&refused.parts).contains("requires a login"), "{refused:?}");
    let waiting = reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await.error.unwrap();
    assert!(waiting.contains(&other_origin) && waiting.contains(&setup.origin), "{waiting}");
    let login = tokio::time::timeout(LONG, setup.servers.login("web", &Browser)).await.unwrap();
    let asked = login.expect_err("the change is asked about").to_string();
    assert!(asked.contains(&other_origin) && asked.contains(&setup.origin), "{asked}");
    assert!(other.world().token_requests.is_empty(), "{:?}", other.world().token_requests);
    setup.login().await;
    assert!(other.world().token_requests[0].contains("the-secret-of-mine"));
}

#[tokio::test]
async fn the_issuer_of_the_settings_is_the_only_one() {
    let shared = Shared::default();
    shared.world().wants_secret = true;
    let named = serve(shared.clone()).await;
    // The server names itself; the settings name another one.
    let setup = setup_with(machine(Some(&named))).await;
    setup.shared.world().wants_secret = true;
    let failed = reaches(&setup.servers, "web", ServerStatus::Failed).await.error.unwrap();
    assert!(failed.contains(&setup.origin) && failed.contains(&named), "{failed}");
    assert!(setup.servers.login("web", &Browser).await.is_err());
    assert!(setup.shared.world().token_requests.is_empty() && shared.world().token_requests.is_empty());
    setup.shared.world().issuer = Some(named);
    setup.servers.act("web", ServerAction::Start).await.unwrap();
    loop {
        // The token of the other issuer is one that this server takes.
        let given = shared.world().good_token.clone();
        setup.shared.world().good_token = given;
        if !shared.world().token_requests.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(shared.world().token_requests[0].contains("the-secret-of-mine"), "no login is needed");
}

/// A server refuses a call because it needs a login: the model and the user read that, whatever the server wrote.
#[tokio::test]
async fn a_refused_call_says_that_a_login_is_required() {
    let setup = setup().await;
    reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    setup.login().await;
    reaches(&setup.servers, "web", ServerStatus::Running).await;
    setup.shared.world().good_token = "another".into();
    setup.shared.world().refuses_refresh = true;
    let result = call(&setup.servers, "web__echo", json!({})).await;
    let told = said(&result.parts);
    assert!(result.error && told.contains("requires a login") && told.contains("mcp login web"), "{told}");
    let server = reaches(&setup.servers, "web", ServerStatus::RequiresAuth).await;
    assert!(server.problem().unwrap().contains("requires a login"), "{server:?}");
}

/// A server whose address nobody answers at is tried again, quietly, and runs when it is there.
#[tokio::test]
async fn a_server_that_was_away_comes_up() {
    let reserved = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserved.local_addr().unwrap();
    drop(reserved);
    let bench = Bench::new();
    let headers = vec![("authorization".to_owned(), "Bearer the-token".to_owned())];
    let transport = ServerTransport::Http { url: format!("http://{address}/mcp"), headers };
    let spec = ServerSpec { name: "late".into(), transport };
    let options = Options { restart_wait: Duration::from_millis(20), ..bench.options() };
    let servers = mcp::session_servers(&[spec], options);
    let failed = reaches(servers.as_ref(), "late", ServerStatus::Failed).await;
    assert!(failed.error.unwrap().contains("tried again until it answers"));
    let changes = *bench.changes.lock().unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(*bench.changes.lock().unwrap(), changes, "attempts that fail are not shown");
    let shared = Shared::default();
    shared.world().good_token = "the-token".into();
    serve_at(TcpListener::bind(address).await.unwrap(), shared);
    reaches(servers.as_ref(), "late", ServerStatus::Running).await;
    assert_eq!(said(&call(servers.as_ref(), "late__echo", json!({})).await.parts), "hello");
}

/// A login that sends a secret without a browser shows where it goes before it does.
#[tokio::test]
async fn the_first_issuer_is_shown_before_a_secret_is_sent() {
    let shared = Shared::default();
    shared.world().wants_secret = true;
    let origin = serve(shared.clone()).await;
    let transport = ServerTransport::Http { url: format!("{origin}/mcp"), headers: Vec::new() };
    let oauth: OauthLookup = Arc::new(|| Box::pin(async { Ok(machine(None)) }));
    let config = ServerConfig { oauth, ..ServerConfig::fixed(&ServerSpec { name: "web".into(), transport }) };
    let (logins, bench) = (Arc::new(MemoryLogins::default()), Bench::new());
    // It is never started, so nothing was shown.
    let servers = Supervisor::new(vec![config], Options { logins: Some(logins), ..bench.options() });
    let shown = servers.login("web", &Browser).await.expect_err("it is shown first").to_string();
    assert!(shown.contains(&origin) && shared.world().token_requests.is_empty(), "{shown}");
    servers.login("web", &Browser).await.unwrap();
    assert!(shared.world().token_requests[0].contains("the-secret-of-mine"));
}
