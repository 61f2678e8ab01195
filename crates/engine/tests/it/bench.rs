//! An engine with everything around it under a test's control.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use config::{Environment, HookAction, HookCommand, Inputs, Settings};
use domain::ask::{Answer, Choice};
use domain::command::{Context, ContextQuery, FileContent, FileStat, ServerSpec, WorkspaceSpec};
use domain::event::CatalogKind;
use domain::files::Files;
use domain::link::Engine;
use domain::tool::{
    Exposure, Invocation, Resource, Review, Scope, ServerStatus, Tool, ToolContext, ToolEffect, ToolResult,
    ToolServer, ToolSource, ToolSpec,
};
use domain::tool_call::{Details, FileChange, Location, Origin};
use domain::{AskKind, BoxFuture, CancellationToken, Failure, Part, SessionId};
use engine::{
    CatalogChanges, HookExit, HookRunner, LiveSessions, NamedText, State, Texts, Workspace, WorkspaceSource,
};
use serde_json::{Value, json};
use testkit::{MemoryStore, ScriptedAnswer, ScriptedModels};

use crate::peers::TestPeers;

pub(crate) struct Bench {
    pub store: MemoryStore,
    pub models: ScriptedModels,
    pub workspaces: Arc<TestWorkspaces>,
    pub engine: Engine,
    pub live: LiveSessions,
    pub changes: CatalogChanges,
    pub peers: Option<TestPeers>,
}

/// Unless a test wants titles, the first words of a chat are its title at once.
fn untitled() -> Inputs {
    Inputs { initialization_options: Some(json!({"chat": {"title": false}})), ..Inputs::default() }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_config(json!({}))
    }

    pub(crate) fn with_config(config: Value) -> Self {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::new(home.path(), [("DRAGOMAN_CONFIG", config.to_string())]);
        let settings = Arc::new(config::resolve(&environment, &untitled()).settings);
        Self::start(settings, MemoryStore::default(), None)
    }

    /// A process that lets others attach.
    pub(crate) fn with_peers(peers: TestPeers) -> Self {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::new(home.path(), [] as [(&str, String); 0]);
        let settings = Arc::new(config::resolve(&environment, &untitled()).settings);
        Self::start(settings, MemoryStore::default(), Some(peers))
    }

    /// Another process on the same chats, with models of its own.
    pub(crate) fn other_process(&self) -> Self {
        let settings = self.workspaces.settings.clone();
        let peers = self.peers.as_ref().map(TestPeers::other_process);
        Self::start(settings, self.store.other_process(), peers)
    }

    fn start(settings: Arc<Settings>, store: MemoryStore, peers: Option<TestPeers>) -> Self {
        let models = ScriptedModels::default();
        let workspaces = TestWorkspaces {
            settings,
            models: models.clone(),
            sources: Mutex::default(),
            hooks: Arc::default(),
            changed_settings: Arc::default(),
            more_rules: Arc::default(),
            gate: Mutex::default(),
        };
        let workspaces = Arc::new(workspaces);
        let (changes, receiver) = engine::changes();
        let kept: Arc<dyn domain::Store> = Arc::new(store.clone());
        let (engine, live) = match &peers {
            Some(peers) => engine::start_with_peers(kept, workspaces.clone(), receiver, peers.get()),
            None => engine::start_observed(kept, workspaces.clone(), receiver),
        };
        if let Some(peers) = &peers {
            peers.serve(engine.downgrade());
        }
        Self { store, models, workspaces, engine, live, changes, peers }
    }

    /// The process dies without a word.
    pub(crate) fn kill(&self) {
        self.store.kill();
        if let Some(peers) = &self.peers {
            peers.end();
        }
    }

    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = ScriptedAnswer>) {
        for answer in answers {
            self.models.answer(answer);
        }
    }

    /// The state that the journal of a chat says.
    pub(crate) fn stored_state(&self, session: &SessionId) -> State {
        let mut state = State::default();
        for recorded in self.store.facts(session) {
            state.fold(recorded.number, &recorded.fact);
        }
        state
    }

    /// Waits until the live state is on disk and compares it with the fold of the journal.
    pub(crate) async fn check_state(&self, session: &SessionId) -> State {
        for _ in 0..10_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let live = self.live.state(session).expect("the chat is loaded");
            if live.newest() == self.store.facts(session).len() as u64 {
                assert_eq!(live, self.stored_state(session), "the live state is not what the journal says");
                return live;
            }
        }
        panic!("the journal never got as far as the live state");
    }

    pub(crate) fn publish_change(&self) {
        self.changes.publish(CatalogKind::Models);
    }
}

/// Chats that were replayed in this process.
pub(crate) static REPLAYED: AtomicUsize = AtomicUsize::new(0);

/// Every chat of every test replays identically.
impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let store = self.store.clone();
        // A thread of its own: the test's runtime may be the current one, and its clock stands still.
        let replays = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let replay = async {
                for session in store.sessions() {
                    let facts = store.facts(&session);
                    let replayed = replay::replay(&session, &facts).await;
                    REPLAYED.fetch_add(1, Ordering::Relaxed);
                    if let Some(difference) = replayed.difference {
                        let facts: Vec<String> = facts.iter().map(|fact| format!("{fact:?}")).collect();
                        return Err(format!("{session} differs: {difference:#?}\n{}", facts.join("\n")));
                    }
                }
                Ok(())
            };
            runtime.block_on(replay)
        });
        if let Err(difference) = replays.join().expect("the replay does not panic") {
            panic!("{difference}");
        }
    }
}

pub(crate) struct TestWorkspaces {
    settings: Arc<Settings>,
    models: ScriptedModels,
    sources: Mutex<Vec<(Vec<PathBuf>, Arc<TestTools>)>>,
    hooks: Arc<TestHooks>,
    /// What the user is told about changed settings.
    pub changed_settings: Arc<Mutex<Option<String>>>,
    /// Rules beside the usual one.
    pub more_rules: Arc<Mutex<Vec<NamedText>>>,
    /// The next workspace is not resolved before this says so.
    pub gate: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
}

/// A test that lets no gate open has failed by then.
const GATE_TIMEOUT: Duration = Duration::from_secs(5);

/// Hooks whose line is what they answer: a JSON object, `exit N text`, or `hang`.
#[derive(Default)]
pub(crate) struct TestHooks {
    /// What each was given, in order.
    pub inputs: Mutex<Vec<Value>>,
}

impl HookRunner for TestHooks {
    fn run<'a>(
        &'a self,
        action: &'a HookAction,
        _folder: Option<&'a Path>,
        input: String,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HookExit> {
        self.inputs.lock().unwrap().push(serde_json::from_str(&input).unwrap());
        Box::pin(async move {
            let HookCommand::Line(line) = &action.command else { panic!("the tests have lines") };
            let exit = |status, stdout: &str, stderr: &str| HookExit {
                status,
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                stopped: None,
            };
            let stopped = exit(None, "", "it did not end by itself");
            match line.strip_prefix("exit ").and_then(|rest| rest.split_once(' ')) {
                Some((code, text)) => exit(code.parse().ok(), "", text),
                None if line == "hang" => tokio::select! {
                    () = cancel.cancelled() => stopped,
                    () = tokio::time::sleep(action.timeout) => stopped,
                },
                None => exit(Some(0), line, ""),
            }
        })
    }
}

impl TestWorkspaces {
    /// What hooks of an event were given.
    pub(crate) fn hook_inputs(&self, event: &str) -> Vec<Value> {
        let inputs = self.hooks.inputs.lock().unwrap();
        inputs.iter().filter(|input| input["hook_type"] == event).cloned().collect()
    }

    /// The folders of each workspace that was resolved, in order.
    pub(crate) fn resolved(&self) -> Vec<Vec<PathBuf>> {
        self.sources.lock().unwrap().iter().map(|(roots, _)| roots.clone()).collect()
    }

    /// Whether the servers of each workspace that was resolved have ended, in order.
    pub(crate) fn ended(&self) -> Vec<bool> {
        let sources = self.sources.lock().unwrap();
        sources.iter().map(|(_, tools)| tools.ended.load(Ordering::Relaxed)).collect()
    }
}

impl WorkspaceSource for TestWorkspaces {
    fn workspace(&self, spec: &WorkspaceSpec) -> Arc<Workspace> {
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            gate.recv_timeout(GATE_TIMEOUT)
                .expect("nobody opened the gate: the engine waits for this folder");
        }
        let tools = Arc::new(TestTools::new());
        self.sources.lock().unwrap().push((spec.roots.clone(), tools.clone()));
        Arc::new(Workspace {
            roots: spec.roots.clone(),
            settings: self.settings.clone(),
            models: Arc::new(self.models.clone()),
            sources: vec![tools],
            files: Arc::new(TestFiles),
            notices: Vec::new(),
            is_trusted: true,
            texts: Arc::new(TestTexts {
                changed_settings: self.changed_settings.clone(),
                more_rules: self.more_rules.clone(),
            }),
            accounts: None,
            hooks: Some(self.hooks.clone()),
            undo: None,
            worktrees: None,
        })
    }

    fn session_servers(&self, _servers: &[ServerSpec], roots: &[PathBuf]) -> Vec<Arc<dyn ToolSource>> {
        let tools = Arc::new(TestTools { tools: Vec::new(), ended: AtomicBool::new(false) });
        self.sources.lock().unwrap().push((roots.to_vec(), tools.clone()));
        vec![tools]
    }
}

pub(crate) fn docs_resource(uri: &str) -> Resource {
    let (server, uri) = ("docs".to_owned(), uri.to_owned());
    Resource { server, uri, name: String::new(), description: String::new(), mime: String::new() }
}

pub(crate) struct TestTools {
    tools: Vec<Arc<dyn Tool>>,
    ended: AtomicBool,
}

impl TestTools {
    fn new() -> Self {
        let tools = TOOLS.iter().map(|(name, effect)| test_tool(name, *effect)).collect();
        Self { tools, ended: AtomicBool::new(false) }
    }
}

impl ToolSource for TestTools {
    /// One without tools; it gives whatever resource is asked for.
    fn servers(&self) -> Vec<ToolServer> {
        vec![ToolServer {
            name: "docs".to_owned(),
            origin: Origin::Mcp,
            status: ServerStatus::Running,
            command: String::new(),
            args: Vec::new(),
            url: None,
            error: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            has_login: false,
        }]
    }

    fn resources(&self) -> Vec<Resource> {
        vec![docs_resource("note://listed")]
    }

    fn resource<'a>(&'a self, _server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move { Ok(vec![Part::text(format!("the text of {uri}"))]) })
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.ended.store(true, Ordering::Relaxed);
        Box::pin(async {})
    }
}

/// The tools of every workspace, named after what they do.
const TOOLS: [(&str, ToolEffect); 11] = [
    ("read", ToolEffect::Reads),
    ("write", ToolEffect::WritesFiles),
    ("run", ToolEffect::RunsCommands),
    ("preview", ToolEffect::Previews),
    ("wait", ToolEffect::Reads),
    ("stubborn", ToolEffect::Reads),
    ("ask", ToolEffect::Reads),
    ("panic_in_review", ToolEffect::Reads),
    ("panic_in_run", ToolEffect::Reads),
    ("compact", ToolEffect::Reads),
    ("shell_command", ToolEffect::RunsCommands),
];

fn test_tool(name: &'static str, effect: ToolEffect) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: name.to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        description: format!("Does {name}."),
        input_schema: json!({"type": "object"}),
        effect,
    };
    Arc::new(TestTool { spec })
}

struct TestTool {
    spec: ToolSpec,
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        assert_ne!(self.spec.name, "panic_in_review", "the test says so");
        if input.get("invalid").is_some() {
            return Err("The input is invalid.".into());
        }
        let text = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
        let change = (self.spec.name == "write").then(|| {
            Details::FileChange(FileChange {
                path: input["path"].as_str().unwrap_or("file").into(),
                diff: text("text"),
                lines_added: 1,
                lines_removed: 0,
                old_text: None,
                new_text: None,
            })
        });
        Ok(Review {
            summary: format!("{} {input}", self.spec.name),
            details: change,
            keys: if self.spec.name == "run" { vec![text("command")] } else { Vec::new() },
            harmless: self.spec.effect.is_read_only(),
            changes: !self.spec.effect.is_read_only(),
            outside: input.get("outside").map(|_| text("outside").into()).into_iter().collect(),
            secrets: input.get("secret").map(|_| text("secret")).into_iter().collect(),
            run_later: input.get("runLater").map(|_| text("runLater")).into_iter().collect(),
            locations: input.get("at").map(|_| location(&text("at"))).into_iter().collect(),
            keeps_run_later: input.get("protected").is_some(),
            exposure: (self.spec.name == "shell_command").then_some(Exposure::Local),
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let text = call.input["text"].as_str().unwrap_or("done").to_owned();
            for _ in 0..call.input["repeat"].as_u64().unwrap_or(1) {
                for piece in call.input["live"].as_array().into_iter().flatten() {
                    call.context.output(piece.as_str().unwrap());
                }
            }
            match self.spec.name.as_str() {
                "wait" => {
                    call.context.output("waiting");
                    call.cancel.cancelled().await;
                    ToolResult::text("stopped")
                }
                "stubborn" => std::future::pending().await,
                "panic_in_run" => panic!("the test says so"),
                "ask" => {
                    let options = vec![Choice { label: "yes".into(), description: None }];
                    let kind = AskKind::Question { text, options, freeform: true, url: None };
                    match call.context.ask(kind).await {
                        Answer::Text { text } => ToolResult::text(text),
                        other => ToolResult::error(format!("{other:?}")),
                    }
                }
                "shell_command" => {
                    match call.input["command"].as_str().and_then(|it| it.strip_prefix("make ")) {
                        Some(file) if !Path::new(file).exists() => ToolResult::error("[exit code 2]"),
                        _ => ToolResult::text("all tests passed"),
                    }
                }
                "compact" => ToolResult { compact: Some(text), ..ToolResult::text("compacted") },
                _ if call.input.get("protected").is_some() => {
                    ToolResult::text(if call.keeps_run_later { "protected" } else { "free" })
                }
                _ => ToolResult {
                    locations: call.input["found"].as_str().map(location).into_iter().collect(),
                    ..ToolResult::text(text)
                },
            }
        })
    }
}

fn location(path: &str) -> Location {
    Location { path: path.into(), line: None }
}

/// Files whose content is their path; pictures are images.
struct TestFiles;

impl Files for TestFiles {
    fn query<'a>(
        &'a self,
        _roots: &'a [PathBuf],
        _text: &'a str,
        _kind: ContextQuery,
    ) -> BoxFuture<'a, Vec<Context>> {
        Box::pin(async { Vec::new() })
    }

    fn expand<'a>(
        &'a self,
        context: &'a Context,
        _scope: &'a Scope,
        _tool_context: Arc<dyn ToolContext>,
    ) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        Box::pin(async move {
            match context {
                Context::File { path, .. } if path == Path::new("slow") => std::future::pending().await,
                Context::File { path, .. } => Ok(vec![Part::text(format!("content of {}", path.display()))]),
                Context::Image { mime, data } => {
                    Ok(vec![Part::Image { mime: mime.clone(), data: data.clone() }])
                }
                _ => Err(Failure::user("not there")),
            }
        })
    }

    fn repo_map<'a>(&'a self, _roots: &'a [PathBuf]) -> BoxFuture<'a, String> {
        Box::pin(async { "tree".to_owned() })
    }

    fn read<'a>(
        &'a self,
        _roots: &'a [PathBuf],
        path: PathBuf,
    ) -> BoxFuture<'a, Result<FileContent, Failure>> {
        Box::pin(async move { Ok(FileContent { bytes: path.display().to_string().into(), version: 1 }) })
    }

    fn stat<'a>(&'a self, _roots: &'a [PathBuf], _path: PathBuf) -> BoxFuture<'a, Result<FileStat, Failure>> {
        Box::pin(async { Ok(FileStat { exists: true, directory: false }) })
    }

    fn glob<'a>(
        &'a self,
        _roots: &'a [PathBuf],
        pattern: String,
    ) -> BoxFuture<'a, Result<Vec<PathBuf>, Failure>> {
        Box::pin(async move { Ok(vec![pattern.into()]) })
    }
}

/// A doctor that never comes to an end.
struct TestTexts {
    changed_settings: Arc<Mutex<Option<String>>>,
    more_rules: Arc<Mutex<Vec<NamedText>>>,
}

impl Texts for TestTexts {
    fn changed_settings(&self) -> Option<String> {
        self.changed_settings.lock().unwrap().clone()
    }

    fn rules(&self) -> Vec<NamedText> {
        let tidy = NamedText { name: "tidy".into(), text: "Be tidy.".into(), ..NamedText::default() };
        std::iter::once(tidy).chain(self.more_rules.lock().unwrap().clone()).collect()
    }

    fn commands(&self) -> Vec<NamedText> {
        let text = "Say hello to $ARG1 ($ARGS).".to_owned();
        vec![NamedText { name: "greet".into(), text, ..NamedText::default() }]
    }

    fn global_agents_file(&self) -> Option<PathBuf> {
        None
    }

    fn config(&self) -> String {
        "the settings".into()
    }

    fn doctor(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn login<'a>(&'a self, provider: Option<&'a str>) -> BoxFuture<'a, String> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            format!("sign in to {}", provider.unwrap_or("something"))
        })
    }
}
