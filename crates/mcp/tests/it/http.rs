//! The same servers over streamable HTTP.

use super::*;
use domain::tool::ServerAction;
use process::{Child, Spawn};
use tokio::io::{AsyncBufReadExt, BufReader};

/// A scripted HTTP server and the source that uses it; the server's name is its mode.
struct Web {
    bench: Bench,
    servers: Supervisor,
    mode: &'static str,
    _process: Child,
}

async fn web(mode: &'static str, headers: &[(&str, &str)]) -> Web {
    web_with(mode, headers, |_| ()).await
}

async fn web_with(mode: &'static str, headers: &[(&str, &str)], adjust: impl FnOnce(&mut Options)) -> Web {
    let bench = Bench::new();
    let arguments =
        [script().display().to_string(), "http".into(), mode.into(), "--log".into(), bench.log_path(mode)];
    let mut process = Spawn::new("python3").args(arguments).start().await.unwrap();
    let mut output = BufReader::new(process.take_stdout().unwrap());
    let mut port = String::new();
    tokio::time::timeout(LONG, output.read_line(&mut port)).await.unwrap().unwrap();
    let url = format!("http://127.0.0.1:{}/mcp?key=not-to-be-shown", port.trim());
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let spec = ServerSpec { name: mode.into(), transport: ServerTransport::Http { url, headers } };
    let mut options = bench.options();
    adjust(&mut options);
    let servers = Supervisor::new(vec![ServerConfig::fixed(&spec)], options);
    servers.start();
    Web { bench, servers, mode, _process: process }
}

impl Web {
    /// The headers of all requests of one method.
    fn requests(&self, method: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.bench.log_path(self.mode)).unwrap_or_default();
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        values.filter(|value| value["http"] == method).map(|mut value| value["headers"].take()).collect()
    }
}

/// Answers as one JSON body, as an event stream, and as a stream that is closed and resumed.
#[tokio::test]
async fn a_server_answers_in_either_form() {
    for mode in ["json", "good", "polling"] {
        let web = web(mode, &[("authorization", "Bearer right-token-123")]).await;
        let running = reaches(&web.servers, mode, ServerStatus::Running).await;
        assert_eq!((running.tools.len(), running.error), (19, None), "{mode}");
        let shown = running.url.unwrap();
        assert!(shown.ends_with("/mcp"), "{shown}");
        echoes(&web.servers, mode).await;
        let result = call(&web.servers, &format!("{mode}__huge"), json!({})).await;
        assert!(said(&result.parts).contains("of 2000000 bytes"), "{mode}");
        let result = call(&web.servers, &format!("{mode}__giant"), json!({})).await;
        assert!(
            result.error && said(&result.parts).contains("too large"),
            "{mode}: {:.200}",
            said(&result.parts)
        );

        web.servers.act(mode, ServerAction::Stop).await.unwrap();
        let mut posts = web.requests("POST");
        assert_eq!(posts.remove(0)["mcp-method"], "server/discover", "the newer era is tried first");
        assert!(posts[0]["mcp-session-id"].is_null() && posts[0]["mcp-protocol-version"].is_null());
        for post in &posts {
            assert_eq!(post["accept"], "application/json, text/event-stream");
            assert_eq!(post["authorization"], "Bearer right-token-123");
        }
        for post in &posts[1..] {
            assert_eq!(
                (&post["mcp-session-id"], &post["mcp-protocol-version"]),
                (&json!("session-1"), &json!("2025-11-25"))
            );
        }
        assert_eq!(web.requests("DELETE").len(), 1, "{mode}: the session was ended");
        assert_eq!(
            mode == "polling",
            web.requests("GET").iter().any(|get| !get["last-event-id"].is_null()),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn requests_of_the_server_are_answered_over_http_too() {
    let web = web("good", &[]).await;
    reaches(&web.servers, "good", ServerStatus::Running).await;
    let port = Port::new(Some(Answer::Form { data: json!({"color": "blue"}) }));
    let result = call_with(&web.servers, "good__ask", json!({}), port).await;
    assert!(said(&result.parts).contains("blue"), "{result:?}");
    let roots = call(&web.servers, "good__roots", json!({})).await;
    assert!(said(&roots.parts).contains("file://"), "{roots:?}");
    let port = Port::new(None);
    call_with(&web.servers, "good__progress", json!({}), port.clone()).await;
    assert!(port.output.lock().unwrap().contains("working"));
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_once() {
    for mode in ["json", "good", "vague"] {
        let web = web(mode, &[]).await;
        reaches(&web.servers, mode, ServerStatus::Running).await;
        let result = call(&web.servers, &format!("{mode}__forget"), json!({})).await;
        assert!(result.error && said(&result.parts).contains("nor a new one"), "{result:?}");
        echoes(&web.servers, mode).await;
        let posts = web.requests("POST");
        assert_eq!(posts.last().unwrap()["mcp-session-id"], "session-3", "{mode}");
    }
}

#[tokio::test]
async fn what_the_server_says_by_itself_is_heard() {
    let web = web("aside", &[]).await;
    reaches(&web.servers, "aside", ServerStatus::Running).await;
    call(&web.servers, "aside__grow", json!({})).await;
    let grown = || server(&web.servers, "aside").tools.iter().any(|tool| tool.name == "grown");
    assert!(within(LONG, grown).await, "the notice came by the stream of its own");
}

#[tokio::test]
async fn a_call_is_cancelled_over_http_too() {
    let web = web_with("good", &[], |options| options.call_timeout = Duration::from_millis(400)).await;
    reaches(&web.servers, "good", ServerStatus::Running).await;
    let result = call(&web.servers, "good__hang", json!({})).await;
    assert!(result.error && said(&result.parts).contains("did not answer within"), "{result:?}");
    assert!(within(LONG, || web.bench.told("good", "cancelled").len() == 1).await);
}

#[tokio::test]
async fn a_server_of_the_stateless_era_works_over_http() {
    let web = web("modern", &[]).await;
    let running = reaches(&web.servers, "modern", ServerStatus::Running).await;
    assert_eq!((running.tools.len(), running.error), (19, None));
    echoes(&web.servers, "modern").await;
    let port = Port::new(Some(Answer::Form { data: json!({"color": "blue"}) }));
    let result = call_with(&web.servers, "modern__ask", json!({}), port).await;
    assert!(said(&result.parts).contains("blue"), "{result:?}");
    assert!(within(LONG, || !web.bench.told("modern", "subscribed").is_empty()).await);
    let parts = web.servers.resource("modern", "note://1").await.unwrap();
    assert!(said(&parts).contains("the text of note://1"));
    web.servers.act("modern", ServerAction::Stop).await.unwrap();
    let posts = web.requests("POST");
    for post in &posts {
        assert_eq!(post["mcp-protocol-version"], "2026-07-28");
        assert!(post["mcp-session-id"].is_null() && !post["mcp-method"].is_null(), "{post}");
    }
    let named = |method: &str, name: &str| {
        posts.iter().any(|post| post["mcp-method"] == method && post["mcp-name"] == name)
    };
    assert!(named("tools/call", "echo") && named("resources/read", "note://1"), "{posts:?}");
    assert!(web.requests("GET").is_empty() && web.requests("DELETE").is_empty());
}

#[tokio::test]
async fn the_old_transport_works_and_its_end_is_noticed() {
    let web = web("oldsse", &[("authorization", "Bearer right-token-123")]).await;
    let running = reaches(&web.servers, "oldsse", ServerStatus::Running).await;
    assert_eq!((running.tools.len(), running.error), (19, None));
    echoes(&web.servers, "oldsse").await;
    let port = Port::new(Some(Answer::Form { data: json!({"color": "blue"}) }));
    let result = call_with(&web.servers, "oldsse__ask", json!({}), port).await;
    assert!(said(&result.parts).contains("blue"), "{result:?}");
    assert!(web.requests("GET").iter().all(|get| get["authorization"] == "Bearer right-token-123"));
    // The server closes its stream: that is the end of the connection.
    let forgotten = call(&web.servers, "oldsse__forget", json!({})).await;
    assert!(forgotten.error, "{forgotten:?}");
    reaches(&web.servers, "oldsse", ServerStatus::Failed).await;
}

#[tokio::test]
async fn a_login_that_ends_in_the_middle_is_a_login_and_no_failure() {
    let web = web("expires", &[("authorization", "Bearer right-token-123")]).await;
    reaches(&web.servers, "expires", ServerStatus::Running).await;
    echoes(&web.servers, "expires").await;
    call(&web.servers, "expires__forget", json!({})).await;
    let locked = reaches(&web.servers, "expires", ServerStatus::RequiresAuth).await;
    let error = locked.error.unwrap();
    assert!(error.contains("requires a login") && error.contains("start it again"), "{error}");
    assert!(web.servers.tools().is_empty());
}

#[tokio::test]
async fn what_is_wrong_with_an_address_is_said() {
    for (mode, status, reason) in [
        ("locked", ServerStatus::RequiresAuth, "requires a login"),
        ("legacy", ServerStatus::Failed, "neither streamable HTTP nor the older HTTP+SSE transport"),
        ("moved", ServerStatus::Failed, "It is at /elsewhere now"),
        ("future", ServerStatus::Failed, "revisions 2030-01-01"),
    ] {
        let web = web(mode, &[("authorization", "Bearer wrong-token-123")]).await;
        let error = reaches(&web.servers, mode, status).await.error.unwrap();
        assert!(error.contains(reason) && !error.contains("wrong-token"), "{mode}: {error}");
    }
    let bench = Bench::new();
    let spec = |name: &str, url: &str| ServerSpec {
        name: name.into(),
        transport: ServerTransport::Http { url: url.into(), headers: Vec::new() },
    };
    let specs = [spec("nobody", "http://127.0.0.1:1/mcp?key=hidden-key"), spec("odd", "ftp://host/x")];
    let servers = mcp::session_servers(&specs, bench.options());
    for (name, reason) in [("nobody", "cannot be reached"), ("odd", "no http:// or https:// address")] {
        let error = reaches(servers.as_ref(), name, ServerStatus::Failed).await.error.unwrap();
        assert!(error.contains(reason) && !error.contains("hidden-key"), "{name}: {error}");
    }
}
