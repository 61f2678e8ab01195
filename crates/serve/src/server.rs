//! The server for other machines: its rules for requests, the login of the page, and the chats of each account.
//!
//! Must not know commands: the guard decides about them. Invariants: only the page's own files are served without an account;
//! each check is independent, and a request passes only if all of them let it; a token is read from a header or the body of a
//! login and is never in an address or a log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Extension, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::{Failure, Store};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;
use web::{ApiError, Input, Origin, Peer, RequestPolicy, SECRET, check_request, set, single, single_cookie};

use crate::accounts::Accounts;
use crate::audit::Act;
use crate::caller::Caller;
use crate::chats::{Chats, Options, Running, Scope};
use crate::guard::Guard;
use crate::limits::Limits;
use crate::routes::{self, ChatsSource, Route, refused};

const COOKIE: &str = "__Host-dragoman";
/// A page has to log in again after this time.
const SESSION: Duration = Duration::from_secs(12 * 60 * 60);
const MOST_SESSIONS: usize = 1_000;
const LONGEST_TOKEN: usize = 512;
/// The largest body of a login.
const LOGIN_BYTES: usize = 4 * 1024;
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
    font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

pub struct ServerOptions {
    pub accounts: Accounts,
    pub guard: Guard,
    pub store: Arc<dyn Store>,
    /// Names under which clients reach the server, with the port where it is not 443.
    pub hosts: Vec<String>,
    pub running:
        Arc<dyn Fn() -> domain::BoxFuture<'static, Result<Vec<crate::RunningChat>, Failure>> + Send + Sync>,
    pub version: &'static str,
    pub assets: &'static [web::Asset],
    /// Routes beside the API for callers with an account.
    pub more: Router,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    accounts: Accounts,
    guard: Guard,
    store: Arc<dyn Store>,
    hosts: Vec<String>,
    running:
        Arc<dyn Fn() -> domain::BoxFuture<'static, Result<Vec<crate::RunningChat>, Failure>> + Send + Sync>,
    version: &'static str,
    assets: &'static [web::Asset],
    limits: Limits,
    /// Pages that have logged in, by the hash of their cookie.
    sessions: Mutex<HashMap<String, Session>>,
    chats: Mutex<HashMap<String, AccountChats>>,
}

/// The chats of an account, made at its first request.
type AccountChats = (Caller, Arc<OnceCell<Chats>>);

#[derive(Clone)]
struct Session {
    /// Hashes of the page's secret and of the account's token.
    secret: String,
    token: String,
    until: Instant,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Area {
    Page,
    Login,
    Account,
}

impl Server {
    pub fn new(options: ServerOptions) -> (Self, Router) {
        let ServerOptions { accounts, guard, store, hosts, running, version, assets, more } = options;
        let server = Self(Arc::new(Shared {
            accounts,
            guard,
            store,
            hosts,
            running,
            version,
            assets,
            limits: Limits::default(),
            sessions: Mutex::default(),
            chats: Mutex::default(),
        }));
        let router = Router::new()
            .route("/", get(page))
            .route("/assets/{name}", get(asset))
            .route("/session", post(log_in).delete(log_out))
            .with_state(server.clone())
            .nest("/api/v1", routes::routes(server.clone()))
            .merge(more)
            .fallback(|| async { ApiError::not_found("There is nothing at this address.") })
            .method_not_allowed_fallback(|| async {
                ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", "There is no such request.")
            })
            .layer(from_fn_with_state(ServerPolicy(server.clone()), check_request::<ServerPolicy>));
        (server, router)
    }

    /// The account of a bearer token, or of a page that has logged in.
    async fn caller(&self, headers: &HeaderMap, peer: &Peer, now: Instant) -> Result<Caller, ApiError> {
        if let Some(value) = single(headers, &header::AUTHORIZATION)? {
            let token = value.strip_prefix("Bearer ").map(str::trim).unwrap_or_default();
            return self.with_token(token, peer, now).await;
        }
        let session = self.session(headers, now)?.ok_or_else(not_logged_in)?;
        let found = self.0.accounts.find(&session.token).await.map_err(refused)?;
        found.ok_or_else(not_logged_in)
    }

    async fn with_token(&self, token: &str, peer: &Peer, now: Instant) -> Result<Caller, ApiError> {
        let is_possible = !token.is_empty() && token.len() <= LONGEST_TOKEN;
        let found =
            if is_possible { self.0.accounts.authenticate(token).await.map_err(refused)? } else { None };
        if let Some(caller) = found {
            return Ok(caller);
        }
        // Only what is not slowed down is logged: nobody fills the log.
        self.0.limits.check_login(peer.network(), now).map_err(too_many)?;
        self.0.limits.failed(peer.network(), now);
        if let Some(unlogged) = self.0.limits.may_log_refusal(now) {
            let more = if unlogged > 0 { format!(", and {unlogged} more before it") } else { String::new() };
            let detail = format!("a token that is not valid, from {}{more}", peer.address);
            self.log(Act { who: "(nobody)", action: "login refused", chat: None, detail: Some(&detail) })
                .await?;
        }
        Err(not_logged_in())
    }

    /// The session whose cookie and secret both are in the request.
    fn session(&self, headers: &HeaderMap, now: Instant) -> Result<Option<Session>, ApiError> {
        let Some(cookie) = cookie(headers) else { return Ok(None) };
        let Some(secret) = single(headers, &SECRET)? else { return Ok(None) };
        let (cookie, secret) = (Accounts::hash(cookie), Accounts::hash(secret));
        let mut sessions = self.sessions();
        sessions.retain(|_, session| session.until > now);
        // Both are hashes: their comparison tells nothing about what was sent.
        Ok(sessions.get(&cookie).filter(|session| session.secret == secret).cloned())
    }

    /// The guard decides about each command; a route for a greater role is refused here already, in plain words.
    async fn check_role(&self, caller: &Caller, method: &Method, path: &str) -> Result<(), ApiError> {
        let Some(path) = path.strip_prefix("/api/v1") else { return Ok(()) };
        let Some(route) = Route::find(method.as_str(), path) else { return Ok(()) };
        if caller.role >= route.role {
            return Ok(());
        }
        let (needed, name) = (route.role.as_str(), &caller.name);
        let detail = format!("{} {}: needs the role {needed}", route.method, route.path);
        self.log(Act { who: name, action: "refused", chat: None, detail: Some(&detail) }).await?;
        Err(ApiError::forbidden(format!(
            "This needs the role {needed}; {name} has the role {}.",
            caller.role.as_str()
        ))
        .hint("Ask the administrator of the server for a token with this role."))
    }

    async fn log(&self, act: Act<'_>) -> Result<(), ApiError> {
        self.0.guard.audit().write(act).await.map_err(refused)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.sessions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn asset(&self, name: &str) -> Response {
        match self.0.assets.iter().find(|asset| asset.name == name) {
            Some(asset) => web::file(asset.bytes.into(), web::content_type(asset.name)),
            None => ApiError::not_found("There is no such file.").into_response(),
        }
    }

    /// The chats of a caller, opened once. An engine that is slow for one account makes no other one wait.
    async fn chats_of(&self, caller: &Caller) -> Result<Chats, Failure> {
        let cell = {
            let mut known = self.0.chats.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            known.retain(|_, (caller, _)| !caller.ended.is_cancelled());
            let same = known.get(&caller.name).filter(|(before, _)| {
                before.role == caller.role
                    && before.workspaces == caller.workspaces
                    && before.budget == caller.budget
            });
            match same {
                Some((_, cell)) => cell.clone(),
                None => {
                    let cell = Arc::new(OnceCell::new());
                    known.insert(caller.name.clone(), (caller.clone(), cell.clone()));
                    cell
                }
            }
        };
        let opened = cell.get_or_try_init(|| async {
            let running = self.0.running.clone();
            Chats::open(Options {
                engine: self.0.guard.engine_for(caller.clone()),
                store: self.0.store.clone(),
                folders: caller.workspaces.clone(),
                running: Box::new(move || running()) as Running,
                version: self.0.version,
                scope: Some(Scope { guard: self.0.guard.clone(), caller: caller.clone() }),
            })
            .await
        });
        opened.await.cloned()
    }
}

impl ChatsSource for Server {
    async fn chats(&self, parts: &Parts) -> Result<Chats, ApiError> {
        let caller = parts.extensions.get::<Caller>().ok_or_else(not_logged_in)?;
        self.chats_of(caller).await.map_err(refused)
    }
}

/// The rules for requests of a server.
#[derive(Clone)]
struct ServerPolicy(Server);

impl RequestPolicy for ServerPolicy {
    type Area = Area;

    fn area(&self, path: &str) -> Area {
        match path {
            "/session" => Area::Login,
            path if path == "/" || path.starts_with("/assets/") => Area::Page,
            _ => Area::Account,
        }
    }

    fn own_origin(&self, _area: Area, host: &str) -> Result<String, ApiError> {
        let host = host.to_ascii_lowercase();
        if self.0.0.hosts.contains(&host) {
            return Ok(format!("https://{host}"));
        }
        let status = StatusCode::MISDIRECTED_REQUEST;
        Err(ApiError::new(status, "forbidden", "The request names another host.").hint(
            "The administrator names the hosts of this server with --host NAME, or --host NAME:PORT where a port is forwarded.",
        ))
    }

    fn accepts_origin(&self, _area: Area, origin: Origin, parts: &Parts) -> bool {
        match origin {
            Origin::Own => true,
            // A page always names its origin with what changes something; programs send a token.
            Origin::None => web::is_read(&parts.method) || parts.headers.contains_key(header::AUTHORIZATION),
            Origin::Null | Origin::Other => false,
        }
    }

    /// From our own page, or from nowhere where a person typed the address.
    fn accepts_site(&self, area: Area, site: &str, is_read: bool) -> bool {
        site == "none" && is_read && area == Area::Page
    }

    fn count(&self, parts: &Parts) -> Result<(), ApiError> {
        self.0.0.limits.request(peer(parts)?.network(), Instant::now()).map_err(too_many)
    }

    async fn admit(&self, area: Area, parts: &mut Parts) -> Result<(), ApiError> {
        if area != Area::Account {
            return Ok(());
        }
        let (now, peer) = (Instant::now(), peer(parts)?);
        let caller = self.0.caller(&parts.headers, &peer, now).await?;
        peer.keep();
        self.0.0.limits.account(&caller.name, now).map_err(too_many)?;
        self.0.check_role(&caller, &parts.method, parts.uri.path()).await?;
        parts.extensions.insert(caller);
        Ok(())
    }

    fn body_limit(&self, area: Area, path: &str) -> usize {
        if area == Area::Login { LOGIN_BYTES } else { routes::body_limit(path) }
    }

    fn headers(&self, area: Area) -> Vec<(HeaderName, &'static str)> {
        vec![
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::CONTENT_SECURITY_POLICY, if area == Area::Page { POLICY } else { "default-src 'none'" }),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ]
    }
}

fn peer(parts: &Parts) -> Result<Peer, ApiError> {
    let peer = parts.extensions.get::<Peer>().cloned();
    peer.ok_or_else(|| ApiError::internal("The sender of the request is not known."))
}

/// Our one cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    single_cookie(headers, COOKIE).filter(|value| value.len() <= LONGEST_TOKEN)
}

fn not_logged_in() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "No valid token came with the request.")
        .hint("Log in with the token that the administrator of the server gave you.")
}

fn too_many(wait: Duration) -> ApiError {
    let seconds = wait.as_secs_f64().ceil();
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "tooMany", "Too many requests came.")
        .hint(format!("Try again in {seconds} seconds."))
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

async fn log_in(
    State(server): State<Server>,
    Extension(peer): Extension<Peer>,
    Input(login): Input<Login>,
) -> Result<Response, ApiError> {
    let now = Instant::now();
    server.0.limits.check_login(peer.network(), now).map_err(too_many)?;
    let caller = server.with_token(login.token.trim(), &peer, now).await?;
    peer.keep();
    server.0.limits.succeeded(peer.network());
    let detail = format!("the page, from {}", peer.address);
    server.log(Act { who: &caller.name, action: "login", chat: None, detail: Some(&detail) }).await?;
    let random = || web::random_id().map_err(|error| ApiError::internal(error.to_string()));
    let (value, secret) = (random()?, random()?);
    {
        let mut sessions = server.sessions();
        sessions.retain(|_, session| session.until > now);
        if sessions.len() >= MOST_SESSIONS {
            return Err(too_many(Duration::from_secs(60)));
        }
        let session = Session {
            secret: Accounts::hash(&secret),
            token: Accounts::hash(login.token.trim()),
            until: now + SESSION,
        };
        sessions.insert(Accounts::hash(&value), session);
    }
    let role = caller.role.as_str();
    let body = json!({"secret": secret, "version": server.0.version, "name": caller.name, "role": role});
    let mut response = web::json(&body);
    let seconds = SESSION.as_secs();
    let cookie = format!("{COOKIE}={value}; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict; Path=/");
    set(&mut response, header::SET_COOKIE, &cookie);
    Ok(response)
}

async fn log_out(State(server): State<Server>, headers: HeaderMap) -> Result<Response, ApiError> {
    if server.session(&headers, Instant::now())?.is_none() {
        return Err(not_logged_in());
    }
    if let Some(cookie) = cookie(&headers) {
        server.sessions().remove(&Accounts::hash(cookie));
    }
    let mut response = web::json(&json!({}));
    set(
        &mut response,
        header::SET_COOKIE,
        &format!("{COOKIE}=; Max-Age=0; Secure; HttpOnly; SameSite=Strict; Path=/"),
    );
    Ok(response)
}

async fn page(State(server): State<Server>) -> Response {
    server.asset("index.html")
}

async fn asset(State(server): State<Server>, Path(name): Path<String>) -> Response {
    server.asset(&name)
}
