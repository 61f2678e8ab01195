//! The built-in tools as one source of tools for the engine.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use domain::host::LanguageServices;
use domain::job::{Job, JobOutput};
use domain::tool::{ServerStatus, ToolEffect, ToolServer, ToolSource};
use domain::tool_call::Origin;
use domain::{BoxFuture, SessionId, Tool};

use crate::contexts::Contexts;
use crate::edit::files::Files;
use crate::edit::seen::SeenFiles;
use crate::index::Indexes;
use crate::jobs::Jobs;
use crate::offered::into_tool;
use crate::options::Options;
use crate::outputs::OutputFolder;
use crate::paths::Paths;
use crate::tool::after_edit::CheckedEdit;
use crate::tool::apply_patch::ApplyPatch;
use crate::tool::ask_user::AskUser;
use crate::tool::background_job::BackgroundJob;
use crate::tool::compact_chat::CompactChat;
use crate::tool::custom::CustomCommand;
use crate::tool::directory_tree::DirectoryTree;
use crate::tool::edit_file::EditFile;
use crate::tool::editor_diagnostics::EditorDiagnostics;
use crate::tool::editor_places::{CodeQuestions, EditorDefinition, EditorReferences};
use crate::tool::fetch_url::FetchUrl;
use crate::tool::formatting::Formatters;
use crate::tool::glob::Glob;
use crate::tool::grep::Grep;
use crate::tool::move_file::MoveFile;
use crate::tool::preview_file_change::PreviewFileChange;
use crate::tool::read_file::ReadFile;
use crate::tool::shell_command::{ShellCommand, ShellRunner};
use crate::tool::task::Task;
use crate::tool::web_search::WebSearch;
use crate::tool::write_file::WriteFile;
use crate::web::fetch::Fetcher;
use crate::web::search::Searcher;

/// How clients call the server of the built-in tools.
const DISPLAY_NAME: &str = "ECA";

pub struct BuiltInTools {
    tools: Vec<Arc<dyn Tool>>,
    jobs: Arc<Jobs>,
    outputs: OutputFolder,
    contexts: Arc<Contexts>,
    services: Option<Arc<dyn LanguageServices>>,
}

pub fn builtin(options: Options) -> Arc<dyn ToolSource> {
    Arc::new(BuiltInTools::new(options))
}

impl BuiltInTools {
    pub fn new(mut options: Options) -> Self {
        options.limits = options.limits.within_ceilings();
        let files = Arc::new(Files {
            paths: Paths::new(options.home.clone(), options.outputs.clone()),
            seen: SeenFiles::default(),
            limits: options.limits.clone(),
        });
        let jobs = Arc::new(Jobs::new(options.limits.background_jobs, options.jobs_observer.clone()));
        let runner = ShellRunner {
            shell: options.shell.clone(),
            withheld: options.withheld_environment.clone(),
            home: options.home.clone(),
            sandbox: options.sandbox.clone(),
        };
        let limits = &options.limits;
        let fetcher =
            Arc::new(Fetcher::new(options.private_hosts.clone(), limits.fetch_bytes, limits.fetch_time));
        let contexts =
            Contexts { files: files.clone(), indexes: Indexes::default(), fetcher: fetcher.clone() };
        let services = options.language_services.0.clone();
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            into_tool(DirectoryTree { files: files.clone() }),
            into_tool(ReadFile { files: files.clone() }),
            into_tool(WriteFile { files: files.clone() }),
            into_tool(EditFile { files: files.clone() }),
            into_tool(ApplyPatch { files: files.clone() }),
            into_tool(PreviewFileChange { files: files.clone() }),
            into_tool(MoveFile { files: files.clone() }),
            into_tool(Grep { files: files.clone() }),
            into_tool(Glob { files: files.clone() }),
            into_tool(shell_command(&files, &jobs, &runner)),
            into_tool(BackgroundJob { jobs: jobs.clone(), limits: options.limits.clone() }),
        ];
        tools.extend(code_tools(&files, services.clone()));
        tools.push(into_tool(FetchUrl { fetcher, output_bytes: limits.output_bytes }));
        tools.extend([into_tool(AskUser), into_tool(Task), into_tool(CompactChat)]);
        let search = options.web_search.clone().map(|backend| WebSearch { searcher: Searcher::new(backend) });
        tools.extend(search.map(into_tool));
        let shell = Arc::new(shell_command(&files, &jobs, &runner));
        for custom in options.custom_tools {
            if !tools.iter().any(|tool| tool.spec().name == custom.name) {
                tools.push(Arc::new(CustomCommand::new(custom, shell.clone())));
            }
        }
        tools.retain(|tool| !options.disabled.contains(&tool.spec().name));
        let formatters = Formatters { lines: options.formatters, sandbox: options.sandbox };
        let tools =
            tools.into_iter().map(|tool| checked(tool, &files, services.as_ref(), &formatters)).collect();
        Self { tools, jobs, outputs: options.outputs, contexts: Arc::new(contexts), services }
    }

    /// The files of the workspace for contexts and plain reads. What is read there counts as read by the tools.
    pub fn files(&self) -> Arc<dyn domain::files::Files> {
        self.contexts.clone()
    }
}

/// A tool that changes files names new diagnostics in its results.
fn checked(
    tool: Arc<dyn Tool>,
    files: &Arc<Files>,
    services: Option<&Arc<dyn LanguageServices>>,
    formatters: &Formatters,
) -> Arc<dyn Tool> {
    if tool.spec().effect != ToolEffect::WritesFiles {
        return tool;
    }
    let (files, services, formatters) = (files.clone(), services.cloned(), formatters.clone());
    Arc::new(CheckedEdit { inner: tool, files, services, formatters, barren: AtomicUsize::new(0) })
}

/// The tools that answer questions about code.
fn code_tools(files: &Arc<Files>, services: Option<Arc<dyn LanguageServices>>) -> [Arc<dyn Tool>; 3] {
    let service_time = files.limits.language_server_time;
    let questions = Arc::new(CodeQuestions { files: files.clone(), services, service_time });
    [
        into_tool(EditorDiagnostics { questions: questions.clone() }),
        into_tool(EditorDefinition { questions: questions.clone() }),
        into_tool(EditorReferences { questions }),
    ]
}

fn shell_command(files: &Arc<Files>, jobs: &Arc<Jobs>, runner: &ShellRunner) -> ShellCommand {
    ShellCommand {
        files: files.clone(),
        jobs: jobs.clone(),
        runner: runner.clone(),
        reviewed: Mutex::default(),
        told: Mutex::default(),
    }
}

impl ToolSource for BuiltInTools {
    fn servers(&self) -> Vec<ToolServer> {
        vec![ToolServer {
            name: DISPLAY_NAME.to_owned(),
            origin: Origin::Native,
            status: ServerStatus::Running,
            command: String::new(),
            args: Vec::new(),
            url: None,
            error: None,
            tools: self.tools.iter().map(|tool| tool.spec().clone()).collect(),
            prompts: Vec::new(),
            resources: Vec::new(),
            has_login: false,
        }]
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn jobs(&self) -> Vec<Job> {
        self.jobs.list()
    }

    fn stop_job<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<bool>> {
        Box::pin(self.jobs.kill(id))
    }

    fn job_output(&self, id: &str) -> Option<JobOutput> {
        self.jobs.output(id)
    }

    fn forget<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.jobs.stop_all_of(session).await;
            // What cannot be deleted now goes when the chats are tidied.
            let _ = self.outputs.forget(session);
        })
    }

    fn stop_jobs_of<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(self.jobs.stop_all_of(session))
    }

    /// Language servers are started again by the next question.
    fn suspend(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(services) = &self.services {
                services.stop().await;
            }
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(services) = &self.services {
                services.stop().await;
            }
            self.jobs.stop_all().await;
        })
    }
}
