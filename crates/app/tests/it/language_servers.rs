//! Language servers in front-ends without an editor: the real program starts a small scripted one behind its wall.

use serde_json::json;
use testkit::Answer;

use crate::run::Fixture;

/// The tool is offered, answers from the server, and the server writes nothing into the project.
#[tokio::test]
async fn run_finds_definitions_and_errors_by_a_language_server() {
    let mut bench = Fixture::new().await;
    let project = bench.home.workspace().canonicalize().unwrap();
    let script = project.join("server.py");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../language-servers/tests/it/server.py"), &script)
        .unwrap();
    std::fs::write(project.join("a.small"), "def x\nx\nan error\n").unwrap();
    let line = format!("SMALL_SERVER_LOG=/dev/null exec python3 {}", script.display());
    bench.config["languageServers"] =
        json!({"small": {"command": "/bin/sh", "args": ["-c", line], "extensions": [".small"]}});
    bench
        .fake
        .answer(Answer::tool_call(
            "c1",
            "eca__editor_definition",
            json!({"path": "a.small", "line": 2, "character": 1}),
        ))
        .answer(Answer::tool_call("c2", "eca__editor_diagnostics", json!({"path": "a.small"})))
        .answer(Answer::tool_call("c3", "eca__editor_references", json!({"path": "a.small", "symbol": "x"})))
        .answer(Answer::tool_call("c4", "eca__editor_references", json!({"path": "a.small", "symbol": "y"})))
        .answer(Answer::text("finished"));
    let ran = bench.run(&["--approve", "read", "where is x?"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let requests = bench.fake.requests();
    let offered = requests[0].body["tools"].to_string();
    assert!(offered.contains("editor_definition") && offered.contains("editor_references"), "{offered}");
    let last = requests.iter().flat_map(|request| request.tool_results()).collect::<Vec<_>>().join("\n");
    if last.contains("dragoman trust") {
        testkit::skip("this system has no complete sandbox, and nobody trusted the folder");
        return;
    }
    assert!(last.contains("a.small:1:5"), "{last}");
    assert!(last.contains("a.small:3:1 error: an error [E1]"), "{last}");
    assert!(last.contains("The name y does not occur in a.small"), "{last}");
    let by_name = &requests[3].tool_results()[0];
    assert!(by_name.contains("a.small:"), "a name is enough: {by_name}");
    assert!(!project.join("stain").exists(), "a server cannot write into the project");
}

#[tokio::test]
async fn the_tools_are_not_offered_where_nothing_could_answer() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("finished"));
    assert_eq!(bench.run(&["hello"]).await.code, Some(0));
    assert!(!bench.fake.requests()[0].body["tools"].to_string().contains("editor_definition"));
}
