//! Tabs and versions: in order, never deleted, there after a restart.

use serde_json::{Value, json};

use crate::server::{BOOKS, Server};

async fn say(server: &Server, tab: &str, text: &str) -> Value {
    let (status, answer) =
        server.page.send("POST", &format!("/api/tabs/{tab}/messages"), json!({"text": text})).await;
    assert_eq!(status, 202, "{answer}");
    answer["message"].clone()
}

async fn versions(server: &Server, tab: &str) -> Vec<Value> {
    let (_, answer) = server.page.get(&format!("/api/tabs/{tab}/versions")).await;
    answer["versions"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_appended_reverted_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    say(&server, &tab, "First title").await;
    say(&server, &tab, "Second title").await;
    server.until(&tab, |tab| tab["current"] == 3 && tab["state"] == "interface-ready").await;
    let began = std::time::Instant::now();
    let (status, reverted) =
        server.page.send("POST", &format!("/api/tabs/{tab}/versions/1/revert"), json!({})).await;
    assert!(began.elapsed().as_secs() < 3);
    assert_eq!(status, 200);
    assert_eq!(
        (&reverted["number"], &reverted["revertedFrom"], &reverted["kind"]),
        (&json!(4), &json!(1), &json!("rollback"))
    );
    let before = versions(&server, &tab).await;
    let kinds: Vec<_> = before.iter().map(|version| version["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["rollback", "customization", "customization", "generation"]);
    let parents: Vec<_> = before.iter().map(|version| version["parent"].clone()).collect();
    assert_eq!(parents, [json!(3), json!(2), json!(1), Value::Null]);
    assert_eq!(before[0]["hash"], before[3]["hash"]);
    assert_eq!(before[2]["prompt"], "First title");
    assert_eq!(before[2]["assumptions"], json!(["It is the title."]));
    let (_, page) = server.page.get(&format!("/api/tabs/{tab}/versions?before=3&limit=1")).await;
    assert_eq!((&page["versions"][0]["number"], &page["more"]), (&json!(2), &json!(true)));
    let (_, diff) = server.page.get(&format!("/api/tabs/{tab}/diff?from=2&to=3")).await;
    assert!(diff["added"].as_u64().unwrap() > 0 && diff.to_string().contains("Second title"), "{diff}");
    let (_, one) = server.page.get(&format!("/api/tabs/{tab}/versions/2")).await;
    let code = one["code"].as_str().unwrap().to_owned();
    let chat = server.tab(&tab).await["chat"].clone();
    server.stop().await;

    let server = Server::start(folder.path()).await;
    let again = server.tab(&tab).await;
    assert_eq!(
        (&again["state"], &again["current"], &again["title"]),
        (&json!("interface-ready"), &json!(4), &json!("Books"))
    );
    assert_eq!(again["chat"], chat);
    assert_eq!(versions(&server, &tab).await, before);
    let (_, one) = server.page.get(&format!("/api/tabs/{tab}/versions/2")).await;
    assert_eq!(one["code"], code);
    let (status, reverted) =
        server.page.send("POST", &format!("/api/tabs/{tab}/versions/2/revert"), json!({})).await;
    assert_eq!((status, &reverted["number"]), (200, &json!(5)), "rollback after a restart");
    say(&server, &tab, "Third title").await;
    server.until(&tab, |tab| tab["current"] == 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_are_named_moved_closed_and_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let mut ids = Vec::new();
    for number in 0..12 {
        let (status, tab) =
            server.page.send("POST", "/api/tabs", json!({"title": format!("Tab {number}")})).await;
        assert_eq!(status, 201);
        ids.push(tab["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    assert_eq!(server.page.send("PUT", "/api/tabs", json!({"order": ids})).await.0, 200);
    let path = format!("/api/tabs/{}", ids[0]);
    assert_eq!(server.page.send("PATCH", &path, json!({"title": " New name "})).await.1["title"], "New name");
    assert_eq!(server.page.send("DELETE", &path, Value::Null).await.0, 200);
    assert_eq!(
        server.page.send("PUT", "/api/preferences", json!({"chatWidth": 99, "theme": "dark"})).await.0,
        200
    );
    server.stop().await;
    let server = Server::start(folder.path()).await;
    let (_, state) = server.page.get("/api/state").await;
    let order: Vec<_> =
        state["tabs"].as_array().unwrap().iter().map(|tab| tab["id"].as_str().unwrap()).collect();
    assert_eq!(order, ids[1..]);
    assert_eq!(state["closed"][0]["title"], "New name");
    assert_eq!(state["preferences"], json!({"chatWidth": 85.0, "theme": "dark", "activeTab": null}));
    let (status, tab) = server.page.send("POST", &format!("{path}/reopen"), json!({})).await;
    assert_eq!((status, &tab["title"]), (200, &json!("New name")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_studio_of_a_user_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let options = studio::StudioOptions {
        store: std::sync::Arc::new(store::Journal::open(folder.path()).unwrap()),
        launcher: crate::server::working_child(),
        credentials: std::sync::Arc::<crate::server::KeptText>::default(),
        plugins: std::sync::Arc::new(crate::server::FakePlugins::default()),
        react: None,
        project_files: |_| Vec::new(),
        origin: String::new(),
        health_check: studio::HEALTH_CHECK,
    };
    let Err(refused) = studio::Studio::open(options).await else { panic!("a second one was opened") };
    assert!(refused.message.contains("runs already"), "{refused}");
    server.stop().await;
    Server::start(folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_stops_with_an_error_brings_the_last_good_one_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    let outcome = async |number: u64, body: Value| {
        server.page.send("POST", &format!("/api/tabs/{tab}/versions/{number}/outcome"), body).await.1
    };
    let fault = json!({"isRendered": false, "message": "x is not a function"});
    assert_eq!(outcome(1, json!({"isRendered": true})).await["version"], Value::Null);
    say(&server, &tab, "Another title").await;
    server.until(&tab, |tab| tab["current"] == 2 && tab["state"] == "interface-ready").await;
    let back = outcome(2, fault.clone()).await;
    assert_eq!((&back["version"]["number"], &back["version"]["revertedFrom"]), (&json!(3), &json!(1)));
    // The good one fails too: it is not tried for ever.
    assert_eq!(outcome(3, fault.clone()).await["version"], Value::Null);
    let tab_now = server.tab(&tab).await;
    assert_eq!((&tab_now["state"], &tab_now["versions"]), (&json!("error"), &json!(3)));
    assert_eq!(outcome(2, fault).await["version"], Value::Null, "an old version changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_is_exported_in_three_forms() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    let export = async |format: &str| {
        let request =
            server.page.request("POST", &format!("/api/tabs/{tab}/export"), json!({"format": format}));
        let response = request.send().await.unwrap();
        let name = response.headers()["content-disposition"].to_str().unwrap().to_owned();
        (name, response.bytes().await.unwrap())
    };
    let (name, zip) = export("vite").await;
    assert_eq!(name, "attachment; filename=\"books-ui.zip\"");
    let text = String::from_utf8_lossy(&zip);
    assert!(text.contains("books-ui/package.json") && text.contains("books-ui/src/generated/plan/index.ts"));
    let (name, page) = export("html").await;
    assert!(name.contains("books-ui.html") && page.starts_with(b"<!doctype html>"));
    let (name, module) = export("jsx").await;
    assert!(name.contains("App.jsx") && String::from_utf8_lossy(&module).contains("export default"));
}
