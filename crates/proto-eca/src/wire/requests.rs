//! The methods that clients call, each as a type with its parameters and its result: the one table of them.
//!
//! Knows no handler. Invariant: a method's name, parameters and result are in one line of [`methods!`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::completion::{CompletionParams, CompletionResult, NextEditParams};
use super::history::{ForkParams, HistoryParams, HistoryResult, ListParams, ListResult, OpenResult};
use super::jobs::{JobList, JobOutputResult, JobParams, KillResult};
use super::memory::MemoryListResult;
use super::providers::{LoginAction, LoginInputParams, LoginParams, ProviderList};
use super::servers::{AddServerParams, AddServerResult, RemoveServerResult, ServerParams};
use super::{ChatKey, Context, Empty, OfferedContext};

/// A method that clients call, as a request or as a notification.
pub(crate) trait Method {
    const NAME: &'static str;
    type Params: DeserializeOwned + Default;
    type Result: Serialize + Send;
}

macro_rules! methods {
    ($($name:ident = $method:literal: $params:ty => $result:ty;)*) => {
        $(
            pub(crate) enum $name {}

            impl Method for $name {
                const NAME: &'static str = $method;
                type Params = $params;
                type Result = $result;
            }
        )*

        /// The names of all methods.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$($method),*];
    };
}

methods! {
    Initialize = "initialize": InitializeParams => InitializeResult;
    Initialized = "initialized": Empty => Empty;
    Shutdown = "shutdown": Empty => ();
    Exit = "exit": Empty => Empty;
    Prompt = "chat/prompt": PromptParams => PromptResult;
    InlinePrompt = "chat/inlinePrompt": InlinePromptParams => PromptResult;
    PromptStop = "chat/promptStop": ChatParams => Empty;
    PromptSteer = "chat/promptSteer": SteerParams => Empty;
    PromptSteerRemove = "chat/promptSteerRemove": ChatParams => Empty;
    ToolCallApprove = "chat/toolCallApprove": ApproveParams => Empty;
    ToolCallReject = "chat/toolCallReject": RejectParams => Empty;
    QueryContext = "chat/queryContext": QueryContextParams => QueryContextResult;
    QueryFiles = "chat/queryFiles": QueryContextParams => QueryFilesResult;
    QueryCommands = "chat/queryCommands": QueryCommandsParams => QueryCommandsResult;
    SelectedBehaviorChanged = "chat/selectedBehaviorChanged": SelectionParams => Empty;
    SelectedAgentChanged = "chat/selectedAgentChanged": SelectionParams => Empty;
    SelectedModelChanged = "chat/selectedModelChanged": SelectionParams => Empty;
    Update = "chat/update": UpdateParams => Empty;
    Delete = "chat/delete": ChatParams => Empty;
    Clear = "chat/clear": ClearParams => Empty;
    Rollback = "chat/rollback": RollbackParams => Empty;
    List = "chat/list": ListParams => ListResult;
    Open = "chat/open": HistoryParams => OpenResult;
    History = "chat/history": HistoryParams => HistoryResult;
    AddFlag = "chat/addFlag": FlagParams => Empty;
    RemoveFlag = "chat/removeFlag": FlagParams => Empty;
    Fork = "chat/fork": ForkParams => OpenResult;
    ChangeWorkspaceFolders = "workspace/didChangeWorkspaceFolders": FoldersParams => Empty;
    RewritePrompt = "rewrite/prompt": RewriteParams => RewriteResult;
    ProvidersList = "providers/list": Empty => ProviderList;
    ProvidersLogin = "providers/login": LoginParams => LoginAction;
    ProvidersLoginInput = "providers/loginInput": LoginInputParams => LoginAction;
    ProvidersLogout = "providers/logout": LoginParams => Empty;
    CompletionInline = "completion/inline": CompletionParams => CompletionResult;
    CompletionNextEdit = "completion/nextEdit": NextEditParams => CompletionResult;
    MemoryListMethod = "memory/list": Empty => MemoryListResult;
    JobsList = "jobs/list": Empty => JobList;
    JobsKill = "jobs/kill": JobParams => KillResult;
    JobsReadOutput = "jobs/readOutput": JobParams => JobOutputResult;
    McpStartServer = "mcp/startServer": ServerParams => Empty;
    McpStopServer = "mcp/stopServer": ServerParams => Empty;
    McpConnectServer = "mcp/connectServer": ServerParams => Empty;
    McpLogoutServer = "mcp/logoutServer": ServerParams => Empty;
    McpEnableServer = "mcp/enableServer": ServerParams => Empty;
    McpDisableServer = "mcp/disableServer": ServerParams => Empty;
    McpAddServer = "mcp/addServer": AddServerParams => AddServerResult;
    McpUpdateServer = "mcp/updateServer": AddServerParams => Empty;
    McpRemoveServer = "mcp/removeServer": ServerParams => RemoveServerResult;
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RewriteParams {
    pub id: String,
    pub text: String,
    pub prompt: String,
    pub path: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RewriteResult {
    pub status: &'static str,
    pub model: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeParams {
    pub process_id: Option<i64>,
    pub client_info: Option<ClientInfo>,
    pub initialization_options: Option<Value>,
    pub capabilities: Option<Capabilities>,
    pub workspace_folders: Option<Vec<WorkspaceFolder>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientInfo {
    pub name: Option<String>,
    pub version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Capabilities {
    pub code_assistant: Option<CodeAssistant>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CodeAssistant {
    pub chat_capabilities: Option<ChatCapabilities>,
    pub editor: Option<EditorCapabilities>,
    // Only the draft protocol has these.
    pub doc: Option<bool>,
    pub edit: Option<bool>,
    pub fix: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatCapabilities {
    pub ask_question: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EditorCapabilities {
    pub diagnostics: Option<bool>,
    pub definition: Option<bool>,
    pub references: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WorkspaceFolder {
    pub uri: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResult {
    /// Without this string no client opens its chat window.
    pub chat_welcome_message: String,
    /// The user's own settings, for clients that open the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_config_path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptParams {
    pub chat_id: Option<ChatKey>,
    pub message: String,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub agent: Option<String>,
    pub variant: Option<String>,
    pub trust: Option<bool>,
    pub contexts: Option<Vec<Context>>,
    /// The draft protocol's name for `contexts`.
    pub context: Option<Vec<Context>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InlinePromptParams {
    /// The chat that a new one continues.
    pub source_chat_id: Option<ChatKey>,
    #[serde(flatten)]
    pub prompt: PromptParams,
}

/// The response to a prompt, in the form of the client's dialect.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum PromptResult {
    Published { chat_id: ChatKey, model: String, status: &'static str },
    Draft { chat_id: ChatKey, status: &'static str, result_message: String },
}

/// The parameters of methods that need no more than a chat.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ChatParams {
    pub chat_id: Option<ChatKey>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SteerParams {
    pub chat_id: Option<ChatKey>,
    pub message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ApproveParams {
    pub chat_id: Option<ChatKey>,
    pub tool_call_id: Option<String>,
    pub save: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RejectParams {
    pub chat_id: Option<ChatKey>,
    pub tool_call_id: Option<String>,
    pub reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct QueryContextParams {
    pub chat_id: Option<ChatKey>,
    pub query: Option<String>,
    /// Those that the prompt has already.
    pub contexts: Option<Vec<Context>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryContextResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatKey>,
    pub contexts: Vec<OfferedContext>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryFilesResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatKey>,
    pub files: Vec<OfferedContext>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct QueryCommandsParams {
    pub chat_id: Option<ChatKey>,
    pub query: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueryCommandsResult {
    pub chat_id: Option<ChatKey>,
    pub commands: Vec<OfferedCommand>,
}

#[derive(Debug, Serialize)]
pub(crate) struct OfferedCommand {
    pub name: String,
    pub description: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub arguments: Vec<CommandArgument>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CommandArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SelectionParams {
    pub chat_id: Option<ChatKey>,
    pub model: Option<String>,
    pub variant: Option<String>,
    pub behavior: Option<String>,
    pub agent: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateParams {
    pub chat_id: Option<ChatKey>,
    pub title: Option<String>,
    pub trust: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClearParams {
    pub chat_id: Option<ChatKey>,
    pub messages: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RollbackParams {
    pub chat_id: Option<ChatKey>,
    pub content_id: Option<String>,
    /// `messages`, `tools`; absent means messages.
    pub include: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FlagParams {
    pub chat_id: Option<ChatKey>,
    pub content_id: Option<String>,
    pub text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FoldersParams {
    pub event: FoldersEvent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FoldersEvent {
    pub added: Vec<WorkspaceFolder>,
    pub removed: Vec<WorkspaceFolder>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_the_protocol_names_every_method() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/eca.md");
        let page = std::fs::read_to_string(page).unwrap();
        let missing: Vec<&&str> = NAMES.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "eca.md lacks {missing:?}");
    }
}
