//! Starting, failing, stopping, starting again; and that nothing is left behind.

use super::*;
use domain::tool::ServerAction;

#[tokio::test]
async fn a_good_server_offers_its_tools_prompts_and_resources() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("good", "good")]);
    assert_eq!(server(&servers, "good").status, ServerStatus::Starting);
    let running = reaches(&servers, "good", ServerStatus::Running).await;
    assert_eq!((running.tools.len(), running.error, running.command.as_str()), (19, None, "python3"));
    let names: Vec<String> = servers.tools().iter().map(|tool| tool.spec().offered_name()).collect();
    assert!(names.contains(&"good__files_read".to_owned()), "{names:?}");
    assert!(servers.tools().iter().all(|tool| !tool.spec().effect.is_read_only()));
    assert!(*bench.changes.lock().unwrap() >= 2, "starting and running were told");
    let result = call(&servers, "good__files_read", json!({})).await;
    assert_eq!(said(&result.parts), "read");

    let prompts = servers.prompts();
    assert_eq!((prompts[0].name.as_str(), prompts[0].arguments[0].required), ("good:greet", true));
    let parts = servers.prompt("good:greet", json!({"who": "Ada"})).await.unwrap();
    assert_eq!(said(&parts), "Say hello to Ada.");
    let refused = servers.prompt("good:greet", json!({})).await.unwrap_err();
    assert!(refused.message.contains("needs the argument who"), "{refused}");

    let uris: Vec<String> = servers.resources().into_iter().map(|resource| resource.uri).collect();
    assert_eq!(uris, ["note://0", "note://1", "note://2"]);
    let parts = servers.resource("good", "note://1").await.unwrap();
    assert!(said(&parts).contains("the text of note://1"));
    assert_eq!(
        servers.instructions(),
        ["<instructions server=\"good\">\nUse echo for echoes.\n</instructions>"]
    );

    let greetings: Vec<Value> = bench.told("good", "received");
    let methods: Vec<&str> = greetings.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods[..3], ["server/discover", "initialize", "notifications/initialized"]);
    assert_eq!(greetings[1]["params"]["protocolVersion"], "2025-11-25");
    servers.shutdown().await;
    assert!(bench.pids("good").iter().all(|pid| is_gone(*pid)));
}

#[tokio::test]
async fn servers_start_side_by_side_and_a_slow_one_delays_nobody() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("slow", "slow"), ("quick", "good")]);
    assert!(servers.servers().iter().all(|server| server.status == ServerStatus::Starting));
    reaches(&servers, "quick", ServerStatus::Running).await;
    assert_eq!(server(&servers, "slow").status, ServerStatus::Starting);
    echoes(&servers, "quick").await;
    fs::write(bench.log_path("slow.go"), "").unwrap();
    reaches(&servers, "slow", ServerStatus::Running).await;
    echoes(&servers, "slow").await;
}

/// What a user reads of servers that cannot start.
#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let bench = Bench::new();
    let mut missing = bench.spec("missing", "good");
    missing.transport =
        ServerTransport::Stdio { command: "no-such-program-here".into(), args: Vec::new(), env: Vec::new() };
    let mut modes: Vec<ServerSpec> =
        ["dies", "future", "alien"].iter().map(|mode| bench.spec(mode, mode)).collect();
    modes.extend([missing, bench.spec("eca", "good"), bench.spec("dies", "good")]);
    let servers = mcp::session_servers(&modes, bench.options());
    let reasons = [
        vec!["exit code 3", "cannot open the database", "key ***"],
        vec!["revisions 2030-01-01"],
        vec!["revision 3000-01-01"],
        vec!["no program “no-such-program-here”"],
        vec!["belongs to the built-in tools"],
        vec!["another server called dies"],
    ];
    assert!(
        within(LONG, || servers.servers().iter().all(|server| server.status == ServerStatus::Failed)).await
    );
    for (server, reasons) in servers.servers().iter().zip(reasons) {
        let error = server.error.as_deref().unwrap();
        for reason in reasons {
            assert!(error.contains(reason), "{}: {error}", server.name);
        }
        assert!(!error.contains("very-secret-value"), "{error}");
    }
    assert!(all_gone(&bench.pids("dies")).await);
}

#[tokio::test]
async fn a_server_that_never_answers_fails_by_its_deadline_and_leaves_nothing() {
    let bench = Bench::new();
    let options = Options { start_timeout: Duration::from_millis(1500), ..bench.options() };
    let servers = bench.with_options(&[("mute", "mute")], options);
    let failed = reaches(&servers, "mute", ServerStatus::Failed).await;
    assert!(failed.error.unwrap().contains("did not answer initialize within 1 s"));
    assert!(all_gone(&bench.pids("mute")).await);
}

#[tokio::test]
async fn an_old_server_is_spoken_to_in_its_revision() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("old", "old")]);
    reaches(&servers, "old", ServerStatus::Running).await;
    echoes(&servers, "old").await;
}

#[tokio::test]
async fn a_server_of_the_stateless_era_needs_no_handshake() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("new", "modern")]);
    let running = reaches(&servers, "new", ServerStatus::Running).await;
    assert_eq!((running.tools.len(), running.error), (19, None));
    echoes(&servers, "new").await;
    assert_eq!(servers.instructions().len(), 1);
    let parts = servers.prompt("new:greet", json!({"who": "Ada"})).await.unwrap();
    assert_eq!(said(&parts), "Say hello to Ada.");
    // A question of the server comes as a result, and its answer goes with the repeated request.
    let port = Port::new(Some(Answer::Form { data: json!({"color": "red"}) }));
    let result = call_with(&servers, "new__ask", json!({}), port.clone()).await;
    let answer: Value = serde_json::from_str(&said(&result.parts)).unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"color": "red"}}));
    assert_eq!(port.asked.lock().unwrap().len(), 1);
    let roots = call(&servers, "new__roots", json!({})).await;
    assert!(said(&roots.parts).contains("file://"), "{roots:?}");
    // Changed lists are subscribed to.
    assert!(within(LONG, || !bench.told("new", "subscribed").is_empty()).await);
    call(&servers, "new__grow", json!({})).await;
    assert!(within(LONG, || server(&servers, "new").tools.iter().any(|tool| tool.name == "grown")).await);
    let received = bench.told("new", "received");
    let methods: Vec<&str> = received.iter().filter_map(|message| message["method"].as_str()).collect();
    assert!(
        !methods.contains(&"initialize") && !methods.contains(&"notifications/initialized"),
        "{methods:?}"
    );
    for message in received.iter().filter(|message| !message["id"].is_null()) {
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28", "{message}");
    }
    // The era is remembered: the next start asks nothing else first.
    servers.act("new", ServerAction::Stop).await.unwrap();
    servers.act("new", ServerAction::Start).await.unwrap();
    reaches(&servers, "new", ServerStatus::Running).await;
    echoes(&servers, "new").await;
}

#[tokio::test]
async fn a_server_that_cannot_bear_the_question_for_its_era_is_not_asked_again() {
    let bench = Bench::new();
    let options = Options { probe_timeout: Duration::from_secs(2), ..bench.options() };
    let servers = bench.with_options(&[("prudish", "prudish"), ("silent", "silent")], options);
    for name in ["prudish", "silent"] {
        reaches(&servers, name, ServerStatus::Running).await;
        echoes(&servers, name).await;
        let asked = |name: &str| {
            let received = bench.told(name, "received");
            received.iter().filter(|message| message["method"] == "server/discover").count()
        };
        let before = asked(name);
        servers.act(name, ServerAction::Stop).await.unwrap();
        servers.act(name, ServerAction::Start).await.unwrap();
        reaches(&servers, name, ServerStatus::Running).await;
        assert_eq!(asked(name), before, "{name}: the era is remembered");
    }
    assert_eq!(bench.pids("prudish").len(), 3, "it ended once, at the first question");
}

#[tokio::test]
async fn a_crash_is_reported_fails_its_calls_and_can_be_mended() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("frail", "good")]);
    reaches(&servers, "frail", ServerStatus::Running).await;
    let hanging = tool(&servers, "frail__hang");
    let hanging = tokio::spawn(async move {
        hanging.run(invocation(json!({}), Port::new(None), CancellationToken::new())).await
    });
    let stale = tool(&servers, "frail__echo");
    let result = call(&servers, "frail__die", json!({})).await;
    assert!(result.error && said(&result.parts).contains("The MCP server frail failed"), "{result:?}");
    let other = tokio::time::timeout(LONG, hanging).await.unwrap().unwrap();
    assert!(other.error, "the other call under way fails too");
    let failed = reaches(&servers, "frail", ServerStatus::Failed).await;
    let error = failed.error.unwrap();
    assert!(error.contains("exit code 7") && error.contains("the disk is on fire"), "{error}");
    assert!(servers.tools().is_empty() && servers.prompts().is_empty() && servers.instructions().is_empty());
    let result = stale.run(invocation(json!({}), Port::new(None), CancellationToken::new())).await;
    assert!(result.error && said(&result.parts).contains("has failed"), "{result:?}");

    servers.act("frail", ServerAction::Start).await.unwrap();
    reaches(&servers, "frail", ServerStatus::Running).await;
    echoes(&servers, "frail").await;
    assert!(is_gone(bench.pids("frail")[0]));
}

#[tokio::test]
async fn a_crashed_server_is_started_again() {
    let bench = Bench::new();
    let options = Options { restart_wait: Duration::from_millis(20), ..bench.options() };
    let servers = bench.with_options(&[("frail", "good")], options);
    for crash in 1..=3 {
        reaches(&servers, "frail", ServerStatus::Running).await;
        echoes(&servers, "frail").await;
        assert!(call(&servers, "frail__die", json!({})).await.error);
        assert!(within(LONG, || bench.pids("frail").len() > crash).await, "another process was started");
    }
    reaches(&servers, "frail", ServerStatus::Running).await;
    servers.act("frail", ServerAction::Stop).await.unwrap();
    let started = bench.pids("frail").len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(bench.pids("frail").len(), started, "a stopped server stays stopped");

    // It is not tried for ever, and the user reads why and what to do.
    servers.act("frail", ServerAction::Start).await.unwrap();
    let gives_up = || server(&servers, "frail").error.is_some_and(|error| error.contains("times in a row"));
    for _ in 0..6 {
        reaches(&servers, "frail", ServerStatus::Running).await;
        let dead = bench.pids("frail").len();
        assert!(call(&servers, "frail__die", json!({})).await.error);
        assert!(within(LONG, || bench.pids("frail").len() > dead || gives_up()).await);
    }
    let failed = reaches(&servers, "frail", ServerStatus::Failed).await;
    let error = failed.error.unwrap();
    assert!(error.contains("exit code 7") && error.contains("Start it again"), "{error}");
}

#[tokio::test]
async fn a_stop_takes_the_whole_family_along() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("family", "family"), ("stubborn", "stubborn")]);
    for name in ["family", "stubborn"] {
        reaches(&servers, name, ServerStatus::Running).await;
        let pids = bench.pids(name);
        assert_eq!(pids.len(), 3);
        assert!(pids.iter().all(|pid| !is_gone(*pid)));
        servers.act(name, ServerAction::Stop).await.unwrap();
        assert!(pids.iter().all(|pid| is_gone(*pid)), "{name}: all are gone when the stop returns");
        assert_eq!(server(&servers, name).status, ServerStatus::Stopped);
        assert!(server(&servers, name).tools.is_empty());
    }
    servers.act("family", ServerAction::Start).await.unwrap();
    reaches(&servers, "family", ServerStatus::Running).await;
    echoes(&servers, "family").await;
    let unknown = servers.act("nobody", ServerAction::Start).await.unwrap_err();
    assert!(unknown.message.contains("no MCP server nobody"));
    servers.shutdown().await;
    assert!(bench.pids("family").iter().all(|pid| is_gone(*pid)));
}

#[tokio::test]
async fn a_stop_reaches_a_server_that_is_still_starting() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("mute", "mute")]);
    assert!(within(LONG, || !bench.told("mute", "received").is_empty()).await);
    servers.act("mute", ServerAction::Stop).await.unwrap();
    assert!(bench.pids("mute").iter().all(|pid| is_gone(*pid)));
    assert_eq!(server(&servers, "mute").status, ServerStatus::Stopped);
}

#[tokio::test]
async fn dropping_the_source_ends_every_server() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("family", "family"), ("mute", "mute")]);
    reaches(&servers, "family", ServerStatus::Running).await;
    assert!(within(LONG, || !bench.pids("mute").is_empty()).await);
    let stale = tool(&servers, "family__echo");
    drop(servers);
    let pids: Vec<u32> = ["family", "mute"].iter().flat_map(|name| bench.pids(name)).collect();
    assert_eq!(pids.len(), 4);
    assert!(all_gone(&pids).await);
    let result = stale.run(invocation(json!({}), Port::new(None), CancellationToken::new())).await;
    assert!(result.error, "a tool that outlives its server refuses");
}

/// The runtime may end before anybody says goodbye.
#[test]
fn the_end_of_the_runtime_ends_every_server() {
    let bench = Bench::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let servers = runtime.block_on(async {
        let servers = bench.supervisor(&[("family", "family")]);
        reaches(&servers, "family", ServerStatus::Running).await;
        servers
    });
    let pids = bench.pids("family");
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert!(runtime.block_on(all_gone(&pids)));
    drop(servers);
}

#[tokio::test]
async fn a_disabled_server_starts_only_when_asked() {
    let bench = Bench::new();
    let config = ServerConfig { disabled: true, ..ServerConfig::fixed(&bench.spec("off", "good")) };
    let servers = Supervisor::new(vec![config], bench.options());
    servers.start();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server(&servers, "off").status, ServerStatus::Disabled);
    assert!(bench.pids("off").is_empty());
    servers.act("off", ServerAction::Start).await.unwrap();
    reaches(&servers, "off", ServerStatus::Running).await;
}

#[tokio::test]
async fn a_server_that_is_started_again_is_subscribed_to_again() {
    let bench = Bench::new();
    let options = Options { restart_wait: Duration::from_millis(20), ..bench.options() };
    let servers = bench.with_options(&[("s", "modern")], options);
    for start in 1..=2 {
        reaches(&servers, "s", ServerStatus::Running).await;
        assert!(within(LONG, || bench.told("s", "subscribed").len() == start).await);
        assert!(call(&servers, "s__die", json!({})).await.error);
        assert!(within(LONG, || bench.pids("s").len() > start).await);
    }
    reaches(&servers, "s", ServerStatus::Running).await;
    assert!(within(LONG, || bench.told("s", "subscribed").len() == 3).await);
    call(&servers, "s__grow", json!({})).await;
    assert!(within(LONG, || server(&servers, "s").tools.iter().any(|tool| tool.name == "grown")).await);
}

#[tokio::test]
async fn forms_are_offered_only_where_they_can_be_shown() {
    for mode in ["good", "modern"] {
        for forms in [true, false] {
            let bench = Bench::new();
            let servers = bench.with_options(&[("s", mode)], Options { forms, ..bench.options() });
            reaches(&servers, "s", ServerStatus::Running).await;
            let received = bench.told("s", "received");
            let is_offered = received.iter().any(|message| message.to_string().contains("\"elicitation\""));
            assert_eq!(is_offered, forms, "{mode}");
        }
    }
}
