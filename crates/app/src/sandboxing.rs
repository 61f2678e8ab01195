//! Settings and environment → the sandbox of a workspace, and the start of this program as the sandbox's helper.
//! It must not know how the wall is built. Invariant: making a sandbox looks at no file and starts nothing.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use config::{Environment, Resolved};
use domain::event::{Level, Notice};
use process::sandbox::{
    Facts, Grant, HELPER_ARGUMENT, HostFilter, ProjectGrants, Sandbox, launch, places, proxy, support,
};

/// A variable that leaves namespaces out, for systems where they fail late and for trying the smaller wall.
const NO_NAMESPACES: &str = "DRAGOMAN_NO_NAMESPACES";

/// Becomes the helper where the hidden first argument asks for it. Must run before the program has a second thread.
pub(crate) fn run_helper() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HELPER_ARGUMENT {
        return None;
    }
    Some(process::sandbox::run_helper(arguments))
}

/// The sandbox of a workspace with the user's own grants.
#[derive(Clone)]
pub(crate) struct WorkspaceSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) grants: Vec<Grant>,
    asks: bool,
    given: ProjectGrants,
}

impl WorkspaceSandbox {
    pub(crate) fn into_tools(self) -> tools::Confine {
        tools::Confine { sandbox: self.sandbox, grants: self.grants, asks: self.asks, given: self.given }
    }
}

/// What people granted to projects, beside the chats.
pub(crate) fn project_grants(environment: &Environment) -> ProjectGrants {
    ProjectGrants::new(environment.data_dir().join("grants.json"))
}

/// `None` where the user switched it off. Grants that cannot be read are notices.
pub(crate) fn workspace_sandbox(
    environment: &Environment,
    resolved: &Resolved,
    roots: &[PathBuf],
    notices: &mut Vec<Notice>,
) -> Option<WorkspaceSandbox> {
    if !resolved.settings.sandbox.enabled {
        return None;
    }
    if let Some(text) = missing_wall(environment) {
        notices.push(Notice { level: Level::Warning, text });
    }
    let grants = read_grants(&resolved.settings.sandbox.grants, "sandboxGrants", notices);
    let writable = grants
        .iter()
        .filter_map(|grant| if let Grant::Write(path) = grant { Some(path.clone()) } else { None });
    let settings = &resolved.settings.sandbox;
    let facts = Facts {
        writable: writable.collect(),
        required: settings.required,
        memory_megabytes: settings.memory_megabytes,
        passed: resolved.passed_variables.clone(),
        ..facts(environment, roots)
    };
    // Paths of the settings are facts: a missing one is left out instead of refusing every command.
    let grants = grants.into_iter().filter(|grant| !matches!(grant, Grant::Write(_))).collect();
    Some(WorkspaceSandbox {
        sandbox: Arc::new(Sandbox::new(facts)),
        grants,
        asks: resolved.settings.sandbox.asks,
        given: project_grants(environment),
    })
}

/// Reads grants as they are written in the configuration; the others are notices.
pub(crate) fn read_grants(texts: &[String], key: &str, notices: &mut Vec<Notice>) -> Vec<Grant> {
    let mut grants = Vec::new();
    for text in texts {
        match Grant::parse(text) {
            Ok(grant) => grants.push(grant),
            Err(reason) => notices.push(Notice { level: Level::Error, text: format!("`{key}`: {reason}") }),
        }
    }
    grants
}

pub(crate) fn facts(environment: &Environment, roots: &[PathBuf]) -> Facts {
    let names = places::VARIABLES.iter().copied().chain(places::registry_variables());
    let set = |name: &str| Some((name.to_owned(), environment.var(name)?.to_owned()));
    Facts {
        helper: launch::own_program(),
        home: environment.home().to_owned(),
        roots: roots.to_vec(),
        own_folders: vec![
            environment.config_dir(),
            environment.eca_config_dir(),
            environment.data_dir(),
            environment.state_dir(),
        ]
        .into_iter()
        .chain(crate::attaching::socket_folders(environment))
        .collect(),
        cache: environment.cache_dir(),
        temporary: std::env::temp_dir(),
        variables: names.filter_map(set).collect(),
        writable: Vec::new(),
        hosts: Vec::new(),
        upstream: upstream(environment),
        permitted: permitted_hosts(environment),
        passed: Vec::new(),
        memory_megabytes: None,
        own_state: Vec::new(),
        kept_state: Vec::new(),
        required: false,
        without_namespaces: environment.var(NO_NAMESPACES).is_some_and(|value| !value.is_empty()),
    }
}

/// Hosts of the machine's administrator.
fn permitted_hosts(environment: &Environment) -> Option<HostFilter> {
    let list = environment.managed()?.rules.hosts()?.clone();
    Some(HostFilter::new(move |host, port| list.permits(host, Some(port))))
}

/// The user's own proxy, which ours must use as well.
fn upstream(environment: &Environment) -> Option<proxy::Upstream> {
    let (_, address) = environment.first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?;
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let authority = rest.split(['/', '?']).next().filter(|authority| !authority.contains("://"))?;
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let encode = |user: &str| {
        let plain = percent_encoding::percent_decode_str(user).collect::<Vec<u8>>();
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(plain))
    };
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    Some(proxy::Upstream { address, authorization: user.map(encode) })
}

/// What can be known without starting anything: the whole truth is found by the first command and by `doctor`.
fn missing_wall(environment: &Environment) -> Option<String> {
    match support::expected() {
        None if environment.var(NO_NAMESPACES).is_none_or(str::is_empty) => None,
        None => Some(SMALLER.to_owned()),
        Some(support) if support.mode().is_some() => Some(SMALLER.to_owned()),
        Some(support) => Some(support.sentence()),
    }
}

const SMALLER: &str = "Namespaces are not available here, so the sandbox is smaller and more commands are asked about: \
                       `dragoman doctor` says what it does not protect.";
