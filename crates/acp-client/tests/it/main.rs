//! The client against a real process: the scripted agent `agent.py`, friendly and hostile.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acp_client::{Agent, AgentOptions, Launch, Launcher, Limits};
use domain::agent::{AgentCall, AgentChoice, AgentEvent, AgentOpening, AgentRequest, CommandEnd};
use domain::item::Part;
use domain::{BoxFuture, Failure, SessionId};
use futures_util::StreamExt;
use process::Spawn;

const DEADLINE: Duration = Duration::from_secs(30);

struct Program {
    state: PathBuf,
    variables: Vec<(&'static str, &'static str)>,
}

impl Launcher for Program {
    fn launch<'a>(&'a self, _: &'a AgentOpening, _: Option<u16>) -> BoxFuture<'a, Result<Launch, Failure>> {
        Box::pin(async move {
            Ok(Launch {
                spawn: self.spawn(),
                is_confined: false,
                seals_forbidden: false,
                settings_watch: None,
                sandbox: None,
            })
        })
    }
}

impl Program {
    fn spawn(&self) -> Spawn {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agent.py");
        Spawn::new("python3")
            .arg(script)
            .env("AGENT_STATE", &self.state)
            .env("AGENT_LOG", self.state.join("starts"))
            .envs(self.variables.iter().copied())
    }
}

struct Bench {
    folder: tempfile::TempDir,
    agent: Arc<Agent>,
    chat: SessionId,
    /// Names of the models that the agent offered last.
    models: Arc<Mutex<Vec<String>>>,
}

/// What a prompt brought.
#[derive(Default, Debug)]
struct Turn {
    text: String,
    thoughts: String,
    calls: Vec<AgentCall>,
    notices: Vec<String>,
    rest: Vec<String>,
    end: Option<String>,
    failure: Option<Failure>,
}

impl Bench {
    fn new() -> Self {
        Self::with(&[], Limits::default())
    }

    fn with(variables: &[(&'static str, &'static str)], limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let models = Arc::<Mutex<Vec<String>>>::default();
        let offered = models.clone();
        let agent = Agent::new(AgentOptions {
            name: "double".to_owned(),
            launcher: Arc::new(Program { state: folder.path().to_owned(), variables: variables.to_vec() }),
            auth_methods: Vec::new(),
            on_models: Some(Arc::new(move |all| {
                *offered.lock().unwrap() = all.iter().map(|model| model.id.clone()).collect();
            })),
            reads_files: true,
            on_offers: None,
            bridge: None,
            limits,
        });
        Self { folder, agent, chat: SessionId::new("chat-1"), models }
    }

    fn opening(&self, known: Option<&str>) -> AgentOpening {
        AgentOpening {
            chat: self.chat.clone(),
            roots: Arc::from([self.folder.path().to_owned()]),
            known: known.map(ToOwned::to_owned),
            forbidden_paths: Arc::from([]),
            tainted: false,
            read_only: false,
            tools: Arc::from([]),
        }
    }

    async fn open(&self) -> String {
        self.agent.with_model("default").open(self.opening(None)).await.unwrap().session
    }

    /// Prompts and answers every request with yes.
    async fn prompt(&self, text: &str) -> Turn {
        self.prompt_with(text, |_| true).await
    }

    async fn prompt_with(&self, text: &str, allows: impl Fn(&AgentCall) -> bool) -> Turn {
        let agent = self.agent.with_model("default");
        let mut events = agent.prompt(&self.chat, vec![Part::text(text)]);
        let mut turn = Turn::default();
        let all = async {
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => turn.add(event, &allows).await,
                    Err(failure) => turn.failure = Some(failure),
                }
            }
        };
        tokio::time::timeout(DEADLINE, all).await.expect("the prompt ends");
        turn
    }

    fn starts(&self) -> Vec<u32> {
        let log = std::fs::read_to_string(self.folder.path().join("starts")).unwrap_or_default();
        log.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Turn {
    async fn add(&mut self, event: AgentEvent, allows: &impl Fn(&AgentCall) -> bool) {
        match event {
            AgentEvent::Text { text } => self.text.push_str(&text),
            AgentEvent::Thought { text } => self.thoughts.push_str(&text),
            AgentEvent::Call(call) => self.calls.push(*call),
            AgentEvent::Notice { text } => self.notices.push(text),
            AgentEvent::Ended { reason, tokens } => self.end = Some(format!("{reason:?} {tokens:?}")),
            AgentEvent::Plan { entries } => self.rest.push(format!("{entries:?}")),
            AgentEvent::Usage(usage) => self.rest.push(format!("{usage:?}")),
            AgentEvent::Request(AgentRequest::Permission { call, reply }) => {
                let _ = reply.send(allows(&call));
            }
            AgentEvent::Request(AgentRequest::ReadFile { path, reply, .. }) => {
                let _ = reply.send(Ok(std::fs::read_to_string(path).ok()));
            }
            AgentEvent::Request(AgentRequest::Tool(call)) => {
                let _ = call.reply.send(Ok(format!("{} of {}", call.name, call.server)));
            }
            AgentEvent::Request(AgentRequest::WriteFile { path, content, reply }) => {
                let _ = reply.send(std::fs::write(path, content).map_err(|error| error.to_string()));
            }
            AgentEvent::Request(AgentRequest::Command(command)) => {
                (command.output.0)(&format!("output of {}", command.line));
                let _ = command.reply.send(Ok(CommandEnd { exit_code: Some(4) }));
            }
        }
    }
}

async fn is_gone(process: u32) {
    let end = Instant::now() + DEADLINE;
    while Path::new(&format!("/proc/{process}")).exists() {
        assert!(Instant::now() < end, "{process} is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_prompt_brings_thoughts_text_calls_plans_and_usage() {
    let bench = Bench::new();
    bench.open().await;
    assert_eq!(*bench.models.lock().unwrap(), ["first", "second"]);
    let turn = bench.prompt("hello").await;
    assert_eq!((turn.thoughts.as_str(), turn.text.as_str()), ("I greet", "Hello there"));
    assert!(turn.end.unwrap().contains("Done Some(Tokens { input: 10"), "the end with what it used");
    let planned = bench.prompt("plan").await.rest.join("\n");
    assert!(
        planned.contains("look") && planned.contains("used: 1200") && planned.contains("0.25"),
        "{planned}"
    );
    let ran = bench.prompt("run echo hi").await;
    assert_eq!(ran.text, "ran: hi\n");
    assert_eq!(ran.calls.len(), 3, "{:?}", ran.calls);
    assert_eq!(bench.prompt("refuse").await.end.unwrap().split(' ').next(), Some("Refused"));
    assert_eq!(bench.starts().len(), 1, "one process serves all prompts of a chat");
}

#[tokio::test]
async fn requests_of_the_agent_are_passed_on_and_answered() {
    let bench = Bench::new();
    bench.open().await;
    let file = bench.folder.path().join("a.txt");
    let path = file.display();
    let edited = bench.prompt(&format!("edit {path} new")).await;
    assert_eq!((edited.text.as_str(), edited.calls[0].changes.len()), ("edited", 1));
    assert_eq!(bench.prompt_with(&format!("edit {path} other"), |_| false).await.text, "refused");
    assert_eq!(bench.prompt(&format!("read {path}")).await.text, "new");
    assert_eq!(bench.prompt(&format!("write {path} third")).await.text, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "third");
    assert!(bench.prompt("read relative").await.text.contains("not absolute"));
    let missing = bench.prompt(&format!("read {path}.missing")).await.text;
    assert!(missing.contains("Resource not found"), "agents look for these words: {missing}");
    let terminal = bench.prompt("terminal make all").await;
    assert_eq!(terminal.text, "exit 4: output of make all");
    let shown = terminal.calls.last().unwrap().output.clone();
    assert_eq!(shown, Some(vec![Part::text("output of make all")]), "a call shows its terminal");
}

#[tokio::test]
async fn a_model_is_chosen_and_an_unknown_one_is_named() {
    let bench = Bench::new();
    let second = bench.agent.with_model("second");
    let opened = second.open(bench.opening(None)).await.unwrap();
    assert_eq!((opened.title.as_str(), opened.is_known, opened.is_started), ("Test Double 1.0", false, true));
    assert_eq!(bench.prompt("model").await.text, "model second, mode ask, effort low");
    let failure =
        bench.agent.with_model("third").open(bench.opening(Some(&opened.session))).await.unwrap_err();
    assert_eq!(failure.message, "The agent has no model third. It has: first, second.");
}

#[tokio::test]
async fn what_the_agent_offers_is_known_before_the_first_prompt_and_can_be_chosen() {
    let bench = Bench::with(&[("AGENT_OFFERS", "1")], Limits::default());
    let agent = bench.agent.with_model("default");
    assert_eq!(agent.offers(&bench.chat), None);
    let opened = agent.open(bench.opening(None)).await.unwrap();
    let end = Instant::now() + DEADLINE;
    while agent.offers(&bench.chat).unwrap().slash_commands.len() != 2 {
        assert!(Instant::now() < end, "commands come by themselves");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let offers = agent.offers(&bench.chat).unwrap();
    assert_eq!(offers.modes["currentModeId"], "ask");
    assert_eq!(offers.options[0]["id"], "effort");
    for choice in [
        AgentChoice::Mode { id: "code".to_owned() },
        AgentChoice::Model { id: "second".to_owned() },
        AgentChoice::Option { id: "effort".to_owned(), value: "high".into() },
    ] {
        agent.choose(&bench.chat, choice).await.unwrap();
    }
    let offers = agent.offers(&bench.chat).unwrap();
    assert_eq!(
        (&offers.modes["currentModeId"], &offers.models["currentModelId"]),
        (&"code".into(), &"second".into())
    );
    assert_eq!(offers.options[0]["currentValue"], "high");
    // The prompt goes to the session that was opened for the choices.
    let again = agent.open(bench.opening(None)).await.unwrap();
    assert_eq!((again.session, again.is_known), (opened.session, false));
    assert_eq!(bench.prompt("model").await.text, "model second, mode code, effort high");
}

#[tokio::test]
async fn a_session_is_loaded_after_the_process_was_killed() {
    let variables = [("AGENT_FALSE_RESUME", "1"), ("AGENT_LATE_REPLAY", "1")];
    let bench = Bench::with(&variables, Limits::default());
    let session = bench.open().await;
    bench.prompt("remember this").await;
    let dead = bench.prompt("die").await;
    assert_eq!(dead.text, "last words");
    let failure = dead.failure.unwrap();
    assert!(failure.message.contains("ended in the middle"), "{failure}");
    assert!(
        failure.message.contains("code 3") && failure.message.contains("the agent is broken"),
        "{failure}"
    );
    let opened = bench.agent.with_model("default").open(bench.opening(Some(&session))).await.unwrap();
    assert_eq!((opened.session.as_str(), opened.is_known, opened.is_started), (session.as_str(), true, true));
    let recalled = bench.prompt("recall").await;
    assert_eq!(recalled.text, "earlier: remember this | die", "what it replayed is not shown again");
}

#[tokio::test]
async fn an_agent_that_cannot_load_gets_a_new_session() {
    let bench = Bench::with(&[("AGENT_NO_LOAD", "1")], Limits::default());
    let opened = bench.agent.with_model("default").open(bench.opening(Some("s-old"))).await.unwrap();
    assert!(!opened.is_known && opened.session != "s-old");
    let bench = Bench::new();
    let opened = bench.agent.with_model("default").open(bench.opening(Some("s-unknown"))).await.unwrap();
    assert!(!opened.is_known, "a session that the agent has lost");
}

#[tokio::test]
async fn a_login_that_is_needed_is_named_and_done_where_nobody_is_needed() {
    let variables = [("AGENT_AUTH", "1")];
    let bench = Bench::with(&variables, Limits::default());
    let failure = bench.agent.with_model("default").open(bench.opening(None)).await.unwrap_err();
    assert_eq!(failure.kind, domain::FailureKind::Auth);
    assert!(failure.hint.unwrap().contains("dragoman acp-agents login double"));
    let silent = Agent::new(AgentOptions {
        name: "double".to_owned(),
        launcher: Arc::new(Program { state: bench.folder.path().to_owned(), variables: variables.to_vec() }),
        auth_methods: vec!["unknown".to_owned(), "token".to_owned()],
        on_models: None,
        reads_files: true,
        on_offers: None,
        bridge: None,
        limits: Limits::default(),
    });
    assert!(silent.with_model("default").open(bench.opening(None)).await.is_ok());
}

#[tokio::test]
async fn an_agent_of_another_version_or_that_never_starts_is_explained() {
    let bench = Bench::with(&[("AGENT_VERSION", "2")], Limits::default());
    let failure = bench.agent.with_model("default").open(bench.opening(None)).await.unwrap_err();
    assert!(failure.message.contains("speaks version 2"), "{failure}");
    let limits = Limits { opening: Duration::from_millis(300), ..Limits::default() };
    let silent = acp_client::probe("cat", Spawn::new("sleep").arg("60"), None, &limits).await.unwrap_err();
    assert!(silent.message.contains("did not answer in time"), "{silent}");
    let missing =
        acp_client::probe("nothing", Spawn::new("no-such-agent-here"), None, &limits).await.unwrap_err();
    assert!(missing.message.contains("could not be started"), "{missing}");
    let broken = Spawn::new("sh").args(["-c", "echo cannot work >&2; exit 7"]);
    let broken = acp_client::probe("broken", broken, None, &limits).await.unwrap_err();
    assert!(broken.message.contains("code 7") && broken.message.contains("cannot work"), "{broken}");
}

#[tokio::test]
async fn a_stop_reaches_the_agent_and_a_stubborn_one_is_ended() {
    let limits = Limits { stop: Duration::from_millis(300), ..Limits::default() };
    let bench = Bench::with(&[], limits);
    bench.open().await;
    for (text, is_ended) in [("sleep", false), ("stubborn", true)] {
        let agent = bench.agent.with_model("default");
        let mut events = agent.prompt(&bench.chat, vec![Part::text(text)]);
        assert!(matches!(events.next().await, Some(Ok(AgentEvent::Text { .. }))));
        drop(events);
        tokio::time::timeout(DEADLINE, agent.wait_until_idle(&bench.chat)).await.unwrap();
        if is_ended {
            is_gone(bench.starts()[0]).await;
        } else {
            assert_eq!(bench.prompt("hello").await.text, "Hello there");
        }
    }
}

#[tokio::test]
async fn a_flood_is_ended_with_a_sentence_and_bounded_memory() {
    let limits = Limits { text: 3 << 20, calls: 50, ..Limits::default() };
    for (text, words) in [("flood", "more text than"), ("calls", "more tool calls than")] {
        let bench = Bench::with(&[], limits);
        bench.open().await;
        let turn = bench.prompt(text).await;
        let failure = turn.failure.unwrap();
        assert!(failure.message.contains(words), "{failure}");
        assert!(turn.text.len() <= 3 << 20 && turn.calls.len() <= 500);
        is_gone(bench.starts()[0]).await;
    }
}

#[tokio::test]
async fn an_agent_that_never_answers_is_ended() {
    let bench = Bench::with(&[], Limits { silence: Duration::from_millis(400), ..Limits::default() });
    bench.open().await;
    let failure = bench.prompt("silent").await.failure.unwrap();
    assert!(failure.message.contains("said nothing for"), "{failure}");
    is_gone(bench.starts()[0]).await;
}

#[tokio::test]
async fn an_agent_that_waits_for_a_person_may_be_silent() {
    let bench = Bench::with(&[], Limits { silence: Duration::from_millis(300), ..Limits::default() });
    bench.open().await;
    let agent = bench.agent.with_model("default");
    let mut events = agent.prompt(&bench.chat, vec![Part::text("ask-run echo late")]);
    let mut text = String::new();
    while let Some(event) = tokio::time::timeout(DEADLINE, events.next()).await.unwrap() {
        match event.unwrap() {
            AgentEvent::Request(AgentRequest::Permission { reply, .. }) => {
                tokio::time::sleep(Duration::from_millis(1_000)).await;
                let _ = reply.send(true);
            }
            AgentEvent::Text { text: more } => text.push_str(&more),
            AgentEvent::Thought { .. }
            | AgentEvent::Call(_)
            | AgentEvent::Plan { .. }
            | AgentEvent::Usage(_)
            | AgentEvent::Notice { .. }
            | AgentEvent::Request(_)
            | AgentEvent::Ended { .. } => {}
        }
    }
    assert_eq!(text, "ran: late\n");
}

#[tokio::test]
async fn updates_and_requests_of_another_session_are_left_out() {
    let bench = Bench::new();
    bench.open().await;
    let turn = bench.prompt("other").await;
    assert_eq!(turn.text, "answered with an error");
    assert_eq!(turn.notices, ["double sent updates of another session; they are left out."]);
}

#[tokio::test]
async fn junk_and_messages_that_are_too_large_do_not_end_a_prompt() {
    let bench = Bench::with(&[], Limits { message: 8 << 20, ..Limits::default() });
    bench.open().await;
    assert_eq!(bench.prompt("junk").await.text, "after the junk");
    assert_eq!(bench.prompt("huge").await.text, "after the huge message");
}

#[tokio::test]
async fn nobody_reads_so_the_agent_waits_and_ends_with_its_owner() {
    let bench = Bench::new();
    bench.open().await;
    let agent = bench.agent.with_model("default");
    let mut events = agent.prompt(&bench.chat, vec![Part::text("flood")]);
    assert!(events.next().await.is_some());
    tokio::time::sleep(Duration::from_millis(300)).await;
    let process = bench.starts()[0];
    // Some megabytes are in pipes and queues; an unread flood of a third of a second would be hundreds.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim();
    let kibibytes: u64 = resident.trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kibibytes < 300 << 10, "{resident}");
    drop((events, agent, bench.agent));
    is_gone(process).await;
}
