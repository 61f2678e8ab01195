//! Web search through the real program, by a service of this machine.

use serde_json::{Value, json};
use testkit::fake_model::Usage;
use testkit::{Answer, FakeModel};

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

/// The provider's own tool, in each API that has one: a call like any other, asked for as a use of the network, paid by the
/// chat.
#[tokio::test]
async fn a_provider_searches_by_its_own_tool_under_the_network_permission() {
    let page = json!({"title": "Crabs", "url": "https://example.com/crabs"});
    let cited = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": page}});
    let annotated = json!({"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0,
        "annotation": {"type": "url_citation", "title": "Crabs", "url": "https://example.com/crabs"}});
    let grounded = json!({"candidates": [{"content": {"parts": []}, "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://example.com/crabs", "title": "Crabs"}}]}}]});
    for (api, tool, event) in [
        ("anthropic", json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}), cited),
        ("openai-responses", json!({"type": "web_search"}), annotated),
        ("gemini", json!({"google_search": {}}), grounded),
    ] {
        let mut bench = Fixture::new().await;
        let searcher = FakeModel::start().await;
        bench.config["chat"] = json!({"title": false});
        bench.config["providers"]["finder"] = json!({"api": api, "url": searcher.url(), "key": "sk-of-the-finder",
            "models": {"f1": {"cost": {"input": 1_000_000, "output": 0}}}});
        bench.config["webSearch"] = json!({"model": "finder/f1"});
        let wants = |bench: &Fixture| {
            let search = Answer::tool_call("c1", "eca__web_search", json!({"query": "blue crabs"}));
            bench.fake.answer(search).answer(Answer::text("finished"));
        };
        wants(&bench);
        bench.run(&["--approve", "read", "search"]).await;
        assert!(searcher.requests().is_empty(), "{api}: reading is not the network");

        wants(&bench);
        let frame = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"));
        let used = Usage { input: 7, output: 1, ..Usage::default() };
        searcher.answer(Answer::new().say("They are blue.").raw(frame).usage(used));
        let ran = bench.run(&["--approve", "network", "search"]).await;
        assert_eq!(ran.code, Some(0), "{api}: {}{}", ran.out, ran.err);
        let results = bench.fake.last_request().tool_results().join("\n");
        for words in ["They are blue.", "1. Crabs", "https://example.com/crabs"] {
            assert!(results.contains(words), "{api}: {results}");
        }
        let request = searcher.last_request();
        assert_eq!(request.body["tools"], json!([tool]), "{api}: the provider's tool and none of ours");
        assert_eq!(request.last_user_text(), "blue crabs", "{api}: the words alone leave");
        let stats = bench.home.command(&["stats", "--json"]).output().expect("it runs");
        let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
        let paid = stats["models"].as_array().into_iter().flatten().find(|it| it["model"] == "finder/f1");
        assert_eq!(paid.expect("the search is counted")["cost"], 7.0, "{api}: {stats:#}");
    }
}

#[tokio::test]
async fn an_api_without_a_search_says_so() {
    let mut bench = Fixture::new().await;
    bench.config["webSearch"] = json!({"model": "fake/m1"});
    bench.fake.answer(Answer::tool_call("c1", "eca__web_search", json!({"query": "crabs"})));
    bench.fake.answer(Answer::text("finished"));
    assert_eq!(bench.run(&["--approve", "network", "search"]).await.code, Some(0));
    let results = bench.fake.last_request().tool_results().join("\n");
    assert!(results.contains("The API of fake/m1 has no web search of its own."), "{results}");
}
