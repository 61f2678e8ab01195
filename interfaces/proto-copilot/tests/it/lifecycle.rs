//! `initialize`, `exit`, the end of the input.

use std::time::Duration;

use proto_copilot::Limits;
use serde_json::json;

use crate::host::{Host, Say, normalized};

#[tokio::test]
async fn initialize_tells_who_we_are_and_what_we_can() {
    let mut host = Host::new().await;
    let params = json!({"clientName": "experience-ui", "clientVersion": "1.0.0", "capabilities": {
        "streaming": true, "specFormats": ["openapi3", "swagger2", "graphql"]}});
    let result = host.call(1, "initialize", params).await["result"].take();
    assert!(result["serverName"].is_string() && result["serverVersion"].is_string(), "{result}");
    let can = json!({"codeGeneration": true, "customization": true, "streaming": true});
    assert_eq!(result["capabilities"], can);
}

#[tokio::test]
async fn exit_ends_at_once_whatever_runs() {
    let mut host = Host::with(vec![Say::Hang], Limits::default()).await;
    host.send(1, "chat", json!({"message": "hello"})).await;
    host.send_line("{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}").await;
    let ended = tokio::time::timeout(Duration::from_secs(5), &mut host.served).await;
    ended.expect("in time").expect("no panic").expect("no error");
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let mut host = Host::new().await;
    host.send(1, "generate", json!({"spec": normalized()})).await;
    host.close_input().await;
    let (answer, chunks) = host.answer(1).await;
    assert!(answer["result"]["code"].is_string() && !chunks.is_empty());
    let ended = tokio::time::timeout(Duration::from_secs(5), &mut host.served).await;
    ended.expect("in time").expect("no panic").expect("no error");
}
