//! The loopback listener, and the routes that every site has: its page, its files, its frame, and the exchange of a token.
//!
//! Invariants: only loopback addresses are bound; a connection that sends no request is closed; at most `MOST_CONNECTIONS`
//! are served.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::access::{Access, random_text};
use crate::answer::{ApiError, Input, file, html, json, set};
use crate::guard;
use crate::page_policy::{Forwarding, PagePolicy};
use crate::site::{
    Asset, FRAME_FILES, FRAME_SCRIPT, Site, content_type, frame_document, frame_policy, page_policy,
};
use crate::stall_limit::StallLimit;

/// A head longer than this is refused.
const HEAD_BYTES: usize = 32 * 1024;
const HEAD_DEADLINE: Duration = Duration::from_secs(20);
const MOST_CONNECTIONS: usize = 128;
/// Tries to find a port that is free on both loopback addresses.
const TRIES: usize = 10;

pub struct Host {
    listeners: Vec<TcpListener>,
    bound: Bound,
}

/// Where the host listens, and its links.
#[derive(Clone)]
pub struct Bound {
    port: u16,
    access: Arc<Access>,
    forwarding: Arc<Forwarding>,
}

impl Bound {
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn origin(&self) -> String {
        match self.forwarding.hosts.first() {
            Some(host) => format!("http://{host}"),
            None => format!("http://127.0.0.1:{}", self.port),
        }
    }

    /// An address that opens the page once.
    pub fn new_link(&self) -> io::Result<String> {
        Ok(format!("{}/#token={}", self.origin(), self.access.new_token()?))
    }
}

impl Host {
    /// Listens on the loopback addresses, at this port or at any free one.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let mut refused = io::Error::other("No port is free on the loopback addresses.");
        for _ in 0..TRIES {
            let first = TcpListener::bind((IpAddr::V4(Ipv4Addr::LOCALHOST), port.unwrap_or(0))).await?;
            let bound_port = first.local_addr()?.port();
            // `localhost` may mean either address: another program must not be able to answer for us.
            let listeners = match TcpListener::bind((IpAddr::V6(Ipv6Addr::LOCALHOST), bound_port)).await {
                Ok(second) => vec![first, second],
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    refused = error;
                    if port.is_some() {
                        break;
                    }
                    continue;
                }
                Err(_) => vec![first],
            };
            let bound =
                Bound { port: bound_port, access: Arc::new(Access::new()?), forwarding: Arc::default() };
            return Ok(Self { listeners, bound });
        }
        Err(refused)
    }

    /// Also answers requests that come through a forwarded port: to any port of 127.0.0.1, and to these hosts. Links name the
    /// first one. Not for a site with a frame, whose rules name one port.
    #[must_use]
    pub fn forwarded(mut self, hosts: Vec<String>) -> Self {
        self.bound.forwarding = Arc::new(Forwarding { has_other_ports: true, hosts });
        self
    }

    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Serves until `stop`.
    pub async fn serve(self, site: Site, is_open: fn(&str) -> bool, stop: impl Future<Output = ()>) {
        let router = routes(&self.bound, site, is_open);
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let accepting = self
            .listeners
            .into_iter()
            .map(|listener| tokio::spawn(accept(listener, router.clone(), room.clone())));
        let accepting: Vec<_> = accepting.collect();
        stop.await;
        for task in accepting {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, router: Router, room: Arc<Semaphore>) {
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    serve_connection(stream, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of one connection until it ends.
pub(crate) async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
) {
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(StallLimit::new(stream)), TowerToHyperService::new(router))
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}

struct Served {
    bound: Bound,
    cookie_name: String,
    version: &'static str,
    assets: &'static [Asset],
    frame_script: Option<&'static str>,
}

fn routes(bound: &Bound, site: Site, is_open: fn(&str) -> bool) -> Router {
    let cookie_name = format!("dragoman_{}_{}", site.name, bound.port);
    let policy = PagePolicy {
        access: bound.access.clone(),
        port: bound.port,
        forwarding: bound.forwarding.clone(),
        cookie_name: cookie_name.clone(),
        body_limit: site.body_limit,
        is_open,
        is_client: site.is_client,
    };
    let served = Arc::new(Served {
        bound: bound.clone(),
        cookie_name,
        version: site.version,
        assets: site.assets,
        frame_script: site.frame_script,
    });
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(asset))
        .route("/frame", get(frame))
        .route("/frame/{name}", get(frame_asset))
        .route("/session", post(session))
        .with_state(served)
        .nest("/api", site.api)
        .merge(site.open)
        .fallback(|| async { ApiError::not_found("There is nothing at this address.") })
        .layer(from_fn_with_state(policy, guard::check::<PagePolicy>))
}

#[derive(Deserialize)]
struct Exchange {
    token: String,
}

async fn session(State(served): State<Arc<Served>>, Input(exchange): Input<Exchange>) -> Response {
    let access = &served.bound.access;
    let secret = match access.exchange(&exchange.token) {
        Ok(Some(secret)) => secret,
        Ok(None) => {
            return ApiError::unauthorized("This link was used before, or is not one.").into_response();
        }
        Err(error) => return ApiError::internal(error.to_string()).into_response(),
    };
    let mut response = json(&json!({"secret": secret, "version": served.version}));
    let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", served.cookie_name, access.cookie());
    set(&mut response, header::SET_COOKIE, &cookie);
    response
}

async fn page(State(served): State<Arc<Served>>) -> Response {
    let mut response = served.asset("index.html");
    set(&mut response, header::CONTENT_SECURITY_POLICY, &page_policy(served.bound.port));
    response
}

async fn asset(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    let mut response = served.asset(&name);
    set(&mut response, header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'");
    response
}

async fn frame(State(served): State<Arc<Served>>) -> Response {
    let nonce = match random_text() {
        Ok(nonce) => nonce,
        Err(error) => return ApiError::internal(error.to_string()).into_response(),
    };
    let port = served.bound.port;
    let mut response = html(frame_document(port, &nonce));
    set(&mut response, header::CONTENT_SECURITY_POLICY, &frame_policy(port, &nonce));
    response
}

async fn frame_asset(State(served): State<Arc<Served>>, Path(name): Path<String>) -> Response {
    match served.frame_script.filter(|_| name == FRAME_SCRIPT) {
        Some(script) => file(Bytes::from_static(script.as_bytes()), content_type(FRAME_SCRIPT)),
        None if FRAME_FILES.contains(&name.as_str()) => served.asset(&name),
        None => ApiError::not_found("There is nothing at this address.").into_response(),
    }
}

impl Served {
    fn asset(&self, name: &str) -> Response {
        match self.assets.iter().find(|asset| asset.name == name) {
            Some(asset) => file(Bytes::from_static(asset.bytes), content_type(asset.name)),
            None => ApiError::not_found("There is no such file.").into_response(),
        }
    }
}
