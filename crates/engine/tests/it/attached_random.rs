//! Random schedules of prompts, answers, stops, kills and reconnects of several processes on one chat: nothing is lost,
//! nothing runs twice, no question is answered twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::event::EventBody;
use domain::item::ItemKind;
use domain::link::Commands;
use domain::{Answer, AskId, Command, Fact, Follower, Recorded, SessionId, ToolState};
use futures_util::StreamExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use serde_json::json;
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::person;
use crate::peers::TestPeers;
use crate::random::everything_ended_once;

/// Schedules at full scale; a tenth by default.
const SCHEDULES: usize = 1000;
/// They mostly wait, so many run at a time.
const AT_A_TIME: usize = 16;
const WINDOWS: usize = 3;
/// Nothing takes longer.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
enum Action {
    Prompt(usize, u8),
    Answer(usize, u8),
    Cancel(usize),
    Steer(usize),
    /// The process of a window dies, and another one opens the chat.
    Kill(usize),
    /// The window closes and opens again.
    Reconnect(usize),
    Wait(u8),
}

fn action() -> impl Strategy<Value = Action> {
    let window = 0..WINDOWS;
    prop_oneof![
        6 => (window.clone(), any::<u8>()).prop_map(|(at, kind)| Action::Prompt(at, kind)),
        5 => (window.clone(), any::<u8>()).prop_map(|(at, kind)| Action::Answer(at, kind)),
        1 => window.clone().prop_map(Action::Cancel),
        1 => window.clone().prop_map(Action::Steer),
        2 => window.clone().prop_map(Action::Kill),
        1 => window.prop_map(Action::Reconnect),
        5 => (0..25_u8).prop_map(Action::Wait),
    ]
}

fn script(kind: u8) -> ScriptedAnswer {
    let call =
        |name: &str| ScriptedAnswer::text("calling").and_call(name, json!({"text": "x", "command": "ls"}));
    match kind % 6 {
        0 => ScriptedAnswer::text("plain"),
        1 => call("eca__read"),
        2 => call("eca__write"),
        3 => call("eca__ask"),
        4 => call("eca__run").and_call("eca__write", json!({"text": "y"})),
        _ => ScriptedAnswer::text("slow").then(ModelStep::Wait(Duration::from_millis(15))).and_text(" end"),
    }
}

/// A window in a process of its own. A task reads its events all the time.
struct Window {
    bench: Bench,
    commands: Commands,
    seen: Arc<Mutex<Vec<Arc<Recorded>>>>,
    /// The first number it was to see.
    from: u64,
    reader: tokio::task::JoinHandle<()>,
}

impl Window {
    async fn open(bench: Bench, session: Option<&SessionId>) -> (Self, SessionId) {
        let link = bench.engine.attach(person()).await.unwrap();
        drop(link.host);
        let commands = link.commands;
        let info = match session.cloned() {
            Some(session) => {
                commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await
            }
            None => {
                let (id, workspace, settings, servers) = (None, None, Default::default(), Vec::new());
                commands.call(|reply| Command::Open { id, workspace, settings, servers, reply }).await
            }
        };
        let info = info.unwrap();
        let mut follower = Follower::new(commands.clone(), link.events);
        follower.follow(info.id.clone(), info.newest);
        let seen: Arc<Mutex<Vec<Arc<Recorded>>>> = Arc::default();
        let collected = seen.clone();
        let reader = tokio::spawn(async move {
            while let Some(event) = follower.next().await {
                if let EventBody::Fact(recorded) = event.body {
                    collected.lock().unwrap().push(recorded);
                }
            }
        });
        (Self { bench, commands, seen, from: info.newest + 1, reader }, info.id)
    }
}

struct SentPrompt {
    text: String,
    accepted: bool,
    /// The window whose process held the chat when the prompt was accepted.
    holder: Option<usize>,
    /// That process was killed before it had stored the prompt.
    died_with_holder: bool,
}

impl SentPrompt {
    /// Only the death of the process that accepted it takes a prompt away; its person sees that it is gone.
    fn must_be_kept(&self) -> bool {
        self.accepted && !self.died_with_holder
    }
}

struct Run {
    windows: Vec<Window>,
    session: SessionId,
    prompts: Vec<SentPrompt>,
    /// What each answer got as its reply.
    answers: Arc<Mutex<Vec<(AskId, Answer)>>>,
}

impl Run {
    async fn start() -> Self {
        let (first, session) = Window::open(Bench::with_peers(TestPeers::sockets()), None).await;
        // A new chat is stored with its first prompt at the latest; others find it then.
        while first.bench.store.facts(&session).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut windows = vec![first];
        for _ in 1..WINDOWS {
            let bench = windows[0].bench.other_process();
            windows.push(Window::open(bench, Some(&session)).await.0);
        }
        Self { windows, session, prompts: Vec::new(), answers: Arc::default() }
    }

    async fn act(&mut self, action: &Action) {
        let session = self.session.clone();
        match action {
            Action::Prompt(at, kind) => {
                // Whoever holds the chat gets the script.
                for window in &self.windows {
                    window.bench.models.forget_answers();
                    window.bench.answers([script(*kind), script(kind / 6)]);
                }
                let text = format!("prompt {}", self.prompts.len());
                let prompt = domain::command::UserPrompt { text: text.clone(), ..Default::default() };
                let call =
                    self.windows[*at].commands.call(|reply| Command::Prompt { session, prompt, reply });
                let accepted = tokio::time::timeout(LIMIT, call).await.expect("a reply");
                let accepted = accepted.is_ok();
                let holder =
                    self.windows.iter().position(|window| window.bench.store.holds_lease(&self.session));
                let holder = holder.filter(|_| accepted);
                self.prompts.push(SentPrompt { text, accepted, holder, died_with_holder: false });
            }
            Action::Answer(at, kind) => self.answer(*at, *kind).await,
            Action::Cancel(at) => {
                let _ = self.windows[*at].commands.send(Command::Cancel { session }).await;
            }
            Action::Steer(at) => {
                let text = Some("and this".to_owned());
                let call = self.windows[*at].commands.call(|reply| Command::Steer { session, text, reply });
                let _ = tokio::time::timeout(LIMIT, call).await.expect("a reply");
            }
            Action::Kill(at) => {
                let dead = &self.windows[*at];
                dead.reader.abort();
                dead.bench.kill();
                let facts = dead.bench.store.facts(&session);
                for prompt in &mut self.prompts {
                    if prompt.holder.take_if(|holder| holder == at).is_some() {
                        prompt.died_with_holder = !facts.iter().any(|it| is_prompt(&it.fact, &prompt.text));
                    }
                }
                let bench = dead.bench.other_process();
                self.windows[*at] = Window::open(bench, Some(&session)).await.0;
            }
            Action::Reconnect(at) => {
                let window = &self.windows[*at];
                let _ = window.commands.send(Command::Detach).await;
                window.reader.abort();
                // A process that ends by itself loses nothing.
                for prompt in &mut self.prompts {
                    let _ = prompt.holder.take_if(|holder| holder == at);
                }
                let bench = window.bench.other_process();
                self.windows[*at] = Window::open(bench, Some(&session)).await.0;
            }
            Action::Wait(millis) => tokio::time::sleep(Duration::from_millis((*millis).into())).await,
        }
    }

    /// Two windows answer the newest question at the same time.
    async fn answer(&self, at: usize, kind: u8) {
        let facts = self.windows[at].bench.store.facts(&self.session);
        let asked = facts.iter().rev().find_map(|recorded| match &recorded.fact {
            Fact::AskRaised { ask } => Some(ask.id),
            _ => None,
        });
        let Some(ask) = asked else { return };
        let choices = [
            Answer::Allow { remember: false },
            Answer::Deny { remember: false, reason: Some("no".into()) },
            Answer::Text { text: format!("text {kind}") },
        ];
        let both =
            [(at, usize::from(kind)), ((at + 1) % WINDOWS, usize::from(kind / 3))].map(|(at, choice)| {
                let (session, answer) = (self.session.clone(), choices[choice % choices.len()].clone());
                let commands = self.windows[at].commands.clone();
                async move {
                    let call = commands.call(|reply| Command::Answer { session, ask, answer, reply });
                    if let Ok(settled) = tokio::time::timeout(LIMIT, call).await.expect("a reply") {
                        self.answers.lock().unwrap().push((ask, settled));
                    }
                }
            });
        futures_util::future::join_all(both).await;
    }

    async fn check(self) {
        let store = self.windows[0].bench.store.clone();
        let session = &self.session;
        let deadline = tokio::time::Instant::now() + LIMIT;
        let facts = loop {
            let cancel = Command::Cancel { session: session.clone() };
            let _ = self.windows[0].commands.send(cancel).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            // Read once: the chat may go on between two looks.
            let facts = store.facts(session);
            let newest = facts.len() as u64;
            let is_whole = |window: &Window| {
                window.seen.lock().unwrap().last().map_or(window.from - 1, |last| last.number) == newest
            };
            let mut state = engine::State::default();
            facts.iter().for_each(|it| state.fold(it.number, &it.fact));
            // A prompt is accepted before it is stored.
            let is_stored = |prompt: &SentPrompt| facts.iter().any(|it| is_prompt(&it.fact, &prompt.text));
            let lost: Vec<&str> = self
                .prompts
                .iter()
                .filter(|it| it.must_be_kept() && !is_stored(it))
                .map(|it| it.text.as_str())
                .collect();
            if state.open_turn().is_none() && lost.is_empty() && self.windows.iter().all(is_whole) {
                break facts;
            }
            let places = || self.windows.iter().map(|it| it.seen.lock().unwrap().last().map(|it| it.number));
            assert!(
                tokio::time::Instant::now() < deadline,
                "a window is not whole: {:?} of {newest}, open turn {:?}, lost {lost:?}",
                places().collect::<Vec<_>>(),
                state.open_turn()
            );
        };
        everything_ended_once(&facts);
        runs_once(&facts);
        for window in &self.windows {
            let mut seen: Vec<Recorded> =
                window.seen.lock().unwrap().iter().map(|it| (**it).clone()).collect();
            seen.retain(|it| it.number <= facts.len() as u64);
            let first = usize::try_from(window.from - 1).unwrap();
            assert_eq!(seen, facts[first..], "a window saw something else");
        }
        for prompt in &self.prompts {
            let sent = facts.iter().filter(|recorded| is_prompt(&recorded.fact, &prompt.text)).count();
            assert!(sent <= 1, "{} was sent {sent} times", prompt.text);
            assert!(sent == 1 || !prompt.must_be_kept(), "{} was accepted and is lost", prompt.text);
        }
        let mut settled: HashMap<AskId, Answer> = HashMap::new();
        for recorded in &facts {
            if let Fact::AskSettled { id, answer } = &recorded.fact {
                settled.insert(*id, answer.clone());
            }
        }
        let mut replies: HashMap<AskId, Answer> = HashMap::new();
        for (ask, reply) in self.answers.lock().unwrap().iter() {
            // A holder that dies between an answer and its commit leaves the question cancelled.
            let first = replies.entry(*ask).or_insert_with(|| reply.clone());
            let kept = &settled[ask];
            assert!(reply == first || reply == kept, "{ask}: {reply:?}, first {first:?}, kept {kept:?}");
            assert!(reply == kept || *kept == Answer::Cancelled, "{ask}: {reply:?} but {kept:?} is kept");
        }
        // The replay of what was stored is checked when the benches end; one is enough.
        for window in self.windows.into_iter().skip(1) {
            window.reader.abort();
        }
    }
}

fn is_prompt(fact: &Fact, wanted: &str) -> bool {
    match fact {
        Fact::ItemEnded { item } => {
            matches!(&item.kind, ItemKind::UserMessage { text, .. } if text == wanted)
        }
        _ => false,
    }
}

/// A call runs at most once, and one whose outcome is unknown never again.
fn runs_once(facts: &[Recorded]) {
    let mut runs: HashMap<domain::ItemId, u32> = HashMap::new();
    let mut over: HashMap<domain::ItemId, bool> = HashMap::new();
    let mut states: HashMap<domain::ItemId, ToolState> = HashMap::new();
    for recorded in facts {
        let (Fact::ItemStarted { item } | Fact::ItemChanged { item } | Fact::ItemEnded { item }) =
            &recorded.fact
        else {
            continue;
        };
        let ItemKind::ToolCall(call) = &item.kind else { continue };
        let before = states.insert(item.id, call.state.clone());
        assert!(!over.get(&item.id).copied().unwrap_or(false), "{} changed after its end", item.id);
        if call.state == ToolState::Running && before != Some(ToolState::Running) {
            *runs.entry(item.id).or_default() += 1;
        }
        over.insert(item.id, call.state.is_over());
    }
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
}

async fn run(actions: Vec<Action>) {
    let mut run = Run::start().await;
    for action in &actions {
        run.act(action).await;
    }
    run.check().await;
}

#[test]
fn random_schedules_lose_nothing_and_run_nothing_twice() {
    let scale: usize = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let config = Config { failure_persistence: None, ..Config::default() };
    // `make test` tries the same schedules each time; `make test-full` new ones.
    let mut runner = if scale == 1 {
        let rng = TestRng::deterministic_rng(config.rng_algorithm);
        TestRunner::new_with_rng(config, rng)
    } else {
        TestRunner::new(config)
    };
    let schedules: Vec<Vec<Action>> = (0..SCHEDULES / 10 * scale)
        .map(|_| prop::collection::vec(action(), 4..24).new_tree(&mut runner).unwrap().current())
        .collect();
    let count = schedules.len();
    run_all(schedules);
    println!(
        "figure: {count} random schedules of windows in three processes, nothing lost, nothing run twice"
    );
}

/// A window whose holder was just leaving got commands all the time, and so never looked at the journal again.
#[test]
fn a_window_that_opened_while_the_holder_left_becomes_whole() {
    use Action::{Answer, Cancel, Kill, Prompt, Reconnect, Wait};
    let schedule = vec![
        Answer(1, 180),
        Cancel(1),
        Prompt(0, 136),
        Kill(0),
        Prompt(0, 99),
        Prompt(2, 5),
        Reconnect(0),
        Wait(22),
        Wait(22),
        Answer(2, 216),
        Wait(18),
    ];
    run_all(vec![schedule; 3 * AT_A_TIME]);
}

fn run_all(schedules: Vec<Vec<Action>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut running = futures_util::stream::iter(schedules)
            .map(|actions| async move {
                let shown = actions.clone();
                (tokio::spawn(run(actions)).await, shown)
            })
            .buffer_unordered(AT_A_TIME);
        while let Some((done, actions)) = running.next().await {
            if done.is_err() {
                panic!("this schedule failed: {actions:?}");
            }
        }
    });
}
