//! What fixed scenarios of the engine cost; see [`testkit::InstructionGuard`].

use std::path::Path;

use domain::ModelEvent;
use domain::model::BlockKind;
use serde_json::json;
use testkit::{InstructionGuard, ModelStep, ScriptedAnswer, measured_scenario};
use tokio::runtime::Runtime;

use crate::bench::Bench;

const SCENARIOS: &[&str] = &["one_turn", "thousand_chunks", "fifty_tool_rounds", "long_chat"];

/// Messages of the user in the long chat.
const LONG_CHAT: usize = 150;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn one_turn() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let mut client = bench.client().await;
        client.run("first").await;
        (bench, client)
    });
    measured_scenario(&mut || runtime.block_on(async { drop(client.run("hello").await) }));
    drop(bench);
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn thousand_chunks() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let client = bench.client().await;
        (bench, client)
    });
    let event = |event| ModelStep::Event(event);
    let start = event(ModelEvent::BlockStarted { block: 1, kind: BlockKind::Text });
    let mut answer = ScriptedAnswer::default().then(start);
    for number in 0..1000 {
        answer = answer.then(event(ModelEvent::BlockDelta { block: 1, text: format!("word {number:04} ") }));
    }
    bench.models.answer(answer.then(event(ModelEvent::BlockEnded { block: 1, provider: None })));
    measured_scenario(&mut || runtime.block_on(async { drop(client.run("speak").await) }));
}

#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn fifty_tool_rounds() {
    let runtime = runtime();
    let (bench, mut client) = runtime.block_on(async {
        let bench = Bench::new();
        let client = bench.client().await;
        (bench, client)
    });
    for number in 0..50 {
        bench.models.answer(ScriptedAnswer::call("eca__read", json!({"text": format!("file {number}")})));
    }
    measured_scenario(&mut || runtime.block_on(async { drop(client.run("read").await) }));
}

/// Another process opens a long chat and goes on with it.
#[test]
#[ignore = "a scenario of the guard, which starts it under callgrind"]
fn long_chat() {
    let runtime = runtime();
    let (bench, session) = runtime.block_on(async {
        let bench = Bench::new();
        let mut client = bench.client().await;
        for number in 0..LONG_CHAT {
            client.run(&format!("message {number}")).await;
        }
        client.close().await.unwrap();
        (bench, client.session.clone())
    });
    let other = runtime.block_on(async { bench.other_process() });
    measured_scenario(&mut || {
        runtime.block_on(async {
            let mut client = other.join(&session).await;
            drop(client.run("go on").await);
        });
    });
}

#[test]
fn the_engine_costs_what_the_baseline_says() {
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/instructions.txt");
    InstructionGuard { module: "instructions", scenarios: SCENARIOS, baseline }.check();
}
