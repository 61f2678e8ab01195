//! The official client of ACP over its own transports: WebSocket and streamable HTTP.

use std::path::Path;

use domain::{Answer, Outcome};
use serde_json::{Value, json};
use testkit::fake_engine::Seen;

use crate::editors::{Place, TOKEN, WAIT, ask};
use crate::sdk;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_holds_a_turn() {
    hold_a_turn("tests/official.mjs", "ws").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_holds_a_turn_by_plain_requests() {
    hold_a_turn("tests/official_http.mjs", "http").await;
}

async fn hold_a_turn(script: &str, scheme: &str) {
    let packages = tokio::task::spawn_blocking(sdk::home).await.expect("the package is installed");
    let mut place = Place::start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let mut node = tokio::process::Command::new("node");
    // Node.js 20 has a WebSocket behind this flag, later ones have it anyway.
    node.arg("--experimental-websocket").arg(script).env("SDK", packages).env("TOKEN", TOKEN);
    node.env("URL", format!("{scheme}://127.0.0.1:{}/acp", place.port)).kill_on_drop(true);
    let running = tokio::spawn(async move { node.output().await });
    assert!(matches!(place.engine.next().await, Seen::Open { .. }));
    let (id, turn, _) = place.engine.prompt().await;
    place.engine.begin(&id, turn, 1, "Hello");
    for fact in ask(turn, 2) {
        place.engine.fact(&id, fact);
    }
    let Seen::Answer { answer, .. } = place.engine.next().await else { panic!("an answer is expected") };
    assert_eq!(answer, Answer::Allow { remember: false });
    place.engine.say(&id, turn, 3, "Grüße 🌍");
    place.engine.end(&id, turn, Outcome::Done);
    let output = tokio::time::timeout(WAIT, running).await.expect("in time").unwrap().expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen, json!({"text": "Grüße 🌍", "permissions": 1, "version": 1, "stop": "end_turn"}));
}
