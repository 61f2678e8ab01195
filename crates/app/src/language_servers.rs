//! Settings and environment → the language servers of a workspace.
//!
//! Invariant: making them looks at no file and starts nothing.

use std::path::PathBuf;
use std::sync::Arc;

use ::language_servers::{ConfiguredServer, LanguageServers, Options};
use config::{Environment, Resolved};
use process::sandbox::{Facts, Sandbox};
use sha2::{Digest, Sha256};
use tools::LanguageServicesHandle;

use crate::sandboxing;

pub(crate) fn of_workspace(
    environment: &Environment,
    resolved: &Resolved,
    roots: &[PathBuf],
    has_sandbox: bool,
) -> LanguageServicesHandle {
    let cache = cache_folder(environment, roots);
    let required = resolved.settings.sandbox.required;
    let facts = Facts { writable: vec![cache.clone()], required, ..sandboxing::facts(environment, roots) };
    let options = Options {
        search_path: environment.var("PATH").map(std::env::split_paths).into_iter().flatten().collect(),
        configured: resolved.settings.language_servers.iter().map(configured).collect(),
        sandbox: has_sandbox.then(|| Arc::new(Sandbox::new(facts))),
        read_only: roots.to_vec(),
        cache,
        is_trusted: resolved.folders.iter().all(config::trust::Folder::is_trusted),
        withheld_environment: resolved.secret_variables.clone(),
    };
    LanguageServicesHandle(Some(Arc::new(LanguageServers::new(options, roots.to_vec()))))
}

fn configured(server: &config::LanguageServer) -> ConfiguredServer {
    let config::LanguageServer { name, command, args, extensions, disabled } = server.clone();
    ConfiguredServer { name, command, args, extensions, disabled }
}

/// A folder for each workspace: what the builds of one leave there, another must not use.
fn cache_folder(environment: &Environment, roots: &[PathBuf]) -> PathBuf {
    let mut hash = Sha256::new();
    for root in roots {
        hash.update(root.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    let name: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    environment.cache_dir().join("sandbox/language-servers").join(name)
}
