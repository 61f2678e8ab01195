//! Every error code, each with what a host can show of it.

use std::time::Duration;

use proto_copilot::Limits;
use serde_json::{Value, json};

use crate::host::{Host, Say, two_tables};

#[track_caller]
fn check(answer: &Value, code: i64, says: &str) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.to_lowercase().contains(&says.to_lowercase()), "{message}");
}

#[tokio::test]
async fn lines_that_are_no_requests() {
    let mut host = Host::new().await;
    for (line, code) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, ", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 2}", -32600),
        ("{\"id\": 3, \"method\": \"chat\"}", -32600),
    ] {
        host.send_line(line).await;
        let answer = host.next().await;
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let answer = host.call(4, "initialize", json!({})).await;
    assert!(answer["result"].is_object(), "the connection goes on: {answer}");
}

#[tokio::test]
async fn an_unknown_method() {
    let answer = Host::new().await.call(1, "explode", json!({})).await;
    check(&answer, -32601, "explode");
}

#[tokio::test]
async fn wrong_params_are_named() {
    let mut host = Host::new().await;
    let code = host.generated(two_tables()).await;
    for (id, (method, params, says)) in (1..).zip([
        ("generate", json!({"spec": two_tables(), "format": "vue"}), "react"),
        ("generate", json!({"format": "react"}), "spec"),
        ("generate", json!({"spec": 5}), "spec"),
        ("generate", json!({"spec": two_tables(), "theme": 5}), "string"),
        ("generate", json!({"spec": two_tables(), "options": {"pagination": "yes"}}), "boolean"),
        ("generate", json!([1]), "object"),
        ("customize", json!({"prompt": "dark"}), "currentCode"),
        ("customize", json!({"currentCode": code}), "prompt"),
        ("customize", json!({"currentCode": code, "prompt": " "}), "prompt"),
        ("customize", json!({"currentCode": "", "prompt": "dark"}), "currentCode"),
        ("chat", json!({}), "message"),
        ("chat", json!({"message": ""}), "message"),
        ("initialize", json!({"capabilities": {"streaming": "no"}}), "boolean"),
    ]) {
        check(&host.call(id, method, params).await, -32602, says);
    }
}

#[tokio::test]
async fn unusable_specifications_have_a_place_and_an_advice() {
    let mut host = Host::new().await;
    for (id, (spec, says, place)) in (1..).zip([
        (json!("{\"openapi\": \"3.0.0\",\n oops"), "", "position"),
        (json!({"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": []}), "", "pointer"),
        (json!("#%RAML 1.0\ntitle: x"), "RAML", "document"),
        (json!({"asyncapi": "2.6.0", "channels": {}}), "AsyncAPI", "document"),
        (json!("<!doctype html><html></html>"), "HTML", "document"),
        (json!("<definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\"/>"), "WSDL", "document"),
        (json!({"hello": 1}), "", ""),
        (json!(""), "empty", ""),
        (json!("https://example.com/openapi.json"), "send what is there", "pointer"),
    ]) {
        let answer = host.call(id, "generate", json!({"spec": spec})).await;
        check(&answer, -32002, says);
        let problem = &answer["error"]["data"]["problems"][0];
        assert!(problem["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{answer}");
        assert!(place.is_empty() || problem["place"]["in"] == place, "{answer}");
    }
}

#[tokio::test]
async fn a_specification_that_is_too_deep_is_a_specification_all_the_same() {
    let mut host = Host::new().await;
    let (open, close) = ("{\"a\":".repeat(5_000), "}".repeat(5_000));
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"generate\",\"params\":{{\"spec\":{open}1{close}}}}}"
    );
    host.send_line(&line).await;
    let (answer, _) = host.answer(1).await;
    check(&answer, -32002, "levels deep");
    assert_eq!(answer["error"]["data"]["problems"][0]["place"]["in"], "position", "{answer}");
}

#[tokio::test]
async fn a_specification_over_the_limit() {
    let mut host = Host::new().await;
    let text = " ".repeat(apiui::read::LIMIT_BYTES + 1);
    check(&host.call(1, "generate", json!({"spec": text})).await, -32003, "50 MB");
    let padded = json!({"openapi": "3.0.0", "x-padding": text});
    check(&host.call(2, "generate", json!({"spec": padded})).await, -32003, "50 MB");
    check(&host.call(3, "chat", json!({"message": "x".repeat(300 << 10)})).await, -32003, "shorter");
    assert!(host.call(4, "generate", json!({"spec": two_tables()})).await["result"].is_object());
}

#[tokio::test]
async fn a_line_over_the_limit_is_passed_over() {
    let mut host = Host::new().await;
    let mut line =
        String::from("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"generate\",\"params\":{\"spec\":\"");
    line.push_str(&"x".repeat(128 << 20));
    line.push_str("\"}}");
    host.send_line(&line).await;
    let answer = host.next().await;
    check(&answer, -32003, "128 MB");
    assert_eq!(answer["id"], 7, "{answer}");
    assert!(host.call(8, "initialize", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn four_run_a_hundred_wait_the_next_is_refused() {
    let limits = Limits { chat: Duration::from_secs(3), ..Limits::default() };
    let mut host = Host::with(vec![Say::Hang], limits).await;
    for id in 1..=104 {
        host.send(id, "chat", json!({"message": "hello"})).await;
    }
    let answer = host.call(105, "chat", json!({"message": "hello"})).await;
    check(&answer, -32004, "too many");
    let four = async {
        while host.calls().len() < 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(2), four).await.expect("four run");
    assert_eq!(host.calls().len(), 4, "four run");
    for _ in 0..104 {
        let answer = host.next().await;
        assert!(answer["result"]["message"].is_string(), "the others are unharmed: {answer}");
    }
}

#[tokio::test]
async fn generation_that_takes_too_long() {
    let limits = Limits { generate: Duration::ZERO, ..Limits::default() };
    let mut host = Host::with(Vec::new(), limits).await;
    // Two tables are sometimes done before anybody looks at a clock.
    let mut spec = two_tables();
    let list = spec["paths"]["/users"].clone();
    for number in 0..2000 {
        spec["paths"][format!("/users{number}")] = list.clone();
    }
    let answer = host.call(1, "generate", json!({"spec": spec})).await;
    check(&answer, -32000, "smaller specification");
}

#[tokio::test]
async fn the_engine_is_gone() {
    let mut host = Host::without_engine().await;
    let code = host.generated(two_tables()).await;
    let params = json!({"currentCode": code, "prompt": "Draw a chart of all orders by month"});
    check(&host.call(1, "customize", params).await, -32603, "shutting down");
    assert!(host.call(2, "chat", json!({"message": "hello"})).await["result"].is_object());
}
