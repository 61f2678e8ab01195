//! Specifications and messages of the page, as the child sees them and as the page sees the outcome.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake_child::{Do, FakeCli};
use crate::server::{BOOKS, Server, answer};

async fn say(server: &Server, tab: &str, body: Value) -> (u16, Value) {
    server.page.send("POST", &format!("/api/tabs/{tab}/messages"), body).await
}

async fn new_tab(server: &Server) -> String {
    let (_, tab) = server.page.send("POST", "/api/tabs", json!({})).await;
    tab["id"].as_str().unwrap().to_owned()
}

/// The message about a version comes after the version.
fn has_version(tab: &Value, version: u64) -> bool {
    chat(tab).iter().any(|one| one["version"] == version)
}

fn chat(tab: &Value) -> Vec<Value> {
    tab["chat"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_specification_becomes_an_interface_with_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeCli::new(|_, message| answer(message));
    let server = Server::with(folder.path(), fake.clone()).await;
    let tab = new_tab(&server).await;
    let input = json!({"source": "file", "name": "C:\\fakepath\\books.yaml", "text": BOOKS});
    let (status, answered) = server.page.send("POST", &format!("/api/tabs/{tab}/specification"), input).await;
    assert_eq!(status, 202, "{answered}");
    let done = server.until(&tab, |tab| tab["state"] == "interface-ready").await;
    let specification = &done["specification"];
    assert_eq!(
        (&specification["name"], &specification["format"], &specification["operations"]),
        (&json!("books.yaml"), &json!("openapi3"), &json!(2))
    );
    assert_eq!(done["title"], "Books");
    let (_, script) = server.page.get(&format!("/api/tabs/{tab}/versions/1/script")).await;
    let text = script["script"].as_str().unwrap();
    assert!(text.contains("dragomanReact.mount(") && !text.contains("import "), "it runs in the frame");
    let seen = fake.seen.lock().unwrap();
    let generate = &seen.iter().find(|(_, _, message)| message["method"] == "generate").unwrap().2["params"];
    assert_eq!(generate["spec"]["metadata"]["title"], "Books");
    assert_eq!(generate["format"], "react");
}

#[tokio::test(flavor = "multi_thread")]
async fn specifications_that_cannot_be_used_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = new_tab(&server).await;
    let path = format!("/api/tabs/{tab}/specification");
    for (text, word) in [
        ("#%RAML 1.0\ntitle: x\n", "RAML"),
        ("openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n", "operation"),
        ("{\"openapi\": ", "JSON"),
        ("", "empty"),
    ] {
        let (status, refused) =
            server.page.send("POST", &path, json!({"source": "text", "text": text})).await;
        assert_eq!((status, &refused["error"]["kind"]), (422, &json!("specification")), "{refused}");
        assert!(refused["error"]["data"]["problems"].to_string().contains(word), "{refused}");
        assert!(refused["error"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    }
    assert_eq!(server.tab(&tab).await["state"], "empty");
    let (status, refused) = server.page.send("POST", &path, json!({"source": "url", "url": "ftp://x"})).await;
    assert_eq!((status, &refused["error"]["kind"]), (422, &json!("specification")));
}

#[tokio::test(flavor = "multi_thread")]
async fn references_that_cannot_be_loaded_are_named_and_supplied_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = new_tab(&server).await;
    let text = BOOKS.replace("\"#/components/schemas/Book\"", "\"parts/book.yaml\"");
    let path = format!("/api/tabs/{tab}/specification");
    let input = json!({"source": "file", "name": "books.yaml", "text": text});
    server.page.send("POST", &path, input).await;
    let without = server.until(&tab, |tab| tab["state"] == "interface-ready").await;
    assert_eq!(without["specification"]["missing"][0]["location"], "parts/book.yaml");
    let documents = json!({"parts/book.yaml": "type: object\nproperties: {isbn: {type: string}}\n"});
    let (status, answered) =
        server.page.send("POST", &path, json!({"source": "again", "documents": documents})).await;
    assert_eq!(status, 202, "{answered}");
    let with = server.until(&tab, |tab| tab["versions"] == 2).await;
    assert_eq!(with["specification"]["missing"], json!([]));
    let (_, version) = server.page.get(&format!("/api/tabs/{tab}/versions/2")).await;
    assert!(version["code"].as_str().unwrap().contains("isbn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_run_one_after_the_other_and_a_failure_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    for text in ["slow one", "impossible", "slow two", "taken back"] {
        assert_eq!(say(&server, &tab, json!({"text": text})).await.0, 202);
    }
    let now = server.tab(&tab).await;
    let states: Vec<_> =
        chat(&now).iter().skip(1).map(|one| one["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["pending", "queued", "queued", "queued"]);
    assert_eq!(now["state"], "customizing");
    let last = chat(&now).last().unwrap()["id"].as_str().unwrap().to_owned();
    let (status, _) =
        server.page.send("DELETE", &format!("/api/tabs/{tab}/messages/{last}"), Value::Null).await;
    assert_eq!(status, 200);
    let done = server.until(&tab, |tab| tab["current"] == 3 && tab["state"] == "interface-ready").await;
    let chat = chat(&done);
    let failed = chat.iter().find(|one| one["role"] == "assistant" && one["status"] == "error").unwrap();
    assert_eq!(failed["problem"]["data"]["code"], -32001);
    assert!(failed["problem"]["hint"].is_string());
    let notes: Vec<_> =
        chat.iter().filter(|one| one["version"].is_u64()).map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(notes[1..], ["Title slow one", "Title slow two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_by_a_button_and_the_answer_goes_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeCli::new(|_, message| answer(message));
    let server = Server::with(folder.path(), fake.clone()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    say(&server, &tab, json!({"text": "ambiguous"})).await;
    let asked = server.until(&tab, |tab| chat(tab).iter().any(|one| one["isQuestion"] == true)).await;
    let question = chat(&asked).into_iter().find(|one| one["isQuestion"] == true).unwrap();
    assert_eq!((&question["text"], &question["options"]), (&json!("Which?"), &json!(["A", "B"])));
    assert_eq!(asked["versions"], 1);
    let answer_it = json!({"text": "B", "answerTo": question["id"]});
    assert_eq!(say(&server, &tab, answer_it.clone()).await.0, 202);
    let done = server.until(&tab, |tab| tab["current"] == 2 && has_version(tab, 2)).await;
    let question = chat(&done).into_iter().find(|one| one["isQuestion"] == true).unwrap();
    assert_eq!(question["answered"], "B");
    assert_eq!(say(&server, &tab, answer_it).await.0, 409, "it was answered");
    let seen = fake.seen.lock().unwrap();
    let last = &seen.iter().rfind(|(_, _, message)| message["method"] == "customize").unwrap().2["params"];
    let history = last["history"].as_array().unwrap();
    let end: Vec<_> =
        history[history.len() - 2..].iter().map(|turn| turn["content"].as_str().unwrap()).collect();
    assert_eq!(end, ["ambiguous", "Which?"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_the_checker_refuses_is_no_version() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    say(&server, &tab, json!({"text": "evil"})).await;
    let done = server.until(&tab, |tab| chat(tab).iter().any(|one| one["problem"].is_object())).await;
    assert_eq!((&done["current"], &done["versions"]), (&json!(1), &json!(1)));
    let failed = chat(&done).into_iter().find(|one| one["problem"].is_object()).unwrap();
    assert_eq!(failed["problem"]["kind"], "refused");
    assert!(failed["problem"]["data"]["refusals"].is_array());
    let (_, console) = server.page.get("/api/console").await;
    assert!(console.to_string().contains("The code was refused"));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_an_interface_are_questions_or_specifications() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = new_tab(&server).await;
    say(&server, &tab, json!({"text": "What formats do you support?"})).await;
    let answered = server.until(&tab, |tab| chat(tab).len() == 2).await;
    assert_eq!(chat(&answered)[1]["options"], json!(["Do this"]));
    assert_eq!(say(&server, &tab, json!({"text": "add a column", "intent": "change"})).await.0, 409);
    assert_eq!(say(&server, &tab, json!({"text": BOOKS})).await.0, 202);
    server.until(&tab, |tab| tab["state"] == "interface-ready").await;
    say(&server, &tab, json!({"text": "Which operations are there?"})).await;
    let asked = server.until(&tab, |tab| chat(tab).last().unwrap()["text"] == "An answer.").await;
    assert_eq!(asked["versions"], 1, "a question changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_tells_everything() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let mut response = server.page.request("GET", "/api/events", Value::Null).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let tab = server.tab_with_interface(BOOKS).await;
    let mut text = String::new();
    while !(text.contains("event: version") && text.contains("interface-ready")) {
        let piece =
            tokio::time::timeout(Duration::from_secs(10), response.chunk()).await.unwrap().unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(text.starts_with("event: state\ndata: {"), "the whole state comes first");
    for part in ["event: tabs", "event: tab\n", "\"phase\":\"reading\"", "\"phase\":\"checking\"", &tab] {
        assert!(text.contains(part), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_cannot_be_started_is_shown_and_can_be_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeCli::with_pipe(1 << 20, 1, |_, message| match message["method"].as_str() {
        Some("initialize") => Do::Answer(json!({})),
        _ => answer(message),
    });
    let server = Server::with(folder.path(), fake).await;
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["cli"]["state"], "restarting");
    assert_eq!(server.page.send("POST", "/api/cli/restart", json!({})).await.0, 200);
    server.tab_with_interface(BOOKS).await;
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["cli"]["state"], "running");
    assert!(state["cli"]["pid"].is_u64());
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_are_listed_added_tried_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let plugins = async || server.page.get("/api/state").await.1["plugins"].clone();
    assert_eq!(plugins().await[0]["name"], "first");
    for (input, status) in [
        (json!({"name": "weather", "command": "npx", "args": ["-y", "weather"]}), 200),
        (json!({"name": "broken", "url": "https://mcp.test"}), 200),
        (json!({"name": "taken", "url": "https://mcp.test"}), 400),
        (json!({"name": "", "url": "https://mcp.test"}), 400),
        (json!({"name": "neither"}), 400),
        (json!({"name": "both", "command": "x", "url": "https://mcp.test"}), 400),
    ] {
        assert_eq!(server.page.send("POST", "/api/plugins", input.clone()).await.0, status, "{input}");
    }
    let mut now = plugins().await;
    for _ in 0..100 {
        if now[1]["state"] != "installing" && now[2]["state"] != "installing" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        now = plugins().await;
    }
    assert_eq!((&now[1]["state"], &now[1]["tools"]), (&json!("installed"), &json!(["look"])));
    assert_eq!((&now[2]["state"], &now[2]["message"]), (&json!("error"), &json!("It does not start.")));
    assert_eq!(now.as_array().unwrap().len(), 3);
    assert_eq!(server.page.send("DELETE", "/api/plugins/weather", Value::Null).await.0, 200);
    assert_eq!(server.page.send("DELETE", "/api/plugins/weather", Value::Null).await.0, 404);
    assert_eq!(server.page.send("POST", "/api/plugins/first/try", json!({})).await.0, 200);
}

/// The tool call that waits, as the page sees it.
async fn asked(server: &Server) -> Value {
    for _ in 0..1800 {
        let (_, state) = server.page.get("/api/state").await;
        if let Some(call) = state["toolCalls"].get(0) {
            return call.clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no tool call was asked about");
}

async fn settle(server: &Server, call: &Value, allow: bool) -> u16 {
    let path = format!("/api/tool-calls/{}", call["id"].as_str().unwrap());
    server.page.send("POST", &path, json!({"allow": allow})).await.0
}

async fn try_first(server: &Server) {
    server.page.send("POST", "/api/plugins/first/try", json!({})).await;
    for _ in 0..1800 {
        let (_, state) = server.page.get("/api/state").await;
        if state["plugins"][0]["tools"] == json!(["look"]) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the plugin has no tools");
}

fn called(server: &Server) -> Vec<String> {
    let told = server.plugins.0.lock().unwrap();
    told.iter().filter(|one| one.starts_with("call ")).cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_called_after_a_click_and_its_version_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    try_first(&server).await;
    say(&server, &tab, json!({"text": "with tool one"})).await;
    let call = asked(&server).await;
    assert_eq!((&call["plugin"], &call["tool"]), (&json!("first"), &json!("look")));
    assert_eq!((&call["arguments"], &call["reason"]), (&json!({"at": "with tool one"}), &json!("To know.")));
    assert!(called(&server).is_empty(), "nothing is called before the click");
    assert_eq!(settle(&server, &call, true).await, 200);
    let done = server.until(&tab, |tab| tab["current"] == 2 && has_version(tab, 2)).await;
    assert_eq!(called(&server), ["call first look {\"at\":\"with tool one\"}"]);
    let note = chat(&done).into_iter().find(|one| one["version"] == 2).unwrap();
    assert_eq!(note["text"], "seen {\"at\":\"with tool one\"}");
    assert_eq!(note["assumptions"], json!(["Used look of first."]));
    assert_eq!(settle(&server, &call, true).await, 404, "a call is confirmed once");
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["plugins"][0]["usedBy"][0]["title"], "Books");
    let (status, refused) = server.page.send("DELETE", "/api/plugins/first", Value::Null).await;
    assert_eq!((status, &refused["error"]["data"]["usedBy"][0]["tab"]), (409, &json!(tab)));
    let (status, _) = server.page.send("DELETE", "/api/plugins/first?force=true", Value::Null).await;
    assert_eq!(status, 200);
    let shown = server.tab(&tab).await;
    assert_eq!(
        (&shown["missingTools"], &shown["state"]),
        (&json!(["look of first"]), &json!("interface-ready"))
    );
    server.page.send("POST", &format!("/api/tabs/{tab}/versions/1/revert"), json!({})).await;
    assert_eq!(server.tab(&tab).await["missingTools"], json!([]));
    let (_, back) = server.page.send("POST", &format!("/api/tabs/{tab}/versions/2/revert"), json!({})).await;
    assert_eq!(
        (&back["missingPlugins"], &back["plugins"]),
        (&json!(["look of first"]), &json!(["first"])),
        "a reverted version names the tools that it misses"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_is_not_made_and_the_wish_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    let tab = server.tab_with_interface(BOOKS).await;
    try_first(&server).await;
    say(&server, &tab, json!({"text": "with tool two"})).await;
    let call = asked(&server).await;
    assert_eq!(settle(&server, &call, false).await, 200);
    let done = server.until(&tab, |tab| tab["current"] == 2 && has_version(tab, 2)).await;
    assert_eq!(chat(&done).into_iter().find(|one| one["version"] == 2).unwrap()["text"], "denied");
    assert!(called(&server).is_empty());
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["plugins"][0]["usedBy"], json!([]));
    // A tab that is closed while its question waits answers it with no.
    say(&server, &tab, json!({"text": "with tool three"})).await;
    asked(&server).await;
    assert_eq!(server.page.send("DELETE", &format!("/api/tabs/{tab}"), Value::Null).await.0, 200);
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["toolCalls"], json!([]));
    assert!(called(&server).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_that_was_not_offered_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeCli::new(|_, message| match message["method"].as_str() {
        Some("customize") => Do::Answer(
            json!({"code": null, "toolCall": {"server": "first", "name": "erase", "arguments": {}}}),
        ),
        _ => answer(message),
    });
    let server = Server::with(folder.path(), fake).await;
    let tab = server.tab_with_interface(BOOKS).await;
    try_first(&server).await;
    say(&server, &tab, json!({"text": "anything"})).await;
    let done = server.until(&tab, |tab| chat(tab).iter().any(|one| one["problem"].is_object())).await;
    assert_eq!(done["versions"], 1);
    assert!(called(&server).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_goes_with_the_specification_and_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeCli::new(|_, message| {
        let params = &message["params"];
        let is_wish = message["method"] == "generate" && params["prompt"] == "as in our handbook";
        if is_wish && params["toolResults"] == json!([]) {
            let call = json!({"server": "first", "name": "look", "arguments": {"page": 7}});
            return Do::Answer(json!({"code": null, "toolCall": call}));
        }
        answer(message)
    });
    let server = Server::with(folder.path(), fake).await;
    let tab = new_tab(&server).await;
    try_first(&server).await;
    let input = json!({"source": "text", "text": BOOKS, "wish": " as in our handbook "});
    assert_eq!(server.page.send("POST", &format!("/api/tabs/{tab}/specification"), input).await.0, 202);
    let call = asked(&server).await;
    assert_eq!(call["arguments"], json!({"page": 7}));
    settle(&server, &call, true).await;
    server.until(&tab, |tab| tab["state"] == "interface-ready").await;
    let (_, version) = server.page.get(&format!("/api/tabs/{tab}/versions/1")).await;
    assert_eq!((&version["plugins"], &version["prompt"]), (&json!(["first"]), &json!("as in our handbook")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tab_that_was_shown_last_is_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path()).await;
    new_tab(&server).await;
    let second = new_tab(&server).await;
    let put =
        async |tab: &str| server.page.send("PUT", "/api/preferences", json!({"activeTab": tab})).await.0;
    assert_eq!((put(&second).await, put("no such tab").await), (200, 200));
    server.stop().await;
    let server = Server::start(folder.path()).await;
    let (_, state) = server.page.get("/api/state").await;
    assert_eq!(state["preferences"]["activeTab"], second);
}
