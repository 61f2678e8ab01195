//! The routes and streams of the page, through real HTTP and a scripted engine.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod cuts;
mod editors;
mod guarded;
mod hostile;
mod http_streams;
mod network;
mod official;
#[allow(dead_code, reason = "only the folder of the package is needed")]
#[path = "../../../proto-acp/tests/it/sdk.rs"]
mod sdk;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use domain::command::{Catalog, SessionSettings};
use domain::event::SessionOpened;
use domain::{Fact, SessionId, Store};
use serde_json::{Value, json};
use serve::{Chats, Options};
use testkit::{FakeEngine, MemoryStore};
use web::{Host, Site};

const WAIT: Duration = Duration::from_secs(60);

/// A served engine, and a page that has its session.
pub(crate) struct Served {
    pub(crate) engine: FakeEngine,
    pub(crate) client: reqwest::Client,
    pub(crate) origin: String,
    pub(crate) secret: String,
    pub(crate) cookie: String,
}

impl Served {
    /// With a chat `c` that the engine and the store have, and these facts in it.
    pub(crate) async fn start(facts: Vec<Fact>) -> Self {
        let catalog = Catalog { behaviors: vec!["agent".into(), "plan".into()], ..Catalog::default() };
        let engine = FakeEngine::start(catalog);
        let store = MemoryStore::default();
        let id = SessionId::new("c");
        store.lease(&id).await.unwrap();
        let opened = SessionOpened {
            workspace: vec!["/w".into()],
            settings: SessionSettings::default(),
            parent: None,
            client: String::new(),
        };
        store.append(&id, vec![Fact::SessionOpened(opened)]).await.unwrap();
        engine.store(&id, SessionSettings::default(), "/w", facts);
        let chats = Chats::open(Options {
            engine: engine.engine(),
            store: Arc::new(store),
            folders: vec!["/w".into()],
            running: Box::new(|| Box::pin(async { Ok(Vec::new()) })),
            version: "1",
            scope: None,
        })
        .await
        .unwrap();
        let host = Host::bind(None).await.unwrap().forwarded(Vec::new());
        let bound = host.bound().clone();
        let site = Site {
            name: "chats",
            version: "1",
            assets: web::pages::CHATS,
            frame_script: None,
            api: chats.api(),
            open: web::no_routes(),
            is_client: web::no_clients,
            body_limit: serve::body_limit,
        };
        tokio::spawn(host.serve(site, serve::is_open, std::future::pending()));
        tls::install();
        let client = reqwest::Client::builder().no_proxy().timeout(WAIT).build().unwrap();
        let (origin, link) = (bound.origin(), bound.new_link().unwrap());
        let token = link.split("#token=").nth(1).unwrap().to_owned();
        let answered = client
            .post(format!("{origin}/session"))
            .header("origin", &origin)
            .json(&json!({"token": token}))
            .send()
            .await
            .unwrap();
        let cookie = answered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let secret = answered.json::<Value>().await.unwrap()["secret"].as_str().unwrap().to_owned();
        Self { engine, client, origin, secret, cookie }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.client
            .request(method, format!("{}/api{path}", self.origin))
            .header("origin", &self.origin)
            .header("cookie", &self.cookie)
            .header("x-dragoman-page", &self.secret)
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request("GET", path)).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        answer(self.request(method, path).json(&body)).await
    }
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

/// The events of a stream.
pub(crate) struct Events {
    response: reqwest::Response,
    rest: String,
}

impl Events {
    pub(crate) async fn open(served: &Served, path: &str) -> Self {
        let response = served.request("GET", path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self { response, rest: String::new() }
    }

    pub(crate) async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let name = block.lines().find_map(|line| line.strip_prefix("event: ")).map(str::to_owned);
                let data = block.lines().find_map(|line| line.strip_prefix("data: "));
                let read = name.zip(data.map(|data| serde_json::from_str(data).unwrap()));
                self.rest = rest.to_owned();
                match read {
                    Some(read) => return read,
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(WAIT, self.response.chunk()).await.expect("an event in time");
            let chunk = chunk.unwrap().expect("the stream is open");
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    pub(crate) async fn is_over(&mut self) -> bool {
        let chunk = tokio::time::timeout(WAIT, self.response.chunk()).await.expect("the end in time");
        matches!(chunk, Ok(None))
    }

    /// The next event of this name; others are passed over.
    pub(crate) async fn until(&mut self, wanted: &str) -> Value {
        loop {
            let (name, data) = self.next().await;
            if name == wanted {
                return data;
            }
        }
    }
}
