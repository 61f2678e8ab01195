//! What the page sees and what is kept: tabs, messages, versions, connections. Plain data in camelCase.
//!
//! Invariant: nothing here ever holds a credential.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::plugin::Plugin;
pub(crate) use crate::plugin::ToolUse;

/// Messages of a tab that the page is sent.
const SHOWN_MESSAGES: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TabState {
    #[default]
    Empty,
    SpecLoaded,
    Generating,
    InterfaceReady,
    Customizing,
    Error,
}

/// A tab as it is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TabRecord {
    pub id: String,
    pub title: String,
    /// The user named it, so that a specification does not.
    pub is_named: bool,
    pub specification: Option<Specification>,
    pub versions: Vec<Version>,
    pub current: Option<u64>,
    pub last_safe: Option<u64>,
    pub base_url: Option<BaseUrl>,
    /// What the first version should be like.
    pub wish: Option<String>,
    pub chat: Vec<Message>,
    pub problem: Option<Problem>,
    pub closed_at: Option<u64>,
    /// The number of the next message.
    pub next_message: u64,
    #[serde(skip)]
    pub activity: Activity,
}

/// What a tab is busy with; not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Activity {
    #[default]
    Idle,
    Generating,
    Customizing,
}

/// A tab as the page sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tab<'t> {
    id: &'t str,
    title: &'t str,
    state: TabState,
    specification: Option<&'t Specification>,
    current: Option<u64>,
    last_safe: Option<u64>,
    versions: usize,
    base_url: Option<&'t BaseUrl>,
    connection: Option<String>,
    chat: &'t [Message],
    has_work: bool,
    /// Tools of the shown version that are not there any more.
    missing_tools: Vec<String>,
    problem: Option<&'t Problem>,
}

impl TabRecord {
    pub(crate) fn state(&self) -> TabState {
        match self.activity {
            Activity::Generating => TabState::Generating,
            Activity::Customizing => TabState::Customizing,
            Activity::Idle if self.problem.is_some() => TabState::Error,
            Activity::Idle if self.current.is_some() => TabState::InterfaceReady,
            Activity::Idle if self.specification.is_some() => TabState::SpecLoaded,
            Activity::Idle => TabState::Empty,
        }
    }

    pub(crate) fn shown(&self, plugins: &[Plugin]) -> Tab<'_> {
        let first = self.chat.len().saturating_sub(SHOWN_MESSAGES);
        Tab {
            id: &self.id,
            title: &self.title,
            state: self.state(),
            specification: self.specification.as_ref(),
            current: self.current,
            last_safe: self.last_safe,
            versions: self.versions.len(),
            base_url: self.base_url.as_ref(),
            connection: self.base_url.as_ref().and_then(|base| origin_of(&base.url)),
            chat: &self.chat[first..],
            has_work: self.activity != Activity::Idle || !self.versions.is_empty() || !self.chat.is_empty(),
            missing_tools: missing_tools(self.tools_in_use(), plugins),
            problem: self.problem.as_ref(),
        }
    }

    /// The tools of the version that is shown.
    pub(crate) fn tools_in_use(&self) -> &[ToolUse] {
        self.current.and_then(|number| self.version(number)).map_or(&[], |version| &version.tools)
    }

    pub(crate) fn version(&self, number: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.number == number)
    }

    pub(crate) fn message_mut(&mut self, id: &str) -> Option<&mut Message> {
        self.chat.iter_mut().find(|message| message.id == id)
    }

    /// Adds a message and gives its id.
    pub(crate) fn add_message(&mut self, mut message: Message) -> String {
        self.next_message += 1;
        message.id = format!("m{}", self.next_message);
        message.time = now();
        self.chat.push(message);
        format!("m{}", self.next_message)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Specification {
    pub name: String,
    pub source: Source,
    pub format: String,
    pub title: String,
    pub version: String,
    pub operations: usize,
    pub size: usize,
    pub warnings: Vec<SpecificationProblem>,
    /// References that could not be loaded.
    #[serde(default)]
    pub missing: Vec<Missing>,
    pub servers: Vec<ServerEntry>,
    pub schemes: Vec<Scheme>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    File,
    Url,
    Text,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Missing {
    pub location: String,
    pub reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerEntry {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SpecificationProblem {
    pub severity: String,
    pub kind: String,
    pub place: String,
    pub message: String,
    pub advice: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scheme {
    pub name: String,
    pub kind: String,
    pub description: Option<String>,
    #[serde(rename = "in")]
    pub place: Option<String>,
    pub parameter: Option<String>,
    pub authorization_url: Option<String>,
    pub token_url: Option<String>,
    pub scopes: Vec<Scope>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BaseUrl {
    pub url: String,
    pub is_confirmed: bool,
    pub from: BaseUrlSource,
    pub is_private: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BaseUrlSource {
    Specification,
    User,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Message {
    pub id: String,
    pub role: Role,
    pub time: u64,
    pub text: String,
    pub status: MessageStatus,
    pub options: Vec<String>,
    pub is_question: bool,
    pub answered: Option<String>,
    pub assumptions: Vec<String>,
    pub version: Option<u64>,
    pub problem: Option<Problem>,
    /// The wish that a question is about, or the question that an answer is for.
    pub reply_to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    #[default]
    User,
    Assistant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageStatus {
    #[default]
    Sent,
    Pending,
    Queued,
    Error,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub kind: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    pub number: u64,
    pub parent: Option<u64>,
    pub kind: VersionKind,
    pub description: String,
    pub prompt: Option<String>,
    pub assumptions: Vec<String>,
    pub hash: String,
    pub size: usize,
    pub time: u64,
    pub reverted_from: Option<u64>,
    /// The tools whose answers are in this version, also those of the versions it was made from.
    #[serde(default)]
    pub tools: Vec<ToolUse>,
}

/// The tools that a version was made with and that are not there any more, as people read them.
pub(crate) fn missing_tools(tools: &[ToolUse], plugins: &[Plugin]) -> Vec<String> {
    let is_missing = |used: &&ToolUse| !plugins.iter().any(|plugin| plugin.has_tool(used));
    tools.iter().filter(is_missing).map(|used| format!("{} of {}", used.tool, used.plugin)).collect()
}

impl Version {
    /// As the page sees it.
    pub(crate) fn shown(&self, plugins: &[Plugin]) -> Value {
        let mut shown = json!(self);
        let mut names: Vec<&str> = self.tools.iter().map(|used| used.plugin.as_str()).collect();
        names.dedup();
        shown["plugins"] = json!(names);
        shown["missingPlugins"] = json!(missing_tools(&self.tools, plugins));
        shown
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VersionKind {
    Generation,
    Customization,
    Rollback,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preferences {
    pub chat_width: f64,
    pub theme: String,
    /// The tab that was shown last.
    pub active_tab: Option<String>,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { chat_width: 30.0, theme: "auto".to_owned(), active_tab: None }
    }
}

/// The specification of a tab as it was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Given {
    pub name: String,
    pub source: Source,
    /// Where references start from.
    pub location: Option<String>,
    pub text: String,
    pub documents: BTreeMap<String, String>,
    #[serde(default, rename = "fetchReferences")]
    pub fetch_references: bool,
}

/// `scheme://host:port`: what credentials belong to.
pub(crate) fn origin_of(address: &str) -> Option<String> {
    let url = reqwest::Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(format!("{}://{host}:{}", url.scheme(), url.port_or_known_default()?))
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}
