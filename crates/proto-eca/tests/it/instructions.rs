//! What fixed scenarios of the protocol cost; see [`testkit::InstructionGuard`].

use std::path::Path;

use domain::event::Channel;
use domain::item::ItemKind;
use domain::{Fact, Outcome};
use serde_json::{Value, json};
use testkit::fake_engine::item;
use testkit::{FakeEngine, InstructionGuard, measured_scenario};
use tokio::runtime::Runtime;

use crate::client::{Client, catalog};

const SCENARIOS: &[&str] = &["initialize", "thousand_chunks"];

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn initialize() {
    let runtime = runtime();
    let engine = runtime.block_on(async { FakeEngine::start(catalog()) });
    measured_scenario(&mut || {
        runtime.block_on(async {
            let mut client = Client::connect(&engine);
            client.request("initialize", json!({"capabilities": {"codeAssistant": {"chat": true}}})).await;
            client.notify("initialized", Value::Null).await;
            client.until(|it| it["method"] == "config/updated").await;
        });
    });
}

/// From the engine's events to the bytes that an editor reads.
#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn thousand_chunks() {
    let runtime = runtime();
    let (mut client, engine, session, turn) = runtime.block_on(Client::in_turn());
    measured_scenario(&mut || {
        runtime.block_on(async {
            let answer = ItemKind::AgentMessage { text: String::new(), interrupted: false, provider: None };
            engine.fact(&session, Fact::ItemStarted { item: item(2, turn, answer) });
            let mut offset = 0;
            for number in 0..1000 {
                let text = format!("word {number:04} ");
                engine.delta(&session, 2, Channel::Text, offset, &text);
                offset += text.len() as u64;
                // One chunk at a time, so that the number of messages is fixed.
                client
                    .until(|it| {
                        it["params"]["content"]["text"].as_str().is_some_and(|it| it.ends_with(&text))
                    })
                    .await;
            }
            engine.end(&session, turn, Outcome::Done);
        });
    });
}

#[test]
fn the_protocol_costs_what_the_baseline_says() {
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/instructions.txt");
    InstructionGuard { module: "instructions", scenarios: SCENARIOS, baseline }.check();
}
