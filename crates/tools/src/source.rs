//! The built-in tools as one source of tools for the engine.

use std::sync::Arc;

use domain::tool::{ServerStatus, ToolServer, ToolSource};
use domain::tool_call::Origin;
use domain::{BoxFuture, Tool};

use crate::contexts::Contexts;
use crate::edit::files::Files;
use crate::edit::seen::Seen;
use crate::index::Indexes;
use crate::jobs::Jobs;
use crate::offered::offer;
use crate::options::Options;
use crate::paths::Paths;
use crate::tool::ask_user::AskUser;
use crate::tool::background_job::BackgroundJob;
use crate::tool::compact_chat::CompactChat;
use crate::tool::directory_tree::DirectoryTree;
use crate::tool::edit_file::EditFile;
use crate::tool::editor_diagnostics::EditorDiagnostics;
use crate::tool::fetch_url::FetchUrl;
use crate::tool::glob::Glob;
use crate::tool::grep::Grep;
use crate::tool::move_file::MoveFile;
use crate::tool::preview_file_change::PreviewFileChange;
use crate::tool::read_file::ReadFile;
use crate::tool::shell_command::{Runner, ShellCommand};
use crate::tool::task::Task;
use crate::tool::write_file::WriteFile;
use crate::web::fetch::Fetcher;

/// How clients call the server of the built-in tools.
const SHOWN: &str = "ECA";

pub struct BuiltIn {
    tools: Vec<Arc<dyn Tool>>,
    jobs: Arc<Jobs>,
    contexts: Arc<Contexts>,
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
        let jobs = Arc::new(Jobs::new(options.limits.background_jobs));
        let runner = Runner {
            shell: options.shell.clone(),
            withheld: options.withheld_environment.clone(),
            home: options.home.clone(),
        };
        let limits = &options.limits;
        let fetcher =
            Arc::new(Fetcher::new(options.private_hosts.clone(), limits.fetch_bytes, limits.fetch_time));
        let contexts =
            Contexts { files: files.clone(), indexes: Indexes::default(), fetcher: fetcher.clone() };
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            offer(DirectoryTree { files: files.clone() }),
            offer(ReadFile { files: files.clone() }),
            offer(WriteFile { files: files.clone() }),
            offer(EditFile { files: files.clone() }),
            offer(PreviewFileChange { files: files.clone() }),
            offer(MoveFile { files: files.clone() }),
            offer(Grep { files: files.clone() }),
            offer(Glob { files: files.clone() }),
            offer(ShellCommand { files: files.clone(), jobs: jobs.clone(), runner }),
            offer(BackgroundJob { jobs: jobs.clone() }),
            offer(EditorDiagnostics { files }),
            offer(FetchUrl { fetcher, output_bytes: limits.output_bytes }),
            offer(AskUser),
            offer(Task),
            offer(CompactChat),
        ];
        tools.retain(|tool| !options.disabled.contains(&tool.spec().name));
        Self { tools, jobs, contexts: Arc::new(contexts) }
    }

    /// The files of the workspace for contexts and plain reads. What is read there counts as read by the tools.
    pub fn files(&self) -> Arc<dyn domain::files::Files> {
        self.contexts.clone()
    }

    /// What runs in the background, for clients that show it.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
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

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.jobs.stop_all())
    }
}
