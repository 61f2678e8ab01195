//! What the screen requests from the loop, and what comes back. Plain data.

use std::path::PathBuf;

use domain::command::{
    Catalog, Context, RollbackScope, SessionInfo, SessionSettings, SlashCommand, UserPrompt,
};
use domain::store::SessionSummary;
use domain::tool::{ServerAction, ToolServer};
use domain::{Answer, AskId, Failure, ItemId, SessionId};
use serde_json::Value;

use super::allow_rule::{AllowRule, ExplainedCall};
use super::login_entry::Secret;

/// Work that the screen requests from the loop.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Sends a prompt to the open chat, or to a new one.
    Prompt(Box<UserPrompt>),
    /// The same, with the files that `@path` in the words names.
    PromptWithFiles {
        prompt: Box<UserPrompt>,
        written: String,
    },
    Steer(String),
    WithdrawSteering,
    Cancel,
    Answer {
        ask: AskId,
        answer: Answer,
    },
    Configure(SessionSettings),
    Load(SessionId),
    Fork(Option<ItemId>),
    New,
    ListChats,
    Commands {
        query: String,
    },
    Contexts {
        query: String,
    },
    Catalog,
    /// Counts the commands that run in the background.
    Jobs,
    Servers,
    ServerAction {
        name: String,
        action: ServerAction,
    },
    /// Runs a command in the user's shell.
    Shell(String),
    AddInstruction(String),
    /// Puts text into the clipboard.
    Copy(String),
    /// Reads the image whose path was pasted.
    Image {
        path: PathBuf,
        pasted: String,
    },
    /// Attaches the image in the clipboard.
    ClipboardImage,
    /// Shows the rule that an approval would become.
    PreviewRule {
        ask: AskId,
        rule: AllowRule,
    },
    AllowInProject(AllowRule),
    Permissions,
    Login {
        provider: String,
        method: Option<String>,
    },
    FinishLogin {
        provider: String,
        field: &'static str,
        typed: Secret,
    },
    /// Explains the decision about a call.
    Explain(Box<ExplainedCall>),
    /// Takes back what was said from a message on, the file changes since, or both.
    Rollback {
        from: ItemId,
        scope: RollbackScope,
    },
    /// Lets a command of the user's make the last line.
    Status {
        command: String,
        values: Value,
    },
    /// Writes a setting into the user's own file.
    SaveSetting {
        keys: Vec<&'static str>,
        value: Value,
    },
    /// Deletes the stored key of a provider.
    Logout(String),
    /// Adds a folder to the workspace of new chats.
    AddFolder(String),
    /// Calls a user who looks elsewhere.
    Notify(&'static str),
    Export {
        path: String,
        text: String,
    },
    /// Shows the changes of the working tree.
    Diff,
    Edit(String),
    Suspend,
    Leave,
}

/// A result of an effect.
#[derive(Debug)]
pub enum Update {
    Catalog(Catalog),
    /// So many commands run in the background.
    Jobs(usize),
    /// The screen shows this chat from now on.
    Opened(Box<SessionInfo>),
    Commands {
        query: String,
        found: Vec<SlashCommand>,
    },
    /// Values for the last argument of a line.
    Arguments(String, Vec<String>),
    Contexts {
        query: String,
        found: Vec<Context>,
    },
    Chats(Vec<SessionSummary>),
    Servers(Vec<ToolServer>),
    ShellOutput {
        command: String,
        output: String,
    },
    Diff {
        diff: String,
        new_files: String,
    },
    /// How a call is decided.
    Explained(Vec<String>),
    /// What the command of the status line printed.
    Status(String),
    /// Something was done; the sentence says what.
    Info(String),
    Edited(Result<String, Failure>),
    /// The turn had ended, so the text becomes a prompt.
    NotSteered(String),
    /// The engine accepted the prompt: this process writes the chat.
    Sent,
    /// The engine rejected the prompt; its text returns to the input.
    /// The next prompt takes the contexts of this one along.
    NotSent {
        text: String,
        contexts: Vec<Context>,
        failure: Failure,
    },
    Failed(Failure),
}
