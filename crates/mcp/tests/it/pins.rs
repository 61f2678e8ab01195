//! A definition that changes after it was first listed is withheld until the user stops and starts the server.

use super::*;
use domain::tool::ServerAction;

#[tokio::test]
async fn a_changed_definition_is_withheld_and_the_user_is_told_how_to_allow_it() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "good")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    let approved = tool(&servers, "s__echo");
    call(&servers, "s__change", json!({})).await;
    assert!(within(LONG, || server(&servers, "s").error.is_some()).await);
    let changed = server(&servers, "s");
    let error = changed.error.unwrap();
    assert!(
        error.contains("the definition of echo") && error.contains("stop the server and start it"),
        "{error}"
    );
    assert_eq!((changed.status, changed.tools.len()), (ServerStatus::Running, 18));
    assert!(servers.tools().iter().all(|tool| tool.spec().name != "echo"));
    let result = approved.run(invocation(json!({}), Port::new(None), CancellationToken::new())).await;
    assert!(result.error && said(&result.parts).contains("no longer offers echo as it was"), "{result:?}");

    // Others go on, and a new tool is no change.
    call(&servers, "s__grow", json!({})).await;
    assert!(within(LONG, || server(&servers, "s").tools.iter().any(|tool| tool.name == "grown")).await);
    assert!(!server(&servers, "s").tools.iter().any(|tool| tool.name == "echo"));
}

#[tokio::test]
async fn a_crash_does_not_launder_a_change_but_a_stop_allows_it() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "shifting")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    fs::write(bench.log_path("s.again"), "").unwrap();
    call(&servers, "s__die", json!({})).await;
    reaches(&servers, "s", ServerStatus::Failed).await;
    servers.act("s", ServerAction::Start).await.unwrap();
    let restarted = reaches(&servers, "s", ServerStatus::Running).await;
    assert!(!restarted.tools.iter().any(|tool| tool.name == "echo"));
    assert!(restarted.error.unwrap().contains("the definition of echo"));

    servers.act("s", ServerAction::Stop).await.unwrap();
    servers.act("s", ServerAction::Start).await.unwrap();
    let allowed = reaches(&servers, "s", ServerStatus::Running).await;
    let echo = allowed.tools.iter().find(|tool| tool.name == "echo").unwrap();
    assert_eq!((echo.description.as_str(), allowed.error), ("Another text after the restart.", None));
    echoes(&servers, "s").await;
}
