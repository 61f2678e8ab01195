//! Turns settings into MCP servers; resolves a server's command and secrets when it starts.
//!
//! Actions that change the configuration (enable, disable, add, update, remove) are written to its file first and then take
//! effect on the running servers.

use std::any::Any;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::{
    Environment, Inputs, LazyText, ManagedRules, McpGrant, McpLoginFile, McpLoginPlace, McpOauth, McpServer,
    McpTransport, Resolved, SecretSource,
};
use domain::command::{ServerSpec, ServerTransport};
use domain::event::{CatalogKind, Notice};
use domain::names::is_same_name;
use domain::tool::{Resource, ServerAction, ServerPrompt, Tool, ToolServer, ToolSource};
use domain::{BoxFuture, Failure, Part};
use mcp::{
    Identity, ListStore, LoginStore, OauthGrant, OauthLookup, OauthSettings, OpenBrowser, Options,
    SealedLogins, ServerConfig, ServerDisplay, Supervisor,
};
use process::Spawn;
use process::sandbox::Grant;
use serde_json::{Value, json};

use crate::keyring::SystemKeyring;
use crate::mcp_entries;
use crate::sandboxing::{self, WorkspaceSandbox, read_grants};

/// How long the program that opens a browser may run.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(60);

/// The servers of a configuration.
pub(crate) struct ConfiguredServers {
    supervisor: Supervisor,
    environment: Arc<Environment>,
    roots: Vec<PathBuf>,
    sandbox: Option<WorkspaceSandbox>,
}

impl ConfiguredServers {
    /// Starts none of them.
    pub(crate) fn new(
        environment: &Arc<Environment>,
        resolved: &Resolved,
        roots: &[PathBuf],
        options: Options,
        sandbox: Option<&WorkspaceSandbox>,
        notices: &mut Vec<Notice>,
    ) -> Self {
        let servers = resolved.settings.mcp_servers.iter();
        let servers =
            servers.map(|(name, server)| server_config(name, server, resolved, sandbox, notices)).collect();
        Self {
            supervisor: Supervisor::new(servers, options),
            environment: environment.clone(),
            roots: roots.to_vec(),
            sandbox: sandbox.cloned(),
        }
    }

    /// The servers of a command that looks at them and ends; none of them is started.
    pub(crate) fn for_command(
        environment: &Arc<Environment>,
        resolved: &Resolved,
        folders: &[PathBuf],
    ) -> Self {
        let notices = &mut Vec::new();
        let sandbox = sandboxing::workspace_sandbox(environment, resolved, folders, notices);
        let options = Options {
            sandbox: sandbox.as_ref().map(|sandbox| sandbox.sandbox.clone()),
            forms: false,
            ..options(environment, resolved, folders, Arc::new(|| ()))
        };
        Self::new(environment, resolved, folders, options, sandbox.as_ref(), notices)
    }

    pub(crate) fn start(&self) {
        self.supervisor.start();
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Lets a server offer other tools than before.
    pub(crate) fn forget_list(&self, name: &str) -> Result<(), Failure> {
        self.supervisor.forget_list(name, &ToolLists::of(&self.environment))
    }

    /// Makes the running server what the configuration says now.
    async fn reload(&self, name: &str) -> Result<(), Failure> {
        if self.supervisor.servers().iter().any(|server| is_same_name(&server.name, name)) {
            self.supervisor.remove(name).await?;
        }
        let inputs = Inputs { workspace_roots: self.roots.clone(), ..Inputs::default() };
        let resolved = config::resolve(&self.environment, &inputs);
        let known = resolved.settings.mcp_servers.iter().find(|(known, _)| is_same_name(known, name));
        if let Some((name, server)) = known {
            let config = server_config(name, server, &resolved, self.sandbox.as_ref(), &mut Vec::new());
            self.supervisor.add(config);
        }
        Ok(())
    }

    async fn change_configuration(&self, name: &str, action: ServerAction) -> Result<(), Failure> {
        match action {
            ServerAction::Add { entry, folder } => {
                mcp_entries::add(&self.environment, name, &entry, folder.as_deref())?;
            }
            ServerAction::Update { changes } => {
                mcp_entries::update(&self.environment, &self.roots, name, &changes)?;
            }
            ServerAction::Remove => drop(mcp_entries::remove(&self.environment, &self.roots, name)?),
            ServerAction::Enable => {
                mcp_entries::update(&self.environment, &self.roots, name, &json!({"disabled": null}))?;
            }
            ServerAction::Disable => {
                mcp_entries::update(&self.environment, &self.roots, name, &json!({"disabled": true}))?;
            }
            ServerAction::Start | ServerAction::Stop | ServerAction::Login | ServerAction::Logout => {
                return self.supervisor.act(name, action).await;
            }
        }
        self.reload(name).await
    }
}

impl ToolSource for ConfiguredServers {
    fn servers(&self) -> Vec<ToolServer> {
        self.supervisor.servers()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.supervisor.tools()
    }

    fn instructions(&self) -> Vec<String> {
        self.supervisor.instructions()
    }

    fn takes_servers(&self) -> bool {
        true
    }

    fn act<'a>(&'a self, server: &'a str, action: ServerAction) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.change_configuration(server, action))
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        self.supervisor.prompts()
    }

    fn prompt<'a>(&'a self, name: &'a str, arguments: Value) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        self.supervisor.prompt(name, arguments)
    }

    fn resources(&self) -> Vec<Resource> {
        self.supervisor.resources()
    }

    fn templated_resources<'a>(&'a self, typed: &'a str) -> BoxFuture<'a, Vec<Resource>> {
        self.supervisor.templated_resources(typed)
    }

    fn complete_prompt<'a>(&'a self, name: &'a str, arguments: &'a [String]) -> BoxFuture<'a, Vec<String>> {
        self.supervisor.complete_prompt(name, arguments)
    }

    fn resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<Vec<Part>, Failure>> {
        self.supervisor.resource(server, uri)
    }

    fn first_lists(&self) -> BoxFuture<'_, ()> {
        self.supervisor.first_lists()
    }

    fn suspend(&self) -> BoxFuture<'_, ()> {
        self.supervisor.suspend()
    }

    fn resume(&self) {
        self.supervisor.resume();
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.supervisor.shutdown()
    }
}

/// How an engine runs its servers.
#[derive(Clone, Copy)]
pub(crate) struct ServerRun {
    /// The front-end can show forms.
    pub forms: bool,
    /// Nothing is written.
    pub is_ephemeral: bool,
}

impl ServerRun {
    /// The tools that servers offered last, one file each.
    fn kept_lists(self, environment: &Environment) -> Option<Arc<dyn ListStore>> {
        (!self.is_ephemeral).then(|| -> Arc<dyn ListStore> { Arc::new(ToolLists::of(environment)) })
    }
}

/// Starts the servers of a workspace in the background.
pub(crate) fn workspace_servers(
    environment: &Arc<Environment>,
    resolved: &Resolved,
    roots: &[PathBuf],
    changes: &engine::CatalogChanges,
    sandbox: Option<&WorkspaceSandbox>,
    run: ServerRun,
    notices: &mut Vec<Notice>,
) -> Arc<dyn ToolSource> {
    let options = Options {
        sandbox: sandbox.map(|sandbox| sandbox.sandbox.clone()),
        forms: run.forms,
        kept_lists: run.kept_lists(environment),
        ..options(environment, resolved, roots, catalog_notifier(changes))
    };
    let servers = Arc::new(ConfiguredServers::new(environment, resolved, roots, options, sandbox, notices));
    let starting = servers.clone();
    tokio::spawn(async move { starting.start() });
    servers
}

/// Servers that a client sent with a session.
pub(crate) fn session_servers(
    environment: &Arc<Environment>,
    servers: &[ServerSpec],
    roots: &[PathBuf],
    changes: &engine::CatalogChanges,
    sandbox: Option<WorkspaceSandbox>,
    run: ServerRun,
) -> Arc<dyn ToolSource> {
    let sandbox = sandbox.map(|sandbox| sandbox.sandbox);
    let rules = environment.managed().map(|managed| managed.rules.clone()).unwrap_or_default();
    let permitted =
        servers.iter().filter(|server| match check_permitted(&rules, &server.name, &server.transport) {
            Ok(()) => true,
            Err(failure) => {
                tracing::warn!(%failure, "a server of an editor is left out");
                false
            }
        });
    let permitted: Vec<ServerSpec> = permitted.cloned().collect();
    mcp::session_servers(
        &permitted,
        Options {
            sandbox,
            forms: run.forms,
            logins: Some(Arc::new(logins(environment, None))),
            kept_lists: run.kept_lists(environment),
            open_browser: browser(environment),
            ..Options::new(roots.to_vec(), catalog_notifier(changes))
        },
    )
}

/// The options for servers of a configuration.
pub(crate) fn options(
    environment: &Environment,
    resolved: &Resolved,
    roots: &[PathBuf],
    changed: Arc<dyn Fn() + Send + Sync>,
) -> Options {
    Options {
        withheld_environment: resolved.secret_variables.clone(),
        start_timeout: resolved.settings.mcp_timeout,
        call_timeout: resolved.settings.mcp_timeout,
        logins: Some(Arc::new(logins(environment, Some(resolved.settings.mcp_logins)))),
        open_browser: browser(environment),
        ..Options::new(roots.to_vec(), changed)
    }
}

/// Without a place they are kept as they were.
pub(crate) fn logins(environment: &Environment, place: Option<McpLoginPlace>) -> SealedLogins {
    let file = Arc::new(Logins(McpLoginFile::new(environment)));
    let is_wanted = place.map(|place| place == McpLoginPlace::Keyring);
    SealedLogins::new(file, Box::new(SystemKeyring::new(environment)), is_wanted)
}

/// A folder with a file for each server.
struct ToolLists(PathBuf);

impl ToolLists {
    fn of(environment: &Environment) -> Self {
        Self(environment.data_dir().join("mcp-tools"))
    }
}

impl ListStore for ToolLists {
    fn read(&self, key: &str) -> Option<String> {
        std::fs::read_to_string(self.0.join(key)).ok()
    }

    fn remove(&self, key: &str) {
        let _ = std::fs::remove_file(self.0.join(key));
    }

    fn write(&self, key: &str, text: &str) {
        let written = std::fs::create_dir_all(&self.0)
            .and_then(|()| tempfile::NamedTempFile::new_in(&self.0))
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.persist(self.0.join(key)).map_err(|error| error.error)
            });
        if let Err(error) = written {
            tracing::warn!(%error, "the tools of an MCP server could not be kept");
        }
    }
}

/// The file of logins, as the MCP client uses it.
struct Logins(McpLoginFile);

impl LoginStore for Logins {
    fn read(&self) -> Result<Option<String>, Failure> {
        self.0.read()
    }

    fn change(&self, change: &mut dyn FnMut(&str) -> Result<String, Failure>) -> Result<(), Failure> {
        self.0.change(change)
    }

    fn lock_renewal(&self) -> Result<Box<dyn Any + Send>, Failure> {
        Ok(Box::new(self.0.lock_renewal()?))
    }

    fn changed_at(&self) -> Option<SystemTime> {
        self.0.changed_at()
    }
}

/// Opens an address with the program of `$BROWSER`; `None` where that is not set.
pub(crate) fn browser(environment: &Environment) -> Option<OpenBrowser> {
    let program = environment.var("BROWSER")?.split(':').next()?.to_owned();
    Some(Arc::new(move |url: &str| {
        let (program, url) = (program.clone(), url.to_owned());
        tokio::spawn(async move {
            let stop = domain::CancellationToken::new();
            let opened = Spawn::new(&program).arg(&url).deadline(BROWSER_TIMEOUT).run(&stop).await;
            if let Err(error) = opened {
                tracing::info!(%error, "the browser could not be started");
            }
        });
    }))
}

fn catalog_notifier(changes: &engine::CatalogChanges) -> Arc<dyn Fn() + Send + Sync> {
    let changes = changes.clone();
    Arc::new(move || changes.publish(CatalogKind::ToolServers))
}

fn server_config(
    name: &str,
    server: &McpServer,
    resolved: &Resolved,
    sandbox: Option<&WorkspaceSandbox>,
    notices: &mut Vec<Notice>,
) -> ServerConfig {
    let mut grants = read_grants(&server.grants, &format!("mcpServers.{name}.grants"), notices);
    grants.extend(sandbox.iter().flat_map(|sandbox| sandbox.grants.clone()));
    grants.extend(server.network.then_some(Grant::Network));
    let transport = server.transport.clone();
    let shown = match &transport {
        McpTransport::Stdio { command, args, .. } => ServerDisplay {
            command: command.written().to_owned(),
            args: args.iter().map(|argument| argument.written().to_owned()).collect(),
            url: None,
        },
        McpTransport::Http { url, .. } => {
            ServerDisplay { command: String::new(), args: Vec::new(), url: Some(url.written().to_owned()) }
        }
    };
    let (managed, own_name) = (resolved.settings.managed.clone(), name.to_owned());
    let lookup: mcp::Lookup = Arc::new(move || {
        let (transport, managed, name) = (transport.clone(), managed.clone(), own_name.clone());
        Box::pin(async move {
            let transport = resolve_transport(&transport).await?;
            check_permitted(&managed, &name, &transport).map(|()| transport)
        })
    });
    let oauth = oauth_lookup(&server.transport, resolved.settings.mcp_client_metadata_url.clone());
    let (name, disabled, sampling) = (name.to_owned(), server.disabled, server.sampling);
    ServerConfig { name, disabled, display: shown, lookup, oauth, grants, sampling }
}

/// The administrator decides about a server with its address or program, as they are in the end.
fn check_permitted(managed: &ManagedRules, name: &str, transport: &ServerTransport) -> Result<(), Failure> {
    let is_permitted = match transport {
        ServerTransport::Stdio { command, args, .. } => {
            let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
            managed.permits_server(name, None, &words)
        }
        ServerTransport::Http { url, .. } => managed.permits_server(name, Some(url), &[]),
    };
    if is_permitted { Ok(()) } else { Err(ManagedRules::refusal(&format!("The MCP server {name}"))) }
}

/// Looks up the settings of a login when the server starts.
fn oauth_lookup(transport: &McpTransport, client_metadata_url: Option<String>) -> OauthLookup {
    let oauth = match transport {
        McpTransport::Http { oauth, .. } => oauth.clone(),
        McpTransport::Stdio { .. } => McpOauth::default(),
    };
    Arc::new(move || {
        let (oauth, client_metadata_url) = (oauth.clone(), client_metadata_url.clone());
        Box::pin(async move {
            let client_id = resolve_text(oauth.client_id.as_ref()).await?;
            let identity = match &oauth.identity {
                Some((token, endpoint, client_id)) => Some(Identity {
                    token: token.get().await?.expose().to_owned(),
                    endpoint: endpoint.get().await?.to_owned(),
                    client_id: resolve_text(client_id.as_ref()).await?,
                }),
                None => None,
            };
            Ok(OauthSettings {
                client_id,
                client_secret: resolve_secret(oauth.client_secret.as_ref()).await?,
                issuer: oauth.issuer.clone(),
                private_key: resolve_secret(oauth.private_key.as_ref()).await?,
                assertion: resolve_secret(oauth.assertion.as_ref()).await?,
                identity,
                grant: match oauth.grant {
                    McpGrant::AuthorizationCode => OauthGrant::AuthorizationCode,
                    McpGrant::ClientCredentials => OauthGrant::ClientCredentials,
                    McpGrant::JwtBearer => OauthGrant::JwtBearer,
                },
                port: oauth.port,
                client_name: oauth.client_name.clone(),
                client_metadata_url,
            })
        })
    })
}

async fn resolve_text(text: Option<&LazyText>) -> Result<Option<String>, Failure> {
    match text {
        Some(text) => Ok(Some(text.get().await?.to_owned())),
        None => Ok(None),
    }
}

async fn resolve_secret(secret: Option<&SecretSource>) -> Result<Option<String>, Failure> {
    match secret {
        Some(secret) => Ok(Some(secret.get().await?.expose().to_owned())),
        None => Ok(None),
    }
}

async fn resolve_transport(transport: &McpTransport) -> Result<ServerTransport, Failure> {
    match transport {
        McpTransport::Stdio { command, args, env } => Ok(ServerTransport::Stdio {
            command: command.get().await?.to_owned(),
            args: resolve_texts(args).await?,
            env: resolve_secrets(env).await?,
        }),
        McpTransport::Http { url, headers, .. } => Ok(ServerTransport::Http {
            url: url.get().await?.to_owned(),
            headers: resolve_secrets(headers).await?,
        }),
    }
}

async fn resolve_texts(values: &[LazyText]) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::with_capacity(values.len());
    for value in values {
        texts.push(value.get().await?.to_owned());
    }
    Ok(texts)
}

pub(crate) async fn resolve_secrets(
    values: &[(String, SecretSource)],
) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::with_capacity(values.len());
    for (name, value) in values {
        pairs.push((name.clone(), value.get().await?.expose().to_owned()));
    }
    Ok(pairs)
}
