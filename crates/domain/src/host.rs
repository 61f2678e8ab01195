//! What the engine may ask of the front-end whose prompt began the turn, if it said that it can.
//!
//! Invariant: one call, one reply, one deadline. A front-end that does not answer in time has answered `Failure`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::BoxFuture;
use crate::ask::AskKind;
use crate::failure::Failure;
use crate::ids::{ItemId, SessionId};

/// What a front-end can do for the engine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Abilities {
    /// For people and logs: `emacs 30.1`.
    pub client: String,
    /// Asks reach a person: approvals, questions. Where false, what policy would ask is refused.
    pub approvals: bool,
    pub questions: bool,
    pub forms: bool,
    pub diagnostics: bool,
    pub definition: bool,
    pub references: bool,
    /// Reads through the client see unsaved text.
    pub read_text: bool,
    /// It also gives a part of a text, by lines.
    pub read_lines: bool,
    pub read_bytes: bool,
    pub write_text: bool,
    pub stat: bool,
    pub glob: bool,
    pub terminal: bool,
    /// What is allowed without asking, where nobody can be asked (`--approve`).
    pub grants: Grants,
    /// File changes that need approval are handed to the client as proposals (the draft ECA protocol).
    pub proposes_changes: bool,
    /// It shows the chats of subagents, and a person answers their questions there.
    pub subagents: bool,
    /// It is in another process, so it works with chats that are loaded here and loads none.
    pub remote: bool,
}

impl Abilities {
    /// Whether a person can be asked this there.
    pub fn can_answer(&self, kind: &AskKind) -> bool {
        match kind {
            AskKind::Approval { .. } => self.approvals,
            AskKind::Question { .. } => self.questions,
            AskKind::Form { .. } => self.forms,
        }
    }
}

/// How far a front-end without a person may go by itself. Deny rules hold all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grants {
    /// Whatever changes nothing and stays inside the workspace.
    pub reads: bool,
    /// File changes inside the workspace.
    pub edits: bool,
    /// Requests of built-in tools to other machines.
    pub network: bool,
    /// Commands that the sandbox keeps in the workspace.
    pub contained: bool,
    /// Everything that is not denied.
    pub all: bool,
}

impl Grants {
    /// Only what policy allows.
    pub const NONE: Self = Self { reads: false, edits: false, network: false, contained: false, all: false };
    pub const READ: Self = Self { reads: true, ..Self::NONE };
    pub const EDIT: Self = Self { edits: true, ..Self::READ };
    pub const NETWORK: Self = Self { network: true, ..Self::NONE };
    pub const CONTAINED: Self = Self { contained: true, ..Self::NONE };
    pub const ALL: Self = Self { reads: true, edits: true, network: true, contained: true, all: true };

    /// What either of the two grants.
    pub fn or(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            edits: self.edits || other.edits,
            network: self.network || other.network,
            contained: self.contained || other.contained,
            all: self.all || other.all,
        }
    }
}

/// A call on its way to the front-end.
#[derive(Debug)]
pub struct HostRequest {
    pub session: SessionId,
    pub item: Option<ItemId>,
    pub call: HostCall,
    pub deadline: Duration,
    pub reply: oneshot::Sender<Result<HostReply, Failure>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostCall {
    /// `None`: of the whole workspace.
    Diagnostics {
        path: Option<PathBuf>,
    },
    Definition {
        path: PathBuf,
        position: Position,
    },
    References {
        path: PathBuf,
        position: Position,
        include_declaration: bool,
    },
    /// The text of a buffer or file, whole.
    ReadText {
        path: PathBuf,
    },
    /// A part of a text: after `skip` lines, at most `limit` of them.
    ReadLines {
        path: PathBuf,
        skip: u64,
        limit: u64,
    },
    ReadBytes {
        path: PathBuf,
    },
    WriteText {
        path: PathBuf,
        text: String,
    },
    Stat {
        path: PathBuf,
    },
    Glob {
        pattern: String,
    },
    /// Runs a command in a terminal of the client and waits for its end.
    Terminal(Terminal),
}

/// A command for a terminal of the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terminal {
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// After this long it is killed; the reply then tells its output without an exit code.
    pub time: Duration,
    pub output_limit: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostReply {
    Diagnostics(Vec<Diagnostic>),
    Locations(Vec<SourceRange>),
    Text(String),
    Bytes(Vec<u8>),
    Written,
    Stat { exists: bool, directory: bool },
    Paths(Vec<PathBuf>),
    Terminal { output: String, truncated: bool, exit_code: Option<i32> },
}

/// 1-based line and character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub line: u32,
    pub character: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceRange {
    pub path: PathBuf,
    pub start: Position,
    pub end: Position,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub path: PathBuf,
    pub severity: String,
    pub source: String,
    pub start: Position,
    pub end: Position,
    pub code: Option<String>,
    pub message: String,
}

/// Language servers of the machine. They answer where the front-end cannot.
pub trait LanguageServices: Send + Sync {
    /// Whether one is installed for the languages of the workspace. Looks at few files and starts nothing.
    fn are_useful(&self) -> bool;

    /// Answers diagnostics, definitions and references for these workspace folders.
    fn ask<'a>(
        &'a self,
        call: HostCall,
        roots: &'a [PathBuf],
        deadline: Duration,
    ) -> BoxFuture<'a, Result<LanguageAnswer, Failure>>;

    /// Whether a server for this file runs already.
    fn is_running_for(&self, _path: &Path, _roots: &[PathBuf]) -> bool {
        false
    }

    /// Ends every process it owns.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LanguageAnswer {
    pub reply: HostReply,
    /// Why the answer may lack something.
    pub note: Option<String>,
}
