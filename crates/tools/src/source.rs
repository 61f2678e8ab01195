//! The built-in tools as one source of tools for the engine.

use std::sync::Arc;

use domain::Tool;
use domain::tool::{ServerStatus, ToolServer, ToolSource};
use domain::tool_call::Origin;

use crate::edit::files::Files;
use crate::edit::seen::Seen;
use crate::offered::offer;
use crate::options::Options;
use crate::paths::Paths;
use crate::tool::ask_user::AskUser;
use crate::tool::compact_chat::CompactChat;
use crate::tool::directory_tree::DirectoryTree;
use crate::tool::edit_file::EditFile;
use crate::tool::editor_diagnostics::EditorDiagnostics;
use crate::tool::glob::Glob;
use crate::tool::grep::Grep;
use crate::tool::move_file::MoveFile;
use crate::tool::preview_file_change::PreviewFileChange;
use crate::tool::read_file::ReadFile;
use crate::tool::task::Task;
use crate::tool::write_file::WriteFile;

/// How clients call the server of the built-in tools.
const SHOWN: &str = "ECA";

pub struct BuiltIn {
    tools: Vec<Arc<dyn Tool>>,
}

pub fn builtin(options: Options) -> Arc<dyn ToolSource> {
    Arc::new(BuiltIn::new(options))
}

impl BuiltIn {
    pub fn new(options: Options) -> Self {
        let files = Arc::new(Files {
            paths: Paths::new(options.home.clone()),
            seen: Seen::default(),
            limits: options.limits.clone(),
        });
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            offer(DirectoryTree { files: files.clone() }),
            offer(ReadFile { files: files.clone() }),
            offer(WriteFile { files: files.clone() }),
            offer(EditFile { files: files.clone() }),
            offer(PreviewFileChange { files: files.clone() }),
            offer(MoveFile { files: files.clone() }),
            offer(Grep { files: files.clone() }),
            offer(Glob { files: files.clone() }),
            offer(EditorDiagnostics { files }),
            offer(AskUser),
            offer(Task),
            offer(CompactChat),
        ];
        tools.retain(|tool| !options.disabled.contains(&tool.spec().name));
        Self { tools }
    }
}

impl ToolSource for BuiltIn {
    fn servers(&self) -> Vec<ToolServer> {
        vec![ToolServer {
            name: SHOWN.to_owned(),
            origin: Origin::Native,
            status: ServerStatus::Running,
            command: String::new(),
            args: Vec::new(),
            url: None,
            error: None,
            tools: self.tools.iter().map(|tool| tool.spec().clone()).collect(),
        }]
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }
}
