//! A workspace in a temporary folder, the built-in tools over it, and a client that answers as the test says.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::host::Diagnostic;
use domain::tool::{Invocation, Scope, ToolContext, ToolResult, ToolSource};
use domain::{
    Abilities, Answer, AskKind, BoxFuture, CancellationToken, Failure, HostCall, HostReply, ItemId, Part,
    Review, SessionId, Tool,
};
use serde_json::Value;
use tools::{BuiltInTools, Options};

pub(crate) struct Bench {
    pub folder: tempfile::TempDir,
    pub root: PathBuf,
    pub source: BuiltInTools,
    pub port: Arc<Client>,
    pub scope: Scope,
    pub outside_allowed: bool,
    pub cancel: CancellationToken,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let scope = Scope {
            session: SessionId::new("test"),
            roots: vec![root.clone()].into(),
            read_only: false,
            remembered: Arc::new([]),
            forbidden_paths: std::sync::Arc::from([]),
            tainted: false,
            secret_read: false,
        };
        let (source, port) = (BuiltInTools::new(options), Arc::default());
        Self { folder, root, source, port, scope, outside_allowed: false, cancel: CancellationToken::new() }
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.root.join(path)).unwrap()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.source.tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
    }

    pub(crate) fn review(&self, name: &str, input: Value) -> Result<Review, String> {
        self.tool(name).review(&input, &self.scope)
    }

    /// Runs without a review before it.
    pub(crate) async fn run(&self, name: &str, input: Value) -> ToolResult {
        let call = Invocation {
            item: ItemId(1),
            input,
            scope: self.scope.clone(),
            outside_allowed: self.outside_allowed,
            contained: false,
            keeps_run_later: false,
            run_later: Vec::new(),
            cancel: self.cancel.clone(),
            context: self.port.clone(),
        };
        self.tool(name).run(call).await
    }

    /// The text of a run that must succeed.
    pub(crate) async fn good(&self, name: &str, input: Value) -> String {
        let result = self.run(name, input).await;
        let text = text(&result);
        assert!(!result.error, "{name}: {text}");
        text
    }

    /// The text of a run that must fail.
    pub(crate) async fn bad(&self, name: &str, input: Value) -> String {
        let result = self.run(name, input).await;
        let text = text(&result);
        assert!(result.error, "{name}: {text}");
        text
    }
}

pub(crate) fn text(result: &ToolResult) -> String {
    let texts = result.parts.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
        Part::Image { mime, .. } => mime.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

type Formatter = fn(String) -> String;
type Finder = fn(&Path) -> Vec<Diagnostic>;

/// A front-end as data.
#[derive(Default)]
pub(crate) struct Client {
    pub abilities: Mutex<Abilities>,
    pub buffers: Mutex<HashMap<PathBuf, String>>,
    /// What the client makes of a text it writes.
    pub formatter: Mutex<Option<Formatter>>,
    pub diagnostics: Mutex<Option<Result<HostReply, Failure>>>,
    /// What it finds in a file, as a language server does.
    pub finds: Mutex<Option<Finder>>,
    /// It never answers about diagnostics.
    pub stalls: std::sync::atomic::AtomicBool,
    /// What it answers to anything else, last first.
    pub replies: Mutex<Vec<HostReply>>,
    /// What it was asked besides texts and diagnostics.
    pub called: Mutex<Vec<HostCall>>,
    pub answers: Mutex<Vec<Answer>>,
    pub asked: Mutex<Vec<AskKind>>,
    pub output: Mutex<String>,
}

impl Client {
    pub(crate) fn can(&self, change: impl FnOnce(&mut Abilities)) {
        change(&mut self.abilities.lock().unwrap());
    }

    pub(crate) fn buffer(&self, path: &Path, text: &str) {
        self.buffers.lock().unwrap().insert(path.to_owned(), text.to_owned());
    }

    fn answer(&self, call: HostCall) -> Result<HostReply, Failure> {
        let mut buffers = self.buffers.lock().unwrap();
        match call {
            HostCall::ReadText { path } => match buffers.get(&path) {
                Some(text) => Ok(HostReply::Text(text.clone())),
                None => std::fs::read_to_string(&path)
                    .map(HostReply::Text)
                    .map_err(|error| Failure::user(error.to_string())),
            },
            HostCall::WriteText { path, text } => {
                let text = match *self.formatter.lock().unwrap() {
                    Some(formatter) => formatter(text),
                    None => text,
                };
                std::fs::write(&path, &text).map_err(|error| Failure::user(error.to_string()))?;
                buffers.insert(path, text);
                Ok(HostReply::Written)
            }
            HostCall::Diagnostics { path: Some(path) } if self.finds.lock().unwrap().is_some() => {
                let find = self.finds.lock().unwrap().unwrap();
                Ok(HostReply::Diagnostics(find(&path)))
            }
            HostCall::Diagnostics { .. } => {
                self.diagnostics.lock().unwrap().clone().unwrap_or(Err(Failure::user("no")))
            }
            other => {
                self.called.lock().unwrap().push(other);
                self.replies.lock().unwrap().pop().ok_or_else(|| Failure::user("not here"))
            }
        }
    }
}

impl ToolContext for Client {
    fn output(&self, text: &str) {
        self.output.lock().unwrap().push_str(text);
    }

    fn abilities(&self) -> Abilities {
        self.abilities.lock().unwrap().clone()
    }

    fn host(&self, call: HostCall, _deadline: Duration) -> BoxFuture<'_, Result<HostReply, Failure>> {
        let is_stalled = matches!(call, HostCall::Diagnostics { .. })
            && self.stalls.load(std::sync::atomic::Ordering::Relaxed);
        let reply = self.answer(call);
        Box::pin(async move { if is_stalled { std::future::pending().await } else { reply } })
    }

    fn ask(&self, kind: AskKind) -> BoxFuture<'_, Answer> {
        self.asked.lock().unwrap().push(kind);
        let answer = self.answers.lock().unwrap().pop().unwrap_or(Answer::Cancelled);
        Box::pin(async move { answer })
    }
}
