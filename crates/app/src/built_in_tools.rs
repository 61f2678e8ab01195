//! Settings and environment → the built-in tools of a workspace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::Environment;
use domain::host::LanguageServices;
use domain::{BoxFuture, Failure};

use crate::language_servers;
use crate::sandboxing::WorkspaceSandbox;
use crate::servers;

/// What the first prompt needs is prepared this long after the start: the answer to `initialize` has left by then.
pub(crate) const PREPARE_DELAY: Duration = Duration::from_millis(10);

/// The built-in tools of these folders.
pub(crate) fn of_workspace(
    environment: &Environment,
    resolved: &config::Resolved,
    sandbox: Option<&WorkspaceSandbox>,
    jobs_observer: tools::jobs::JobsObserver,
    roots: &[PathBuf],
    is_ephemeral: bool,
) -> Arc<tools::BuiltInTools> {
    let language_services = language_servers::of_workspace(environment, resolved, roots, sandbox.is_some());
    if let Some(services) = language_services.0.clone() {
        tokio::spawn(look_for_servers(services));
    }
    let sandbox = sandbox.cloned().map(WorkspaceSandbox::into_tools);
    // Of a chat that is not kept nothing is kept.
    let outputs = if is_ephemeral { tools::outputs::OutputFolder::default() } else { outputs(environment) };
    let options = tools::Options {
        sandbox,
        outputs,
        jobs_observer,
        language_services,
        ..options(environment, resolved)
    };
    Arc::new(tools::BuiltInTools::new(options))
}

/// The options of the built-in tools.
pub(crate) fn options(environment: &Environment, resolved: &config::Resolved) -> tools::Options {
    let settings = &resolved.settings.tools;
    let shell = settings
        .shell
        .program
        .clone()
        .map(|program| std::iter::once(program).chain(settings.shell.args.iter().cloned()).collect());
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let usual = tools::Limits::default();
    tools::Options {
        home: Some(environment.home().to_owned()),
        shell,
        withheld_environment: resolved.secret_variables.clone(),
        private_hosts: settings.fetch_allowed_hosts.clone(),
        formatters: settings.formatters.clone(),
        custom_tools: settings.custom.iter().map(custom_tool).collect(),
        web_search: resolved.settings.web_search.as_ref().map(search_backend),
        limits: tools::Limits {
            read_lines: number(settings.read_file_max_lines),
            output_bytes: number(settings.output_max_bytes),
            host_time: settings.editor_timeout,
            language_server_time: resolved.settings.language_server_timeout,
            map_entries: settings.map.entries.map_or(usual.map_entries, number),
            map_entries_per_folder: settings.map.entries_per_folder.map_or(usize::MAX, number),
            ..usual
        },
        ..tools::Options::default()
    }
}

/// Where outputs that are too long for a result are kept.
pub(crate) fn outputs(environment: &Environment) -> tools::outputs::OutputFolder {
    tools::outputs::OutputFolder::new(environment.data_dir().join("outputs"))
}

fn custom_tool(tool: &config::CustomTool) -> tools::tool::custom::CustomTool {
    let config::CustomTool { name, description, command, input_schema } = tool.clone();
    tools::tool::custom::CustomTool { name, description, command, input_schema }
}

fn search_backend(settings: &config::WebSearchSettings) -> tools::web::search::SearchBackend {
    let (url, headers) = match settings {
        config::WebSearchSettings::Service { url, headers } => (url.clone(), headers.clone()),
        config::WebSearchSettings::Model(model) => {
            return tools::web::search::SearchBackend::Model(model.clone());
        }
    };
    let lookup = move || -> BoxFuture<'static, Result<Vec<(String, String)>, Failure>> {
        let headers = headers.clone();
        Box::pin(async move { servers::resolve_secrets(&headers).await })
    };
    let service = tools::web::search::SearchService { url, headers: Arc::new(lookup) };
    tools::web::search::SearchBackend::Service(service)
}

/// Looks for language servers while the user has not prompted yet: each folder of `PATH` may have some twenty programs.
async fn look_for_servers(services: Arc<dyn LanguageServices>) {
    tokio::time::sleep(PREPARE_DELAY).await;
    let _ = tokio::task::spawn_blocking(move || services.are_useful()).await;
}
