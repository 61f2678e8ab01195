//! `generate` and `stream/chunk`.

use serde_json::{Value, json};

use crate::host::{Host, SDL, YAML, normalized, two_tables};

/// The chunks are the code: indexes from 0 without gaps, the last alone done.
fn check_chunks(id: u64, chunks: &[Value], code: &str) {
    assert!(!chunks.is_empty(), "no chunk came");
    let mut joined = String::new();
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["requestId"], id);
        assert_eq!(chunk["index"], index);
        assert_eq!(chunk["done"], index + 1 == chunks.len());
        joined.push_str(chunk["chunk"].as_str().expect("text"));
    }
    assert!(joined == code, "the chunks are not the code");
}

#[tokio::test]
async fn every_form_of_specification_is_generated_and_streamed() {
    let forms = [
        ("normalized", normalized(), "GET /pets"),
        ("object", two_tables(), "GET /orders"),
        ("text", json!(two_tables().to_string()), "GET /orders"),
        ("yaml", json!(YAML), "GET /pets"),
        ("graphql", json!(SDL), "query pets"),
    ];
    let mut host = Host::new().await;
    for (id, (name, spec, operation)) in (1..).zip(forms) {
        host.send(id, "generate", json!({"spec": spec, "format": "react", "theme": "light"})).await;
        let (answer, chunks) = host.answer(id).await;
        let result = &answer["result"];
        let code = result["code"].as_str().unwrap_or_else(|| panic!("{name}: {answer}"));
        check_chunks(id, &chunks, code);
        assert!(code.contains(&format!("data-operation=\"{operation}\"")), "{name}: no control");
        assert!(result["componentCount"].as_u64().is_some_and(|count| count > 1), "{name}: {result}");
        assert!(result["description"].as_str().is_some_and(|text| text.starts_with("Generated interface")));
        assert!(result["assumptions"].is_array());
        apiui::check::check(code).unwrap_or_else(|refusals| panic!("{name}: {refusals:?}"));
    }
    assert!(host.calls().is_empty(), "generate called a model");
}

#[tokio::test]
async fn the_same_params_give_the_same_bytes_in_another_process() {
    let one = Host::new().await.generated(two_tables()).await;
    let other = Host::new().await.generated(two_tables()).await;
    assert!(one == other);
}

#[tokio::test]
async fn options_are_honored_and_unknown_ones_told() {
    let mut host = Host::new().await;
    let params =
        json!({"spec": two_tables(), "theme": "dark", "options": {"layout": "cards", "pagination": false}});
    let answer = host.call(1, "generate", params).await;
    let plan = apiui::print::plan_of(answer["result"]["code"].as_str().expect("code")).expect("a plan");
    assert_eq!(plan.theme, apiui::plan::Theme::Dark);
    assert_eq!(plan.layout, apiui::plan::Layout::Cards);
    assert!(!plan.pagination);
    let answer =
        host.call(2, "generate", json!({"spec": two_tables(), "options": {"layout": "spiral"}})).await;
    assert!(
        answer["result"]["assumptions"].to_string().contains("spiral"),
        "{}",
        answer["result"]["assumptions"]
    );
}

#[tokio::test]
async fn a_client_that_does_not_stream_gets_no_chunk() {
    let mut host = Host::new().await;
    host.call(1, "initialize", json!({"capabilities": {"streaming": false}})).await;
    host.send(2, "generate", json!({"spec": normalized(), "format": "react"})).await;
    let (answer, chunks) = host.answer(2).await;
    assert!(chunks.is_empty());
    assert!(answer["result"]["code"].is_string(), "{answer}");
}

#[tokio::test]
async fn requests_run_beside_each_other_and_their_chunks_do_not_mix() {
    let mut host = Host::new().await;
    for id in 1..=6 {
        let spec = if id % 2 == 0 { normalized() } else { two_tables() };
        host.send(id, "generate", json!({"spec": spec})).await;
    }
    let (mut chunks, mut answered) = (Vec::new(), 0);
    while answered < 6 {
        let message = host.next().await;
        if message["method"] == "stream/chunk" {
            chunks.push(message["params"].clone());
            continue;
        }
        answered += 1;
        let id = message["id"].as_u64().expect("an id");
        let own: Vec<Value> = chunks.iter().filter(|chunk| chunk["requestId"] == id).cloned().collect();
        check_chunks(id, &own, message["result"]["code"].as_str().expect("code"));
    }
}
