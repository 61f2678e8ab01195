//! The server for other machines: the checks of each request, the login of the page, and the chats of each account.
//!
//! Must not know commands: the guard decides about them. Invariants: only the page's own files are served without an account;
//! each check stands alone, and a request passes only if all of them let it; a token is read from a header or the body of a
//! login and is never in an address or a log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use domain::{Failure, Store};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;
use web::{ApiError, Input, Peer, set, single};

use crate::accounts::Accounts;
use crate::audit::Act;
use crate::caller::Caller;
use crate::chats::{Chats, Options, Running, Scope};
use crate::guard::Guard;
use crate::limits::Limits;
use crate::routes::{self, ChatsSource, Route, refused};

const COOKIE: &str = "__Host-dragoman";
const SECRET: HeaderName = HeaderName::from_static("x-dragoman-page");
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
enum Area {
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
            .layer(from_fn_with_state(server.clone(), check));
        (server, router)
    }

    async fn admit(&self, area: Area, request: Request) -> Result<Request, ApiError> {
        let (now, headers) = (Instant::now(), request.headers());
        let Some(peer) = request.extensions().get::<Peer>().cloned() else {
            return Err(ApiError::internal("The sender of the request is not known."));
        };
        let host = self.check_host(&request)?;
        check_origin(area, &host, request.method(), headers)?;
        self.0.limits.request(peer.network(), now).map_err(too_many)?;
        web::check_path(request.uri())?;
        let caller = match area {
            Area::Page | Area::Login => None,
            Area::Account => Some(self.caller(headers, &peer, now).await?),
        };
        if let Some(caller) = &caller {
            peer.keep();
            self.0.limits.account(&caller.name, now).map_err(too_many)?;
            self.check_role(caller, request.method(), request.uri().path()).await?;
        }
        let limit = if area == Area::Login { LOGIN_BYTES } else { routes::body_limit("") };
        let mut request = web::read_body(request, limit).await?;
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        Ok(request)
    }

    /// One host, one of ours, and none in the first line.
    fn check_host(&self, request: &Request) -> Result<String, ApiError> {
        let host = single(request.headers(), &header::HOST)?.unwrap_or_default().to_ascii_lowercase();
        if request.uri().authority().is_some() || !self.0.hosts.contains(&host) {
            let status = StatusCode::MISDIRECTED_REQUEST;
            return Err(ApiError::new(status, "forbidden", "The request names another host.")
                .hint(
                "The administrator names the hosts of this server with --host NAME, or --host NAME:PORT where a port is forwarded.",
            ));
        }
        Ok(host)
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

async fn check(State(server): State<Server>, request: Request, next: Next) -> Response {
    let area = match request.uri().path() {
        "/session" => Area::Login,
        path if path == "/" || path.starts_with("/assets/") => Area::Page,
        _ => Area::Account,
    };
    let mut response = match server.admit(area, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, if area == Area::Page { POLICY } else { "default-src 'none'" }),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        set(&mut response, name, value);
    }
    response
}

/// A browser says where a request comes from: from our own page, or from nowhere where a person typed the address.
fn check_origin(area: Area, host: &str, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let other = || ApiError::forbidden("The request comes from another origin.");
    let is_read = method == Method::GET || method == Method::HEAD;
    let has_token = headers.contains_key(header::AUTHORIZATION);
    match single(headers, &header::ORIGIN)? {
        Some(origin) if origin != format!("https://{host}") => return Err(other()),
        // A page always names its origin with what changes something; programs send a token.
        None if !is_read && !has_token => return Err(other()),
        _ => {}
    }
    match single(headers, &HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin") => Ok(()),
        Some("none") if is_read && area == Area::Page => Ok(()),
        Some(_) => Err(other()),
    }
}

/// The one cookie of ours; two of them are none.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut values = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value);
    values.next().filter(|value| values.next().is_none() && value.len() <= LONGEST_TOKEN)
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
