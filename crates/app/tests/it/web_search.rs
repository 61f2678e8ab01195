//! Web search through the real program, by a service of this machine.

use serde_json::json;
use testkit::Answer;

use crate::aws::Server;
use crate::run::Fixture;

#[tokio::test]
async fn a_search_needs_the_network_permission_and_shows_no_model_the_key() {
    let mut bench = Fixture::new().await;
    let results = json!({"web": {"results": [{"title": "Crabs", "url": "https://example.com/crabs", "description": "All of them."}]}});
    let server =
        Server::start(move |line| line.contains("/search?q=blue%20crabs%26x").then(|| results.to_string()))
            .await;
    let answers = |bench: &Fixture| {
        let search = Answer::tool_call("c1", "eca__web_search", json!({"query": "blue crabs&x"}));
        bench.fake.answer(search).answer(Answer::text("finished"));
    };
    let results = |bench: &Fixture| bench.fake.last_request().tool_results().join("\n");

    // Without a service the tool does not exist.
    bench.fake.answer(Answer::text("finished"));
    assert_eq!(bench.run(&["hello"]).await.code, Some(0));
    assert!(!bench.fake.last_request().tools().iter().any(|tool| tool.contains("web_search")));

    bench.config["webSearch"] = json!({"url": format!("{}/search?q={{query}}", server.url), "headers": {"x-key": "search-key-0123456789"}});
    answers(&bench);
    bench.run(&["--approve", "read", "search"]).await;
    assert_eq!(server.requests(), [""; 0], "reading is not the network: {}", results(&bench));

    answers(&bench);
    let ran = bench.run(&["--approve", "network", "search"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        results(&bench).contains("1. Crabs\nhttps://example.com/crabs\nAll of them."),
        "{}",
        results(&bench)
    );
    assert!(server.requests()[0].contains("x-key: search-key-0123456789"));
    let bodies: String =
        bench.fake.requests().iter().map(|request| format!("{:?}", request.messages())).collect();
    assert!(!bodies.contains("search-key"), "no model sees the key");
}
