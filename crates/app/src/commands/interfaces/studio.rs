//! `dragoman studio`: serves the page, starts `dragoman copilot` for it, and opens the browser.
//!
//! Invariant: nothing listens before this command, and nothing after it; children end with it.

use std::any::Any;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::ValueEnum as _;
use config::{Environment, Inputs, McpLoginPlace, StudioCredentialFile};
use domain::tool::{ServerStatus, ToolSource, ToolSpec};
use domain::{BoxFuture, Failure};
use interfaces::studio::cli::Program;
use interfaces::studio::{
    self, CredentialFile, GivenSpecification, PluginAnswer, PluginHost, PluginTool, Studio, StudioOptions,
    TriedPlugin,
};
use mcp::{LoginStore, SealedLogins};
use serde_json::Value;
use web::{Bound, Host, Site};

use super::plugin_calls::{self, SERVER_TIMEOUT};
use crate::cli::Level;
use crate::commands::failed;
use crate::commands::mcp::status::try_servers;
use crate::commands::studio_arguments::StudioArguments;
use crate::commands::web_page::{self, Start};
use crate::keyring::SystemKeyring;
use crate::servers::ConfiguredServers;
use crate::{lifetime, logging, mcp_entries, stores};

const CHILDREN_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: StudioArguments, level: Option<Level>) -> ExitCode {
    if web::pages::STUDIO.is_empty() || interfaces::REACT.is_none() {
        return failed(&Failure::config("This dragoman was built without the page of studio.").hint(
            "Build it with `make build` (node and npm are needed); it is target/release/dragoman then.",
        ));
    }
    let given = match arguments.spec.as_deref().map(interfaces::given_specification).transpose() {
        Ok(given) => given,
        Err(failure) => return failed(&failure),
    };
    let environment = Environment::from_process();
    logging::start(&environment, level);
    lifetime::run(serve(arguments, given, environment, level))
}

async fn serve(
    arguments: StudioArguments,
    given: Option<GivenSpecification>,
    environment: Environment,
    level: Option<Level>,
) -> Result<(), Failure> {
    let host = Host::bind(arguments.port).await.map_err(|error| web_page::no_port(arguments.port, &error))?;
    let bound = host.bound().clone();
    let studio = Studio::open(options(&environment, &bound, level)?).await?;
    let site = Site {
        name: "studio",
        version: env!("CARGO_PKG_VERSION"),
        assets: web::pages::STUDIO,
        frame_script: interfaces::REACT,
        api: studio.api(),
        open: studio.open_routes(),
        is_client: web::no_clients,
        body_limit: studio::body_limit,
    };
    if let Some(given) = given {
        let studio = studio.clone();
        tokio::spawn(async move { studio.open_specification(given).await });
    }
    let start = Start { name: "Studio", no_open: arguments.no_open, json: arguments.json };
    // Whoever reads the link may end the program at once: the signal is waited for before.
    let served = async {
        web_page::announce(&start, &bound, &environment)?;
        host.serve(site, studio::is_open, std::future::pending()).await;
        Ok(())
    };
    let served = lifetime::until_signal(served).await;
    studio.close().await;
    let _ = tokio::time::timeout(CHILDREN_SHUTDOWN_TIMEOUT, process::shutdown()).await;
    served.unwrap_or(Ok(()))
}

fn options(environment: &Environment, bound: &Bound, level: Option<Level>) -> Result<StudioOptions, Failure> {
    let resolved = config::resolve(environment, &Inputs::default());
    logging::redact_with(&resolved.redactor);
    let own = std::env::current_exe()
        .map_err(|error| Failure::internal(format!("The program does not find itself: {error}.")))?;
    Ok(StudioOptions {
        store: stores::open(environment)?,
        launcher: Arc::new(Program {
            path: own,
            arguments: child_arguments(level),
            environment: resolved.provider_environment(environment),
        }),
        credentials: Arc::new(KeptCredentials::new(environment, resolved.settings.mcp_logins)),
        plugins: Arc::new(UserServers(Arc::new(environment.clone()))),
        react: interfaces::REACT,
        project_files: interfaces::own_files,
        origin: bound.origin(),
        health_check: studio::HEALTH_CHECK,
    })
}

/// The child logs as this process does; what it writes is in the page's console.
fn child_arguments(level: Option<Level>) -> Vec<OsString> {
    let name = level.and_then(|level| level.to_possible_value()).map(|value| value.get_name().to_owned());
    let log = name.into_iter().flat_map(|name| ["--log-level".into(), name.into()]);
    std::iter::once("copilot".into()).chain(log).collect()
}

/// The file of kept credentials, encrypted where the user chose the keyring for logins.
struct KeptCredentials(SealedLogins);

impl KeptCredentials {
    fn new(environment: &Environment, place: McpLoginPlace) -> Self {
        let file = Arc::new(CredentialText(StudioCredentialFile::new(environment)));
        let keyring = Box::new(SystemKeyring::new(environment));
        Self(SealedLogins::new(file, keyring, Some(place == McpLoginPlace::Keyring)))
    }
}

impl CredentialFile for KeptCredentials {
    fn read(&self) -> Result<Option<String>, Failure> {
        self.0.read()
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        self.0.change(&mut |_| Ok(text.to_owned()))
    }
}

/// The file as it is on disk. Only one studio of a user runs, so nothing has to be locked.
struct CredentialText(StudioCredentialFile);

impl LoginStore for CredentialText {
    fn read(&self) -> Result<Option<String>, Failure> {
        self.0.read()
    }

    fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        let before = self.0.read()?.unwrap_or_default();
        let after = change(&before)?;
        if after == before { Ok(()) } else { self.0.write(&after) }
    }

    fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure> {
        Ok(Box::new(()))
    }

    fn changed_at(&self) -> Option<SystemTime> {
        None
    }
}

/// The MCP servers of the user's own settings.
struct UserServers(Arc<Environment>);

impl PluginHost for UserServers {
    fn names(&self) -> Vec<String> {
        let resolved = config::resolve(&self.0, &Inputs::default());
        resolved.settings.mcp_servers.keys().cloned().collect()
    }

    fn try_out(&self, name: String) -> BoxFuture<'static, TriedPlugin> {
        let environment = self.0.clone();
        Box::pin(async move {
            let resolved = config::resolve(&environment, &Inputs::default());
            let servers = ConfiguredServers::for_command(&environment, &resolved, &[]);
            let tried = try_servers(&servers, Some(&name), SERVER_TIMEOUT).await.into_iter().next();
            let version = servers.supervisor().program_version(&name);
            servers.shutdown().await;
            let Some(tried) = tried else {
                let fault = Some("The settings no longer name it.".to_owned());
                return TriedPlugin { version: None, tools: Vec::new(), fault };
            };
            let is_running = tried.server.status == ServerStatus::Running;
            let problem = tried.server.problem().unwrap_or_else(|| "It did not start in time.".to_owned());
            TriedPlugin {
                version,
                tools: tried.server.tools.into_iter().map(plugin_tool).collect(),
                fault: (!is_running).then(|| resolved.redactor.redact(&problem).into_owned()),
            }
        })
    }

    fn call(
        &self,
        name: String,
        tool: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<PluginAnswer, Failure>> {
        plugin_calls::call(self.0.clone(), name, tool, arguments)
    }

    fn add(&self, name: &str, entry: &Value) -> Result<(), Failure> {
        mcp_entries::add(&self.0, name, entry, None).map(drop)
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        mcp_entries::remove(&self.0, &[], name).map(drop)
    }
}

fn plugin_tool(tool: ToolSpec) -> PluginTool {
    PluginTool { name: tool.name, description: tool.description, input_schema: tool.input_schema }
}
