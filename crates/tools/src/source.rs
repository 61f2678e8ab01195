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
use crate::tool::edit_file::EditFile;
use crate::tool::preview_file_change::PreviewFileChange;
use crate::tool::read_file::ReadFile;
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
            offer(ReadFile { files: files.clone() }),
            offer(WriteFile { files: files.clone() }),
            offer(EditFile { files: files.clone() }),
            offer(PreviewFileChange { files: files.clone() }),
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
