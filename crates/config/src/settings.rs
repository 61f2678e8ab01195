//! The resolved settings as types. Every field has its value here or none at all; what a missing model,
//! prompt or vendor fact means is known by those who use it.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::approval::{self, Approval, ApprovalRules};
use crate::aws::AwsSettings;
use crate::behavior::{BehaviorSettings, Prompts};
use crate::cursor::Cursor;
use crate::hooks::{CustomTool, HookSettings};
use crate::legacy_keys::canonical_behavior;
use crate::mcp::McpServer;
use crate::network::NetworkSettings;
use crate::origin::Origin;
use crate::provider::{ProviderSettings, object};
use crate::tree::Node;

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `provider/model`.
    pub default_model: Option<String>,
    /// `agent`, `plan` or one of the user's own; never `code`.
    pub default_behavior: String,
    /// By name, `agent` and `plan` among them.
    pub behaviors: IndexMap<String, BehaviorSettings>,
    pub providers: IndexMap<String, ProviderSettings>,
    /// Models to go on with when one fails, in order.
    pub failover: Vec<String>,
    pub budget: Budget,
    pub aws: AwsSettings,
    pub network: NetworkSettings,

    pub tools: ToolSettings,
    pub mcp_servers: IndexMap<String, McpServer>,
    pub mcp_timeout: Duration,
    /// Run in the order of their names.
    pub hooks: IndexMap<String, HookSettings>,
    pub custom_tools: IndexMap<String, CustomTool>,

    /// Files and directories; relative ones start from each workspace folder.
    pub rules: Vec<PathBuf>,
    pub commands: Vec<PathBuf>,
    pub skills: Vec<PathBuf>,
    pub prompts: Prompts,
    pub include_parent_agents_files: bool,
    pub index: IndexSettings,

    pub chat: ChatSettings,
    pub completion_model: Option<String>,
    pub rewrite_model: Option<String>,
    pub rewrite_full_file_max_lines: u64,
    /// As ECA has it: pattern → `{variants, excludeProviders, api}`.
    pub variants_by_model: Map<String, Value>,

    /// A stream that stays silent for so long is an error.
    pub stream_silence: Duration,
    /// Requests at once to one provider.
    pub concurrency: u64,
    pub log_level: LogLevel,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ChatSettings {
    pub welcome_message: String,
    /// Whether the model gives a new chat its title.
    pub title: bool,
    pub title_model: Option<String>,
    /// Whether new chats answer asks with yes by themselves.
    pub default_trust: bool,
    pub auto_compact_percentage: u64,
    pub max_steps: u64,
    /// Days; zero keeps chats for ever, nothing said too.
    pub retention_days: Option<u64>,
}

/// Spending caps in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    pub chat: Option<f64>,
    pub day: Option<f64>,
    pub run: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    pub approval: ApprovalRules,
    pub disabled: Vec<String>,
    pub read_file_max_lines: u64,
    pub output_max_lines: u64,
    pub output_max_bytes: u64,
    pub shell: ShellSettings,
    /// How long the editor may take to answer a tool.
    pub editor_timeout: Duration,
    /// Hosts that may be fetched although they are on this machine or in a private network.
    pub fetch_allowed_hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ShellSettings {
    /// Another shell and what stands before the line, e.g. `-c`.
    pub program: Option<String>,
    pub args: Vec<String>,
    pub summary_max_length: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IndexSettings {
    pub ignore_files: Vec<String>,
    pub repo_map_max_entries: u64,
    pub repo_map_max_entries_per_directory: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Top-level keys that mean something, to us or to ECA. Others are reported as unknown.
const KNOWN: &[&str] = &[
    "$schema",
    "agent",
    "autoCompactPercentage",
    "budget",
    "chat",
    "chatRetentionDays",
    "commands",
    "completion",
    "concurrency",
    "customTools",
    "defaultAgent",
    "defaultModel",
    "disabledTools",
    "editorTimeoutSeconds",
    "extraConfigs",
    "failover",
    "hooks",
    "includeParentAgentsFiles",
    "index",
    "logLevel",
    "lspTimeoutSeconds",
    "maxSteps",
    "mcpServers",
    "mcpTimeoutSeconds",
    "netrcFile",
    "network",
    "otlp",
    "plugins",
    "prompts",
    "providers",
    "pureConfig",
    "remote",
    "rewrite",
    "rules",
    "skills",
    "streamSilenceSeconds",
    "toolCall",
    "variantsByModel",
    "welcomeMessage",
];

const MAX_COUNT: u64 = 1_000_000;

impl Settings {
    /// Reads the whole tree.
    pub(crate) fn read(root: &Cursor, approval: ApprovalRules) -> Self {
        let unknown = root.entries().into_iter().filter(|entry| !KNOWN.contains(&entry.name()));
        // Clients send options of their own beside settings.
        for entry in unknown.filter(|entry| entry.origin() != Origin::InitializationOptions) {
            entry.report(domain::Level::Info, "is no setting that Dragoman knows; it is ignored.");
        }
        let seconds = |name| Duration::from_secs(root.get(name).number(1..=86_400).unwrap_or_default());
        let rewrite = root.get("rewrite");
        let behaviors = behaviors(root, approval.by_default);
        let mut hooks: IndexMap<_, _> = read_entries(&root.get("hooks"), HookSettings::read);
        hooks.sort_keys();
        Self {
            default_model: root.get("defaultModel").text(),
            default_behavior: default_behavior(&root.get("defaultAgent"), &behaviors),
            behaviors,
            providers: read_entries(&root.get("providers"), |provider| {
                Some(ProviderSettings::read(provider))
            }),
            failover: root.get("failover").texts(),
            budget: Budget::read(&root.get("budget")),
            aws: AwsSettings::read(root.scope().environment, root.scope().redactor),
            network: NetworkSettings::read(&root.get("network")),
            tools: ToolSettings::read(root, approval),
            mcp_servers: read_entries(&root.get("mcpServers"), McpServer::read),
            mcp_timeout: seconds("mcpTimeoutSeconds"),
            hooks,
            custom_tools: read_entries(&root.get("customTools"), CustomTool::read),
            rules: paths(&root.get("rules")),
            commands: paths(&root.get("commands")),
            skills: paths(&root.get("skills")),
            prompts: Prompts::read(&root.get("prompts")),
            include_parent_agents_files: root.get("includeParentAgentsFiles").flag().unwrap_or_default(),
            index: IndexSettings::read(&root.get("index")),
            chat: ChatSettings::read(root),
            completion_model: root.get("completion").get("model").text(),
            rewrite_model: rewrite.get("model").text(),
            rewrite_full_file_max_lines: rewrite
                .get("fullFileMaxLines")
                .number(1..=MAX_COUNT)
                .unwrap_or_default(),
            variants_by_model: object(&root.get("variantsByModel")),
            stream_silence: seconds("streamSilenceSeconds"),
            concurrency: root.get("concurrency").number(1..=1000).unwrap_or_default(),
            log_level: LogLevel::read(&root.get("logLevel")),
        }
    }
}

impl ChatSettings {
    fn read(root: &Cursor) -> Self {
        let chat = root.get("chat");
        let welcome = root.get("welcomeMessage");
        Self {
            welcome_message: welcome.prompt().and_then(|text| welcome.now(&text)).unwrap_or_default(),
            title: chat.get("title").flag().unwrap_or_default(),
            title_model: chat.get("titleModel").text(),
            default_trust: chat.get("defaultTrust").flag().unwrap_or_default(),
            auto_compact_percentage: root.get("autoCompactPercentage").number(1..=100).unwrap_or_default(),
            max_steps: root.get("maxSteps").number(1..=100_000).unwrap_or_default(),
            retention_days: root.get("chatRetentionDays").number(0..=MAX_COUNT),
        }
    }
}

impl Budget {
    fn read(cursor: &Cursor) -> Self {
        if cursor.node().is_some_and(|node| node.entries().is_none()) {
            cursor.report(
                domain::Level::Error,
                "must be {chat, day, run} in dollars. Nothing is spent until that is mended.",
            );
            return Self { chat: Some(0.0), day: Some(0.0), run: Some(0.0) };
        }
        let cap = |name| cursor.get(name).dollars();
        Self { chat: cap("chat"), day: cap("day"), run: cap("run") }
    }
}

impl ToolSettings {
    fn read(root: &Cursor, approval: ApprovalRules) -> Self {
        let cursor = root.get("toolCall");
        let number = |group, name| cursor.get(group).get(name).number(1..=MAX_COUNT).unwrap_or_default();
        let shell = cursor.get("shellCommand");
        Self {
            approval,
            disabled: root.get("disabledTools").texts(),
            read_file_max_lines: number("readFile", "maxLines"),
            output_max_lines: number("outputTruncation", "lines"),
            output_max_bytes: number("outputTruncation", "sizeKb") * 1024,
            shell: ShellSettings {
                program: shell.get("path").text(),
                args: shell.get("args").texts(),
                summary_max_length: number("shellCommand", "summaryMaxLength"),
            },
            editor_timeout: Duration::from_secs(
                root.get("editorTimeoutSeconds").number(1..=600).unwrap_or_default(),
            ),
            fetch_allowed_hosts: cursor.get("fetchUrl").get("allowedHosts").texts(),
        }
    }
}

impl IndexSettings {
    fn read(cursor: &Cursor) -> Self {
        let number = |name| cursor.get("repoMap").get(name).number(1..=MAX_COUNT).unwrap_or_default();
        let kinds = cursor.get("ignoreFiles").value();
        let kinds = kinds.as_ref().and_then(Value::as_array).into_iter().flatten();
        Self {
            ignore_files: kinds.filter_map(|kind| Some(kind.get("type")?.as_str()?.to_owned())).collect(),
            repo_map_max_entries: number("maxTotalEntries"),
            repo_map_max_entries_per_directory: number("maxEntriesPerDir"),
        }
    }
}

impl LogLevel {
    fn read(cursor: &Cursor) -> Self {
        match cursor.text().as_deref() {
            Some("error") => Self::Error,
            Some("warn" | "warning") => Self::Warn,
            Some("debug") => Self::Debug,
            Some("trace") => Self::Trace,
            Some("info") | None => Self::Info,
            Some(_) => {
                cursor.report_invalid("must be error, warn, info, debug or trace");
                Self::Info
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

/// Each behavior with what it inherits.
fn behaviors(root: &Cursor, otherwise: Option<Approval>) -> IndexMap<String, BehaviorSettings> {
    let cursor = root.get("agent");
    let mut behaviors = IndexMap::new();
    for entry in cursor.entries() {
        let name = entry.name();
        let (node, approval) = inherit(root, name, otherwise, 0);
        // The merged node lives only as long as it is read.
        let settings = BehaviorSettings::read(&entry.with_node(&node), approval);
        behaviors.insert(name.to_owned(), settings);
    }
    behaviors
}

/// A chain of heirs longer than this is a circle.
const MAX_INHERITANCE_DEPTH: usize = 8;

fn inherit(root: &Cursor, name: &str, otherwise: Option<Approval>, depth: usize) -> (Node, ApprovalRules) {
    let scope = root.scope();
    let own = root.node().and_then(|tree| tree.get("agent")?.get(name)).cloned().unwrap_or_default();
    let path = ["agent", name, "toolCall", "approval"];
    let rules = approval::collect(scope.layers, &path, otherwise, &mut scope.notices.borrow_mut());
    let ancestor = own.get("inherit").and_then(Node::leaf).and_then(|(value, _)| value.as_str());
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
