//! Random commands, kills and full disks: the fold of the journal is the live state, and everything ends once.

use std::collections::HashMap;
use std::time::Duration;

use domain::command::SessionSettings;
use domain::item::ItemKind;
use domain::model::Tokens;
use domain::{Answer, Command, Fact, Failure, ModelEvent, Recorded};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRng, TestRunner};
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::{Bench, REPLAYED};
use crate::client::Client;

/// Sequences at full scale; a tenth by default.
const SEQUENCES: u32 = 2000;

#[derive(Clone, Debug)]
enum Action {
    Prompt(u8),
    Slash(u8),
    Answer(u8),
    Cancel,
    Steer(bool),
    Configure(u8),
    Rollback(u8),
    Fork(bool),
    Close,
    Kill,
    Disk(bool),
    Wait(u16),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => any::<u8>().prop_map(Action::Prompt),
        1 => any::<u8>().prop_map(Action::Slash),
        3 => any::<u8>().prop_map(Action::Answer),
        2 => Just(Action::Cancel),
        2 => any::<bool>().prop_map(Action::Steer),
        1 => any::<u8>().prop_map(Action::Configure),
        1 => any::<u8>().prop_map(Action::Rollback),
        1 => any::<bool>().prop_map(Action::Fork),
        1 => Just(Action::Close),
        2 => Just(Action::Kill),
        1 => any::<bool>().prop_map(Action::Disk),
        5 => (0..2000_u16).prop_map(Action::Wait),
    ]
}

fn answer(kind: u8) -> ScriptedAnswer {
    let call =
        |name: &str| ScriptedAnswer::text("calling").and_call(name, json!({"text": "x", "command": "ls"}));
    let used = Tokens { input: 60, output: 5, ..Tokens::default() };
    let slow = |answer: ScriptedAnswer| answer.then(ModelStep::Wait(Duration::from_millis(300)));
    match kind % 16 {
        0 => ScriptedAnswer::text("plain"),
        1 => ScriptedAnswer::text("counted").and_usage(used),
        2 => call("eca__read"),
        3 => call("eca__write").and_call("eca__read", json!({})),
        4 => call("eca__run").and_usage(used),
        5 => call("eca__wait"),
        6 => call("eca__ask"),
        7 => call("eca__write").and_call("eca__panic_in_review", json!({})),
        8 => call("eca__panic_in_run"),
        9 => call("eca__compact"),
        10 => slow(ScriptedAnswer::text(&"long ".repeat(3000))).and_text("and on"),
        11 => slow(ScriptedAnswer::text("half")).then(ModelStep::Fail(Failure::provider("down"))),
        12 => ScriptedAnswer::fails(Failure::provider("down")),
        13 => slow(ScriptedAnswer::text("hangs")).then(ModelStep::Hang),
        14 => call("eca__nothing").and_call("eca__read", json!({"invalid": true})),
        _ => slow(ScriptedAnswer::text("panics")).then(ModelStep::Panic),
    }
}

/// One chat under random commands.
struct Run {
    bench: Bench,
    client: Client,
    disk_full: bool,
}

impl Run {
    async fn start() -> Self {
        let bench = Bench::with_config(json!({"autoCompactPercentage": 50, "failover": ["test/two"]}));
        bench.models.set_info(|info| info.context_limit = Some(100));
        let client = bench.client().await;
        Self { bench, client, disk_full: false }
    }

    async fn act(&mut self, action: &Action) {
        let client = &self.client;
        match action {
            Action::Prompt(kind) => {
                self.bench.models.forget_answers();
                self.bench.answers([answer(*kind), answer(kind / 16)]);
                let _ = client.prompt("do it").await;
            }
            Action::Slash(kind) => {
                let commands = ["/costs", "/compact", "/doctor", "/model test/two", "/greet you", "/resume"];
                let _ = client.prompt(commands[usize::from(*kind) % commands.len()]).await;
            }
            Action::Answer(kind) => {
                let state = self.bench.live.state(&client.session);
                let ask = state.and_then(|state| state.open_asks().next().map(|ask| ask.id));
                let answer = match kind % 4 {
                    0 => Answer::Allow { remember: kind % 8 > 3 },
                    1 => Answer::Deny { remember: false, reason: Some("no".into()) },
                    2 => Answer::Text { text: "yes".into() },
                    _ => Answer::Cancelled,
                };
                if let Some(ask) = ask {
                    client.answer(ask, answer).await;
                }
            }
            Action::Cancel => client.cancel().await,
            Action::Steer(add) => drop(client.steer(add.then_some("and this")).await),
            Action::Configure(kind) => {
                let mut change = SessionSettings::default();
                match kind % 3 {
                    0 => change.trust = Some(kind % 2 == 0),
                    1 => change.behavior = Some(if kind % 2 == 0 { "plan" } else { "code" }.into()),
                    _ => change.title = Some(format!("title {kind}")),
                }
                let _ = client.configure(change).await;
            }
            Action::Rollback(at) => {
                let state = self.bench.live.state(&client.session).unwrap_or_default();
                let from = state.items().get(usize::from(*at) % 8).map(|item| item.id);
                let _ = client.rollback(from).await;
            }
            Action::Fork(follow) => self.fork(*follow).await,
            Action::Close => drop(client.close().await),
            Action::Kill => self.restart().await,
            Action::Disk(full) => {
                self.disk_full = *full;
                self.bench.store.fail_appends(full.then(|| Failure::internal("The disk is full.")));
            }
            Action::Wait(millis) => tokio::time::sleep(Duration::from_millis(u64::from(*millis))).await,
        }
    }

    async fn fork(&mut self, follow: bool) {
        let fork =
            self.client.call(|session, reply| Command::Fork { session, until: None, id: None, reply }).await;
        if let Ok(info) = fork
            && follow
        {
            self.client.session = info.id;
        }
    }

    /// The process dies and another one goes on with the chat, or with a new one where it was never stored.
    async fn restart(&mut self) {
        self.bench.kill();
        self.disk_full = false;
        self.bench.store.fail_appends(None);
        let session = self.client.session.clone();
        self.bench = self.bench.other_process();
        self.bench.models.set_info(|info| info.context_limit = Some(100));
        self.client = self.bench.attach(crate::client::person()).await;
        self.client.session = session;
        if self.client.load().await.is_err() {
            self.client.open().await.unwrap();
        }
    }

    /// The live state is the fold of the journal, now and after the chat was loaded again.
    async fn check(&mut self) {
        if self.disk_full {
            self.disk_full = false;
            self.bench.store.fail_appends(None);
        }
        // Brings a journal that failed back; a chat that was never stored stays away.
        self.client.cancel().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        if self.client.load().await.is_err() {
            return;
        }
        let live = self.bench.check_state(&self.client.session).await;
        assert_eq!(live.open_turn(), None);
        assert_eq!(live.open_asks().count(), 0);
        self.restart().await;
        let loaded = self.bench.check_state(&self.client.session).await;
        assert_eq!(loaded, live, "a chat that was loaded again is another one");
        everything_ended_once(&self.bench.store.facts(&self.client.session));
    }
}

pub(crate) fn everything_ended_once(facts: &[Recorded]) {
    let (mut turns, mut asks, mut calls) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (number, recorded) in (1..).zip(facts) {
        assert_eq!(recorded.number, number, "the numbers have a gap");
        match &recorded.fact {
            Fact::TurnStarted { turn, .. } => {
                assert_eq!(turns.insert(*turn, 0), None, "{turn} started twice")
            }
            Fact::TurnEnded { turn, .. } => *turns.get_mut(turn).expect("a turn that started") += 1,
            Fact::AskRaised { ask } => assert_eq!(asks.insert(ask.id, 0), None, "{} raised twice", ask.id),
            Fact::AskSettled { id, .. } => *asks.get_mut(id).expect("an ask that was raised") += 1,
            Fact::ItemStarted { item } if matches!(item.kind, ItemKind::ToolCall(_)) => {
                assert_eq!(calls.insert(item.id, 0), None, "{} started twice", item.id);
            }
            Fact::ItemEnded { item } => {
                if let Some(ends) = calls.get_mut(&item.id) {
                    *ends += 1;
                }
            }
            _ => {}
        }
    }
    assert!(turns.values().all(|ends| *ends == 1), "a turn did not end once: {turns:?}");
    assert!(asks.values().all(|ends| *ends == 1), "an ask was not settled once: {asks:?}");
    assert!(calls.values().all(|ends| *ends == 1), "a call did not end once: {calls:?}");
}

fn run(actions: &[Action]) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut run = Run::start().await;
        for action in actions {
            run.act(action).await;
        }
        run.check().await;
    });
}

#[test]
fn the_fold_of_the_journal_is_the_live_state() {
    let scale: u32 = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let cases = SEQUENCES / 10 * scale;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    // `make test` tries the same sequences each time; `make test-full` new ones.
    let mut runner = if scale == 1 {
        let rng = TestRng::deterministic_rng(config.rng_algorithm);
        TestRunner::new_with_rng(config, rng)
    } else {
        TestRunner::new(config)
    };
    // The scripts panic on purpose; proptest reports what matters.
    std::panic::set_hook(Box::new(|_| {}));
    let result = runner.run(&prop::collection::vec(action(), 1..30), |actions| {
        std::panic::catch_unwind(|| run(&actions)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "a panic".to_owned()))
        })
    });
    let _ = std::panic::take_hook();
    if let Err(failed) = result {
        panic!("{failed}");
    }
    let replayed = REPLAYED.load(std::sync::atomic::Ordering::Relaxed);
    println!("figure: {replayed} replays of chats with random commands, kills and full disks, 0 differences");
}

#[test]
fn text_reaches_the_journal_while_it_streams() {
    // A regression that random runs found: grown text must be folded as it is committed.
    run(&[Action::Prompt(10), Action::Wait(150), Action::Kill]);
    let _ = ModelEvent::Usage(Tokens::default());
}
