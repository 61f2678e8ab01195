//! The program's server in this process: a fake child that generates for real, a store in a folder, and a page that has
//! shown its secret.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::{BoxFuture, Failure};
use reqwest::Method;
use serde_json::{Value, json};
use store::Journal;
use studio::cli::Launch;
use studio::{CredentialFile, PluginAnswer, PluginHost, PluginTool, Studio, StudioOptions, TriedPlugin};
use web::{Asset, Bound, Host, Site};

use crate::fake_child::{Do, FakeCli};

const ASSETS: &[Asset] = &[
    Asset { name: "index.html", bytes: b"<!doctype html><title>Studio</title>" },
    Asset { name: "studio.js", bytes: b"1" },
    Asset { name: "frame.js", bytes: b"2" },
    Asset { name: "frame.css", bytes: b"" },
];

pub(crate) struct Server {
    pub(crate) bound: Bound,
    pub(crate) studio: Studio,
    pub(crate) page: Page,
    pub(crate) kept: Arc<KeptText>,
    pub(crate) plugins: Arc<FakePlugins>,
}

/// What a browser's page has.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) port: u16,
    pub(crate) cookie: String,
    pub(crate) secret: String,
    client: reqwest::Client,
}

#[derive(Default)]
pub(crate) struct KeptText(pub(crate) Mutex<Option<String>>);

impl CredentialFile for KeptText {
    fn read(&self) -> Result<Option<String>, Failure> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        *self.0.lock().unwrap() = Some(text.to_owned());
        Ok(())
    }
}

/// Servers of a user who has one; those named `broken` do not start.
#[derive(Default)]
pub(crate) struct FakePlugins(pub(crate) Mutex<Vec<String>>);

impl PluginHost for FakePlugins {
    fn names(&self) -> Vec<String> {
        vec!["first".to_owned()]
    }

    fn try_out(&self, name: String) -> BoxFuture<'static, TriedPlugin> {
        let fault = (name == "broken").then(|| "It does not start.".to_owned());
        Box::pin(async move {
            let tool = PluginTool {
                name: "look".to_owned(),
                description: "Looks.".to_owned(),
                input_schema: json!({"type": "object"}),
            };
            TriedPlugin { version: Some("2025-11-25".to_owned()), tools: vec![tool], fault }
        })
    }

    fn call(
        &self,
        name: String,
        tool: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<PluginAnswer, Failure>> {
        self.0.lock().unwrap().push(format!("call {name} {tool} {arguments}"));
        Box::pin(async move { Ok(PluginAnswer { text: format!("seen {arguments}"), is_error: false }) })
    }

    fn add(&self, name: &str, entry: &Value) -> Result<(), Failure> {
        self.0.lock().unwrap().push(format!("{name} {entry}"));
        if name == "taken" { Err(Failure::user("It is there already.")) } else { Ok(()) }
    }

    fn remove(&self, _name: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// A child that generates with the library, and fulfills a few wishes.
pub(crate) fn working_child() -> Arc<FakeCli> {
    FakeCli::new(|_, message| answer(message))
}

pub(crate) fn answer(message: &Value) -> Do {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "generate" => {
            let spec = serde_json::from_value(params["spec"].clone()).unwrap();
            let made = apiui::generate(&spec, &apiui::plan::Options::default());
            Do::Answer(
                json!({"code": made.code, "description": made.description, "assumptions": made.assumptions}),
            )
        }
        "customize" => {
            let wish = params["prompt"].as_str().unwrap();
            let code = params["currentCode"].as_str().unwrap();
            if wish == "ambiguous" {
                return Do::Answer(
                    json!({"code": null, "clarificationNeeded": true, "question": "Which?", "options": ["A", "B"]}),
                );
            }
            if wish == "impossible" {
                return Do::Error(-32001);
            }
            if wish.starts_with("with tool") {
                return with_tool(params, code, wish);
            }
            if wish == "evil" {
                let code = format!("{code}\nfetch('https://evil.test');");
                return Do::Answer(
                    json!({"code": code, "description": "x", "assumptions": [], "clarificationNeeded": false}),
                );
            }
            let mut plan = apiui::print::plan_of(code).unwrap();
            plan.title = wish.to_owned();
            let result = json!({"code": apiui::print::print_whole(&plan), "description": format!("Title {wish}"),
                "assumptions": ["It is the title."], "clarificationNeeded": false, "history": params["history"]});
            if wish.starts_with("slow") {
                Do::Later(Duration::from_millis(300), result)
            } else {
                Do::Answer(result)
            }
        }
        "chat" => Do::Answer(json!({"message": "An answer.", "suggestions": ["Do this"]})),
        _ => Do::Answer(json!({})),
    }
}

/// Asks for `look` once, then says what it brought.
fn with_tool(params: &Value, code: &str, wish: &str) -> Do {
    let Some(outcome) = params["toolResults"].get(0) else {
        let is_offered = params["tools"][0]["name"] == "look";
        let name = if is_offered { "look" } else { "nothing" };
        let call = json!({"server": "first", "name": name, "arguments": {"at": wish}, "reason": "To know."});
        return Do::Answer(json!({"code": null, "clarificationNeeded": false, "toolCall": call}));
    };
    let mut plan = apiui::print::plan_of(code).unwrap();
    plan.title = wish.to_owned();
    let told = if outcome["isDenied"] == true { "denied" } else { outcome["result"].as_str().unwrap() };
    Do::Answer(json!({"code": apiui::print::print_whole(&plan), "description": told, "assumptions": [],
        "clarificationNeeded": false}))
}

impl Server {
    pub(crate) async fn start(folder: &Path) -> Self {
        Self::with(folder, working_child()).await
    }

    pub(crate) async fn with(folder: &Path, launcher: Arc<dyn Launch>) -> Self {
        Self::with_kept(folder, launcher, Arc::default()).await
    }

    pub(crate) async fn with_kept(folder: &Path, launcher: Arc<dyn Launch>, kept: Arc<KeptText>) -> Self {
        Self::with_checks(folder, launcher, kept, studio::HEALTH_CHECK).await
    }

    pub(crate) async fn with_checks(
        folder: &Path,
        launcher: Arc<dyn Launch>,
        kept: Arc<KeptText>,
        health_check: Duration,
    ) -> Self {
        let host = Host::bind(None).await.unwrap();
        let bound = host.bound().clone();
        let plugins = Arc::new(FakePlugins::default());
        let options = StudioOptions {
            store: Arc::new(Journal::open(folder).unwrap()),
            launcher,
            credentials: kept.clone(),
            plugins: plugins.clone(),
            react: Some("globalThis.dragomanReact = {};"),
            project_files: |name| vec![("package.json".to_owned(), format!("{{\"name\":\"{name}\"}}"))],
            origin: bound.origin(),
            health_check,
        };
        let studio = Studio::open(options).await.unwrap();
        let site = Site {
            name: "studio",
            version: "0",
            assets: ASSETS,
            frame_script: Some("3"),
            api: studio.api(),
            open: studio.open_routes(),
            is_client: web::no_clients,
            body_limit: studio::body_limit,
        };
        tokio::spawn(host.serve(site, studio::is_open, std::future::pending()));
        let page = Page::open(&bound).await;
        Self { bound, studio, page, kept, plugins }
    }

    /// As the end of the process: the store is free for another one.
    pub(crate) async fn stop(self) {
        self.studio.close().await;
    }

    /// A tab with an interface.
    pub(crate) async fn tab_with_interface(&self, specification: &str) -> String {
        let (_, tab) = self.page.send("POST", "/api/tabs", json!({})).await;
        let id = tab["id"].as_str().unwrap().to_owned();
        let input = json!({"source": "text", "text": specification});
        let (status, answer) = self.page.send("POST", &format!("/api/tabs/{id}/specification"), input).await;
        assert_eq!(status, 202, "{answer}");
        self.until(&id, |tab| tab["state"] == "interface-ready").await;
        id
    }

    pub(crate) async fn tab(&self, id: &str) -> Value {
        let (_, state) = self.page.get("/api/state").await;
        let tabs = state["tabs"].as_array().unwrap();
        tabs.iter().find(|tab| tab["id"] == id).cloned().unwrap_or_default()
    }

    /// Waits for a state of a tab.
    pub(crate) async fn until(&self, id: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let tab = self.tab(id).await;
            if is_reached(&tab) {
                return tab;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{}", self.tab(id).await);
    }
}

impl Page {
    pub(crate) async fn open(bound: &Bound) -> Self {
        let link = bound.new_link().unwrap();
        let token = link.split("#token=").nth(1).unwrap();
        tls::install();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let response = client
            .post(format!("{}/session", bound.origin()))
            .header("Origin", bound.origin())
            .json(&json!({"token": token}))
            .send()
            .await
            .unwrap();
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.contains("HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let answer: Value = response.json().await.unwrap();
        Self { port: bound.port(), cookie, secret: answer["secret"].as_str().unwrap().to_owned(), client }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, Value::Null).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let response = self.request(method, path, body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: Value) -> reqwest::RequestBuilder {
        let origin = format!("http://127.0.0.1:{}", self.port);
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self
            .client
            .request(method, format!("{origin}{path}"))
            .header("Origin", &origin)
            .header("Cookie", &self.cookie)
            .header("X-Dragoman-Page", &self.secret);
        if body.is_null() { request } else { request.json(&body) }
    }
}

pub(crate) const BOOKS: &str = r##"openapi: 3.0.3
info: {title: Books, version: "1"}
servers: [{url: "http://127.0.0.1:9/v1"}]
security: [{key: []}]
paths:
  /books:
    get:
      operationId: listBooks
      responses: {"200": {description: ok, content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Book"}}}}}}
    post:
      operationId: createBook
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/Book"}}}}
      responses: {"201": {description: ok}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    login:
      type: oauth2
      flows: {authorizationCode: {authorizationUrl: "https://id.test/a", tokenUrl: "https://id.test/t", scopes: {read: Read}}}
  schemas:
    Book: {type: object, properties: {id: {type: integer}, title: {type: string}}}
"##;
