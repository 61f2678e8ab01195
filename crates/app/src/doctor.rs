//! What is configured, reachable and missing, and how to fix each: for `dragoman doctor` and for `/doctor` in a chat.
//!
//! Invariants: no secret is printed; every look outside has a deadline.

use std::sync::Arc;
use std::time::Duration;

use config::{Environment, ProviderSettings, Resolved, masked_address};
use domain::Failure;
use domain::model::Models;
use domain::store::ListFilter;
use domain::tool::{ServerStatus, ToolSource};
use futures_util::future::join_all;
use llm::vendors::vendor;
use process::sandbox::Support;
use serde_json::{Value, json};

use crate::commands::mcp::status::{self, TriedServer};
use crate::sandboxing;
use crate::servers::ConfiguredServers;
use crate::settings_review;

/// How long a server may take to say anything at all.
const CHECK_TIMEOUT: Duration = Duration::from_secs(4);

/// How long an MCP server may take to start: longer, because package managers fetch programs first.
const SERVER_TIMEOUT: Duration = Duration::from_secs(15);

/// What is looked at.
pub(crate) struct DoctorContext<'a> {
    pub environment: &'a Environment,
    pub resolved: &'a Resolved,
    pub models: &'a dyn Models,
    /// Providers whose key `dragoman login` keeps.
    pub stored_keys: Vec<String>,
    /// Providers that cannot be used, each with the reason.
    pub problems: Vec<String>,
    /// An agent that could answer where no provider is configured.
    pub agent: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CheckState {
    Good,
    /// Worth knowing.
    Note,
    /// Not there; something can be done about it.
    Missing,
    /// There, and it does not work.
    Broken,
}

pub(crate) struct Check {
    pub name: String,
    pub state: CheckState,
    pub text: String,
    pub fix: Option<String>,
}

#[derive(Default)]
pub(crate) struct Report {
    pub checks: Vec<Check>,
}

impl Report {
    pub(crate) fn add(
        &mut self,
        name: &str,
        state: CheckState,
        text: impl Into<String>,
        fix: Option<String>,
    ) {
        self.checks.push(Check { name: name.to_owned(), state, text: text.into(), fix });
    }

    /// Markdown: read as it is in a terminal, drawn in an editor.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("Dragoman {}", env!("CARGO_PKG_VERSION")), String::new()];
        for check in &self.checks {
            let fix = check.fix.as_ref().map(|fix| format!(" {fix}")).unwrap_or_default();
            lines.push(format!("- [{}] {}: {}{fix}", check.state.word(), check.name, check.text));
        }
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({"name": check.name, "state": check.state.word(), "text": check.text, "fix": check.fix})
            })
            .collect();
        json!({"version": env!("CARGO_PKG_VERSION"), "checks": checks})
    }
}

impl CheckState {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }
}

/// Everything but whether the default model answers, which costs a call.
pub(crate) async fn examine(context: &DoctorContext<'_>) -> Report {
    let mut report = Report::default();
    default_model(context, &mut report);
    if let Some(text) = &context.agent {
        report.add("agents", CheckState::Note, text.clone(), None);
    }
    providers(context, &mut report).await;
    servers(context, &mut report).await;
    settings(context, &mut report);
    data(context, &mut report).await;
    sandbox(context, &mut report).await;
    report
}

async fn sandbox(context: &DoctorContext<'_>, report: &mut Report) {
    let roots = crate::working_folder::current_folder();
    let sandbox =
        sandboxing::workspace_sandbox(context.environment, context.resolved, &roots, &mut Vec::new());
    let Some(sandbox) = sandbox else {
        let fix =
            "Remove \"sandbox\": \"off\" from your configuration: see `dragoman docs sandbox`.".to_owned();
        report.add(
            "sandbox",
            CheckState::Missing,
            "The sandbox is off: approved commands run with your rights.",
            Some(fix),
        );
        return;
    };
    let support = process::sandbox_support(&sandbox.sandbox).await;
    let (state, fix) = match support {
        Support::Namespaces => (CheckState::Good, "Try it: `dragoman doctor sandbox`."),
        Support::Landlock { .. } => {
            (CheckState::Note, "Allow user namespaces for a whole sandbox: `dragoman docs sandbox`.")
        }
        Support::Failed { .. } => (CheckState::Missing, "Look at the reason, then try again."),
        Support::Unavailable { .. } => (
            CheckState::Missing,
            "Approve only what you would type yourself, or run Dragoman in a container.",
        ),
    };
    report.add("sandbox", state, support.sentence(), Some(fix.to_owned()));
}

fn default_model(context: &DoctorContext<'_>, report: &mut Report) {
    match context.models.default_model() {
        Some(model) if model == crate::models::SMALL_MODEL => report.add(
            "default model",
            CheckState::Note,
            format!("{model}, because there is no other: it cannot use tools, edit files or calculate, and gets facts wrong."),
            Some(
                "For real work start Ollama or LM Studio with a model, run `dragoman models pull`, or run \
                 `dragoman login anthropic`."
                    .to_owned(),
            ),
        ),
        Some(model) => report.add("default model", CheckState::Good, model, None),
        None => report.add(
            "default model",
            CheckState::Missing,
            "There is none.",
            Some(crate::models::NO_MODEL_HINT.to_owned()),
        ),
    }
}

async fn providers(context: &DoctorContext<'_>, report: &mut Report) {
    let settings = &context.resolved.settings.providers;
    let keys = providers::keys(context.resolved, &context.stored_keys);
    // One that needs no key and that nobody named is not the user's business.
    let used = keys
        .iter()
        .filter(|(name, key)| settings.contains_key(name) || !matches!(*key, "missing" | "none needed"));
    let looks = used.map(|(name, key)| provider_check(context, name, key));
    report.checks.extend(join_all(looks).await);
    for problem in &context.problems {
        report.add("providers", CheckState::Broken, problem.clone(), None);
    }
    let without = keys.iter().filter(|(name, key)| *key == "missing" && !settings.contains_key(name));
    let names: Vec<&str> = without.map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        let fix = format!("Each needs its key: `dragoman login {}`, for instance.", names[0]);
        report.add(
            "other providers",
            CheckState::Note,
            format!("Not configured: {}.", names.join(", ")),
            Some(fix),
        );
    }
}

async fn provider_check(context: &DoctorContext<'_>, name: &str, key: &str) -> Check {
    let row = vendor(name);
    let check = |state, text: String, fix: Option<String>| Check { name: name.to_owned(), state, text, fix };
    if key == "missing" {
        let variable = row.and_then(|row| row.keys.first().copied()).unwrap_or("its key");
        let fix = format!("Run `dragoman login {name}`, or set {variable} or `providers.{name}.key`.");
        return check(CheckState::Missing, "It has no key.".to_owned(), Some(fix));
    }
    let provider = context.resolved.settings.providers.get(name);
    if let Some(Err(failure)) = look_up_key(provider).await {
        return check(CheckState::Broken, failure.message, failure.hint);
    }
    let url = match provider.and_then(|provider| provider.url.as_ref()) {
        Some(url) => url.get().await.map(str::to_owned),
        None => Ok(row.map(|row| row.url.to_owned()).unwrap_or_default()),
    };
    match url {
        Err(failure) => check(CheckState::Broken, failure.message, failure.hint),
        Ok(url) if url.is_empty() => {
            let fix = format!("Set `providers.{name}.url` in the configuration.");
            check(CheckState::Missing, "It has no address.".to_owned(), Some(fix))
        }
        Ok(url) => match reach(context.resolved, &url).await {
            Ok(()) => {
                check(CheckState::Good, format!("{} can be reached; key: {key}.", masked_address(&url)), None)
            }
            Err(problem) => {
                let fix = "Start its server, or check the address, the network and the proxy.".to_owned();
                check(
                    CheckState::Broken,
                    format!("{} cannot be reached: {problem}.", masked_address(&url)),
                    Some(fix),
                )
            }
        },
    }
}

/// A key that a command or a file tells is looked up; `None` where there is none to look up.
async fn look_up_key(provider: Option<&ProviderSettings>) -> Option<Result<(), Failure>> {
    let source = provider?.key.as_ref()?;
    Some(
        tokio::time::timeout(CHECK_TIMEOUT, source.get())
            .await
            .map_or_else(|_| Err(Failure::config("Getting its key took too long.")), |key| key.map(drop)),
    )
}

/// Any answer will do: keys are not looked at here.
async fn reach(resolved: &Resolved, url: &str) -> Result<(), String> {
    let asked = async {
        let network = providers::network::of(resolved).map_err(|failure| failure.message)?;
        let client = network.client(url).await.map_err(|failure| failure.message)?;
        client.head(url).send().await.map(drop).map_err(|error| cause(&error))
    };
    tokio::time::timeout(CHECK_TIMEOUT, asked)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} seconds", CHECK_TIMEOUT.as_secs())))
}

/// The innermost reason, which is the one a person can do something about.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Starts every server, all at once, and reports what it saw.
async fn servers(context: &DoctorContext<'_>, report: &mut Report) {
    if context.resolved.settings.mcp_servers.is_empty() {
        return;
    }
    let environment = Arc::new(context.environment.clone());
    let folders = crate::working_folder::current_folder();
    let servers = ConfiguredServers::for_command(&environment, context.resolved, &folders);
    let tried = status::try_servers(&servers, None, SERVER_TIMEOUT).await;
    servers.shutdown().await;
    for TriedServer { server, revision, took } in tried {
        let name = format!("MCP server {}", server.name);
        let reason = server.error.clone().unwrap_or_default();
        let again = format!("Try it alone: `dragoman mcp test {}`.", server.name);
        match server.status {
            ServerStatus::Running => {
                let (tools, revision) = (server.tools.len(), revision.unwrap_or_default());
                let text =
                    format!("It runs: {tools} tools, revision {revision}, {} ms. {reason}", took.as_millis());
                report.add(&name, CheckState::Good, text.trim_end(), None);
            }
            ServerStatus::Disabled => report.add(&name, CheckState::Note, "It is switched off.", None),
            ServerStatus::RequiresAuth => {
                let fix = reason.is_empty().then(|| format!("Run `dragoman mcp login {}`.", server.name));
                report.add(&name, CheckState::Missing, reason, fix);
            }
            ServerStatus::Starting | ServerStatus::Stopping | ServerStatus::Stopped => {
                let text = format!("It did not answer within {} s.", SERVER_TIMEOUT.as_secs());
                report.add(&name, CheckState::Broken, text, Some(again));
            }
            ServerStatus::Failed => report.add(&name, CheckState::Broken, reason, Some(again)),
        }
    }
}

fn settings(context: &DoctorContext<'_>, report: &mut Report) {
    if let Some(managed) = &context.resolved.managed {
        let text =
            format!("{}: the rules of this machine's administrator are in force.", managed.file.display());
        report.add("managed settings", CheckState::Good, text, None);
    }
    let file = context.environment.config_dir().join("config.json");
    let notices = settings_review::notices(context.resolved, &settings_review::built_in_tools());
    let is_broken = notices.iter().any(|notice| notice.level == domain::Level::Error);
    if !file.is_file() {
        let text = format!("There is no {}; the defaults hold.", file.display());
        report.add("configuration", CheckState::Note, text, None);
    } else if !is_broken {
        report.add("configuration", CheckState::Good, file.display().to_string(), None);
    }
    for notice in notices {
        let state = match notice.level {
            domain::Level::Error => CheckState::Broken,
            domain::Level::Info | domain::Level::Warning => CheckState::Note,
        };
        report.add("configuration", state, notice.text, None);
    }
}

async fn data(context: &DoctorContext<'_>, report: &mut Report) {
    let folder = context.environment.data_dir();
    // The file is opened by its first use.
    let used = match crate::stores::open(context.environment) {
        Ok(journal) => journal.list(ListFilter { limit: Some(1), ..ListFilter::default() }).await,
        Err(failure) => Err(failure),
    };
    let place = match &context.resolved.settings.store {
        Some(_) => "the PostgreSQL database of the setting `store`".to_owned(),
        None => folder.display().to_string(),
    };
    match used {
        Ok(_) => report.add("chats", CheckState::Good, format!("They are kept in {place}."), None),
        Err(failure) => report.add("chats", CheckState::Broken, failure.message, failure.hint),
    }
    let undo::DiskUse { bytes, turns, .. } =
        crate::stores::undo_store(context.environment, context.resolved.settings.undo).disk_use();
    let megabytes = bytes as f64 / 1e6;
    report.add(
        "undo",
        CheckState::Good,
        format!("{turns} turns can be undone; {megabytes:.1} MB on disk."),
        None,
    );
}
