//! The resolved settings as types. A field exists only where some crate acts on it; keys without effect are in the
//! schema as `x-unsupported`. This module does not know the defaults of models, prompts and vendors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use domain::Level;
use indexmap::IndexMap;
use serde_json::Value;

use crate::acp_agents::{self, AcpAgent};
use crate::approval::{self, Approval, ApprovalRules};
use crate::aws::AwsSettings;
use crate::behavior::{BehaviorSettings, Prompts};
use crate::budget::Budget;
use crate::chat::ChatSettings;
use crate::cursor::Cursor;
use crate::custom_tools::{self, CustomTool};
use crate::goal::GoalSettings;
use crate::hooks::{self, Hook};
use crate::inline_chat::InlineChatSettings;
use crate::language_servers::{self, LanguageServer};
use crate::legacy_keys::canonical_behavior;
use crate::log_level::LogLevel;
use crate::managed::ManagedRules;
use crate::map::MapSettings;
use crate::mcp::McpServer;
use crate::memory::MemorySettings;
use crate::model_families::{self, FamilyRule};
use crate::network::NetworkSettings;
use crate::provider::ProviderSettings;
use crate::reviewer;
use crate::sandbox::SandboxSettings;
use crate::store::StoreAddress;
use crate::telemetry::TelemetrySettings;
use crate::tree::Node;
use crate::undo::UndoSettings;
use crate::web_search::WebSearchSettings;
use crate::worker::WorkerSettings;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `provider/model`.
    pub default_model: Option<String>,
    /// `agent`, `plan` or one of the user's own; never `code`.
    pub default_behavior: String,
    /// By name, `agent` and `plan` among them.
    pub behaviors: IndexMap<String, BehaviorSettings>,
    pub providers: IndexMap<String, ProviderSettings>,
    /// Models that take over when one fails, in order.
    pub failover: Vec<String>,
    /// In the order of the files; a later one goes before an earlier one.
    pub model_families: Vec<FamilyRule>,
    pub budget: Budget,
    pub aws: AwsSettings,
    pub network: NetworkSettings,
    /// The address of the PostgreSQL database that holds the chats; without it they are in the data folder.
    pub store: Option<StoreAddress>,
    pub sandbox: SandboxSettings,
    pub undo: UndoSettings,
    pub memory: MemorySettings,
    pub worker: WorkerSettings,

    pub tools: ToolSettings,
    /// In the order of their names.
    pub hooks: Vec<Hook>,
    pub mcp_servers: IndexMap<String, McpServer>,
    pub mcp_timeout: Duration,
    /// Agents of other vendors.
    pub acp_agents: Vec<AcpAgent>,
    pub web_search: Option<WebSearchSettings>,
    pub language_servers: Vec<LanguageServer>,
    /// How long a language server may take to answer.
    pub language_server_timeout: Duration,
    /// The https address of a client metadata document that the user hosts.
    pub mcp_client_metadata_url: Option<String>,
    pub mcp_logins: McpLoginPlace,

    /// Files and folders; relative ones start from each workspace folder.
    pub rules: Vec<PathBuf>,
    pub commands: Vec<PathBuf>,
    pub skills: Vec<PathBuf>,
    pub prompts: Prompts,
    /// The models of inline completion, next edits and rewriting, where they have their own.
    pub completion_model: Option<String>,
    pub next_edit_model: Option<String>,
    pub rewrite_model: Option<String>,
    pub chat_inline: InlineChatSettings,
    pub include_parent_agents_files: bool,

    pub chat: ChatSettings,
    pub goal: GoalSettings,
    /// Clients of the Agent Client Protocol may speak version 2.
    pub acp_version_two: bool,

    /// A stream that stays silent for so long is an error.
    pub stream_silence: Duration,
    /// Requests at the same time to one provider.
    pub concurrency: u64,
    pub log_level: LogLevel,
    /// `None`: nothing is exported.
    pub telemetry: Option<TelemetrySettings>,
    /// What the machine's administrator takes away.
    pub managed: ManagedRules,
}

/// Where the logins of MCP servers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpLoginPlace {
    File,
    /// The file is encrypted with a key of the operating system's keyring.
    Keyring,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    pub approval: ApprovalRules,
    /// The model that looks at calls before a person is asked.
    pub reviewer: Option<String>,
    pub disabled: Vec<String>,
    pub read_file_max_lines: u64,
    pub output_max_bytes: u64,
    pub shell: ShellSettings,
    /// How long the editor may take to answer a tool.
    pub editor_timeout: Duration,
    /// Hosts that may be fetched although they are on this machine or in a private network.
    pub fetch_allowed_hosts: Vec<String>,
    /// The percentage of the context window that definitions of servers' tools may take; beyond it they are searched.
    pub search_above_percent: u64,
    /// Tokens of the same definitions; the lower limit holds.
    pub search_above_tokens: u64,
    /// Found tools are loaded by the provider, where it can.
    pub search_by_provider: bool,
    pub custom: Vec<CustomTool>,
    pub map: MapSettings,
    /// Shell lines that format a text from their input, by ending of files.
    pub formatters: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ShellSettings {
    /// The shell in place of bash.
    pub program: Option<String>,
    /// The arguments before the line, for example `-c`.
    pub args: Vec<String>,
}

/// The ceilings of sizes: neither a project nor the user can go above them.
const MAX_READ_LINES: u64 = 100_000;
const MAX_OUTPUT_KIB: u64 = 4096;

impl Settings {
    /// Reads the whole tree.
    pub(crate) fn read(root: &Cursor, mut approval: ApprovalRules) -> Self {
        let hooks;
        (hooks, approval.blocking_hooks) = hooks::read(&root.get("hooks"));
        let seconds = |name| Duration::from_secs(root.get(name).number(1..=86_400).unwrap_or_default());
        let prompts = Prompts::read(&root.get("prompts"));
        let behaviors = behaviors(root, approval.by_default, &prompts);
        Self {
            default_model: root.get("defaultModel").text(),
            default_behavior: default_behavior(&root.get("defaultAgent"), &behaviors),
            behaviors,
            providers: read_entries(&root.get("providers"), |entry| Some(ProviderSettings::read(entry))),
            failover: root.get("failover").texts(),
            model_families: model_families::read(&root.get("modelFamilies")),
            budget: read_budget(&root.get("budget")),
            aws: AwsSettings::read(root.scope().environment, root.scope().redactor),
            network: NetworkSettings::read(root),
            store: StoreAddress::read(&root.get("store")),
            sandbox: SandboxSettings::read(root),
            undo: UndoSettings::read(root),
            memory: MemorySettings::read(&root.get("memory")),
            worker: WorkerSettings::read(&root.get("worker")),
            tools: ToolSettings::read(root, approval),
            hooks,
            mcp_servers: read_entries(&root.get("mcpServers"), McpServer::read),
            mcp_timeout: seconds("mcpTimeoutSeconds"),
            acp_agents: acp_agents::read(&root.get("acpAgents")),
            web_search: WebSearchSettings::read(&root.get("webSearch")),
            language_servers: language_servers::read(&root.get("languageServers")),
            language_server_timeout: bounded_seconds(&root.get("lspTimeoutSeconds")),
            mcp_client_metadata_url: root.get("mcpClientMetadataUrl").text(),
            mcp_logins: McpLoginPlace::read(&root.get("mcpLogins")),
            rules: paths(&root.get("rules")),
            commands: paths(&root.get("commands")),
            skills: paths(&root.get("skills")),
            completion_model: root.get("completion").get("model").text(),
            next_edit_model: root.get("nextEdit").get("model").text(),
            acp_version_two: root.get("acp").get("v2").flag().unwrap_or(true),
            rewrite_model: root.get("rewrite").get("model").text(),
            chat_inline: InlineChatSettings::read(&root.get("chatInline")),
            prompts,
            include_parent_agents_files: root.get("includeParentAgentsFiles").flag().unwrap_or_default(),
            chat: ChatSettings::read(root),
            goal: GoalSettings::read(&root.get("goal")),
            stream_silence: seconds("streamSilenceSeconds"),
            concurrency: root.get("concurrency").number(1..=1000).unwrap_or_default(),
            log_level: LogLevel::read(&root.get("logLevel")),
            telemetry: TelemetrySettings::read(&root.get("otlp")),
            managed: root.scope().environment.managed().map(|it| it.rules.clone()).unwrap_or_default(),
        }
    }

    /// The model of chats with this behavior that have chosen none.
    pub fn behavior_model(&self, behavior: &str) -> Option<&str> {
        self.behavior(behavior)?.default_model.as_deref()
    }

    /// The variant of chats with this behavior that have chosen none.
    pub fn behavior_variant(&self, behavior: &str) -> Option<&str> {
        self.behavior(behavior)?.variant.as_deref()
    }

    /// How many answers of the model one prompt may take.
    pub fn max_steps(&self, behavior: &str) -> u64 {
        self.behavior(behavior).and_then(|own| own.max_steps).unwrap_or(self.chat.max_steps)
    }

    /// The user's own prompts for this behavior.
    pub fn prompts(&self, behavior: &str) -> &Prompts {
        self.behavior(behavior).map_or(&self.prompts, |own| &own.prompts)
    }

    /// The behavior at the end of the chain of `inherit`: its restrictions hold.
    pub fn base_behavior<'a>(&'a self, name: &'a str) -> &'a str {
        self.behavior(name).and_then(|own| own.base.as_deref()).unwrap_or(canonical_behavior(name))
    }

    pub(crate) fn behavior(&self, name: &str) -> Option<&BehaviorSettings> {
        self.behaviors.get(canonical_behavior(name))
    }
}

fn read_budget(cursor: &Cursor) -> Budget {
    if cursor.node().is_some_and(|node| node.entries().is_none()) {
        cursor.report(
            domain::Level::Error,
            "must be {chat, day, run} in dollars. Nothing is spent until it is corrected.",
        );
        return Budget { chat: Some(0.0), day: Some(0.0), run: Some(0.0) };
    }
    let limit = |name| cursor.get(name).dollars();
    Budget { chat: limit("chat"), day: limit("day"), run: limit("run") }
}

/// At most ten minutes.
fn bounded_seconds(cursor: &Cursor) -> Duration {
    Duration::from_secs(cursor.number(1..=600).unwrap_or_default())
}

impl ToolSettings {
    fn read(root: &Cursor, approval: ApprovalRules) -> Self {
        let cursor = root.get("toolCall");
        let number = |group, name, most| cursor.get(group).get(name).number(1..=most).unwrap_or_default();
        let (shell, search) = (cursor.get("shellCommand"), cursor.get("toolSearch"));
        Self {
            approval,
            reviewer: reviewer::read(root),
            disabled: root.get("disabledTools").texts(),
            read_file_max_lines: number("readFile", "maxLines", MAX_READ_LINES),
            output_max_bytes: number("outputTruncation", "sizeKb", MAX_OUTPUT_KIB) * 1024,
            shell: ShellSettings { program: shell.get("path").text(), args: shell.get("args").texts() },
            editor_timeout: bounded_seconds(&root.get("editorTimeoutSeconds")),
            fetch_allowed_hosts: cursor.get("fetchUrl").get("allowedHosts").texts(),
            search_above_percent: search.get("abovePercent").number(0..=100).unwrap_or_default(),
            search_above_tokens: search.get("aboveTokens").number(0..=1_000_000).unwrap_or_default(),
            search_by_provider: search.get("byProvider").flag().unwrap_or(true),
            custom: custom_tools::read(&root.get("customTools")),
            map: MapSettings::read(&root.get("index").get("repoMap")),
            formatters: custom_tools::read_formatters(&root.get("formatters")),
        }
    }
}

impl McpLoginPlace {
    const USUAL: Self = match platform::System::CURRENT {
        platform::System::MacOs | platform::System::Windows => Self::Keyring,
        platform::System::Linux => Self::File,
    };

    fn read(cursor: &Cursor) -> Self {
        match cursor.text().as_deref() {
            Some("file") => Self::File,
            Some("keyring") => Self::Keyring,
            None => Self::USUAL,
            Some(_) => {
                cursor.report_invalid("must be file or keyring");
                Self::USUAL
            }
        }
    }
}

/// Every entry of an object that can be read.
fn read_entries<'a, T>(cursor: &Cursor<'a>, read: impl Fn(&Cursor<'a>) -> Option<T>) -> IndexMap<String, T> {
    cursor.entries().iter().filter_map(|entry| Some((entry.name().to_owned(), read(entry)?))).collect()
}

/// A list of `{"path": …}`.
fn paths(cursor: &Cursor) -> Vec<PathBuf> {
    let Some(value) = cursor.value() else { return Vec::new() };
    let entries = value.as_array().map(|entries| {
        entries.iter().map(|entry| entry.get("path").unwrap_or(entry).as_str().map(str::to_owned)).collect()
    });
    let Some(Some(paths)) = entries.map(|paths: Option<Vec<String>>| paths) else {
        cursor.report_invalid("must be a list of {\"path\": …}");
        return Vec::new();
    };
    paths.iter().map(|path| cursor.scope().environment.expand_home(path)).collect()
}

/// The behavior of a new chat, which must be one that a user may choose.
fn default_behavior(cursor: &Cursor, behaviors: &IndexMap<String, BehaviorSettings>) -> String {
    let name = cursor.text().unwrap_or_default();
    let name = canonical_behavior(&name);
    if behaviors.get(name).is_some_and(|behavior| behavior.primary) {
        return name.to_owned();
    }
    let known: Vec<&str> =
        behaviors.iter().filter(|(_, behavior)| behavior.primary).map(|(name, _)| name.as_str()).collect();
    cursor.report_invalid(&format!("names no behavior that can be chosen ({} can)", known.join(", ")));
    "agent".to_owned()
}

/// Each behavior with the settings that it inherits.
fn behaviors(
    root: &Cursor,
    otherwise: Option<Approval>,
    prompts: &Prompts,
) -> IndexMap<String, BehaviorSettings> {
    let cursor = root.get("agent");
    let mut behaviors = IndexMap::new();
    for entry in cursor.entries() {
        let name = entry.name();
        let (node, approval) = inherit(root, name, otherwise, 0);
        // The merged node lives only as long as it is read.
        let mut settings = BehaviorSettings::read(&entry.with_node(&node), approval, prompts);
        report_unknown_ancestor(&cursor, &entry);
        settings.base = base(root, name);
        behaviors.insert(name.to_owned(), settings);
    }
    behaviors
}

/// A misspelled `plan` would leave its restrictions out.
fn report_unknown_ancestor(behaviors: &Cursor, entry: &Cursor) {
    let ancestor = entry.get("inherit");
    let Some(name) = ancestor.text() else { return };
    let known: Vec<&str> = behaviors.entries().iter().map(Cursor::name).collect();
    if !known.contains(&canonical_behavior(&name)) {
        let what = format!("names no behavior ({} exist); nothing is inherited.", known.join(", "));
        ancestor.report(Level::Error, &what);
    }
}

/// A longer chain of behaviors that inherit from each other is a circle.
const MAX_INHERITANCE_DEPTH: usize = 8;

/// The last behavior that this one inherits from.
fn base(root: &Cursor, name: &str) -> Option<String> {
    let mut base = None;
    let mut name = name.to_owned();
    for _ in 0..MAX_INHERITANCE_DEPTH {
        let own = root.node().and_then(|tree| tree.get("agent")?.get(&name)?.get("inherit"));
        let Some(ancestor) = own.and_then(Node::leaf).and_then(|(value, _)| value.as_str()) else { break };
        name = canonical_behavior(ancestor).to_owned();
        base = Some(name.clone());
    }
    base
}

fn inherit(root: &Cursor, name: &str, otherwise: Option<Approval>, depth: usize) -> (Node, ApprovalRules) {
    let scope = root.scope();
    let own = root.node().and_then(|tree| tree.get("agent")?.get(name)).cloned().unwrap_or_default();
    let path = ["agent", name, "toolCall", "approval"];
    let rules = approval::collect(scope.layers, &path, otherwise, &mut scope.notices.borrow_mut());
    let ancestor = own.get("inherit").and_then(Node::leaf).and_then(|(value, _)| Value::as_str(value));
    let Some(ancestor) = ancestor
        .map(canonical_behavior)
        .filter(|ancestor| depth < MAX_INHERITANCE_DEPTH && *ancestor != name)
    else {
        return (own, rules);
    };
    let (mut node, inherited) = inherit(root, ancestor, otherwise, depth + 1);
    node.overlay(&own);
    (node, rules.over(&inherited))
}
