//! From facts about the user and the workspace to the policy of one command. It must not know settings; `app` fills in
//! the facts. Making a [`Sandbox`] looks at nothing; a policy is worked out when a command starts.
//!
//! Invariant: a secret or protected path wins over every grant to write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::git::{self, GitPaths};
use crate::grant::Grant;
use crate::lists;
use crate::policy::{Mode, Network, Policy};
use crate::proxy::{Proxy, Upstream};
use crate::registries::{self, Host};
use crate::temporary::Temporary;

/// Variables that the policy looks at; `app` hands over those that are set.
pub const VARIABLES: &[&str] = &["CARGO_HOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "PATH"];

/// Sockets beyond this many are not covered one by one.
const MOST_SOCKETS: usize = 256;

/// Hosts that the grant `ssh` reaches.
const SSH_HOSTS: &[&str] =
    &["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "ssh.dev.azure.com"];

/// What is known about the user and the workspace.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program that is started as the helper: [`crate::launch::own_program`].
    pub helper: PathBuf,
    pub home: PathBuf,
    /// The workspace folders.
    pub roots: Vec<PathBuf>,
    /// Our configuration, data, logs and sockets: hidden.
    pub own_folders: Vec<PathBuf>,
    /// Our folder for what can be made anew.
    pub cache: PathBuf,
    /// Where temporary folders are made.
    pub temporary: PathBuf,
    /// Variables of the list above and of [`registry_variables`].
    pub variables: BTreeMap<String, String>,
    /// Folders that the user's own settings make writable for every command.
    pub writable: Vec<PathBuf>,
    /// Hosts that the user's own settings allow for every command.
    pub hosts: Vec<Host>,
    pub upstream: Option<Upstream>,
}

/// Variables that name registries.
pub fn registry_variables() -> &'static [&'static str] {
    registries::VARIABLES
}

/// The sandbox of one workspace.
#[derive(Debug)]
pub struct Sandbox {
    facts: Facts,
    hosts: OnceLock<BTreeSet<Host>>,
    temporary: Mutex<Option<Temporary>>,
}

impl Sandbox {
    pub fn new(facts: Facts) -> Self {
        Self { facts, hosts: OnceLock::new(), temporary: Mutex::default() }
    }

    pub fn helper(&self) -> &Path {
        &self.facts.helper
    }

    /// The folder that commands see as `/tmp`, made when it is first needed.
    pub fn temporary(&self) -> io::Result<PathBuf> {
        let mut temporary = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if temporary.as_ref().is_none_or(|temporary| !temporary.path().is_dir()) {
            *temporary = Some(Temporary::make(&self.facts.temporary)?);
        }
        let path = temporary.as_ref().map(|temporary| temporary.path().to_owned());
        path.ok_or_else(|| io::Error::other("there is no temporary folder"))
    }

    /// The proxy for a command with these grants.
    pub fn proxy(&self, grants: &[Grant]) -> Proxy {
        let values =
            || registries::VARIABLES.iter().filter_map(|name| self.facts.variables.get(*name).cloned());
        let hosts = self.hosts.get_or_init(|| registries::hosts(&self.facts.home, values()));
        let mut hosts: BTreeSet<Host> = hosts.iter().chain(&self.facts.hosts).cloned().collect();
        for grant in grants {
            match grant {
                Grant::Host { name, port } => drop(hosts.insert((name.clone(), *port))),
                Grant::Ssh => hosts.extend(SSH_HOSTS.iter().map(|name| ((*name).to_owned(), Some(22)))),
                Grant::Network
                | Grant::Port(_)
                | Grant::Write(_)
                | Grant::GitConfig
                | Grant::Signing
                | Grant::Cloud
                | Grant::Containers => {}
            }
        }
        Proxy::new(hosts, self.facts.upstream.clone())
    }

    /// The policy of a command that starts in `directory`.
    pub fn policy(&self, mode: Mode, grants: &[Grant], directory: &Path) -> io::Result<Policy> {
        let temporary = self.temporary()?;
        let git: Vec<GitPaths> = self.facts.roots.iter().map(|root| git::paths(root)).collect();
        let hidden = self.hidden(grants);
        let protected = self.protected(&git, grants);
        let (caches, mut environment) = self.caches();
        let mut writable: Vec<PathBuf> =
            self.facts.roots.iter().filter(|root| root.parent().is_some()).cloned().collect();
        writable.extend(git.into_iter().flat_map(|git| git.writable));
        writable.extend(caches);
        writable.extend(self.facts.writable.iter().cloned());
        for grant in grants {
            if let Grant::Write(path) = grant {
                writable.push(self.grantable(path, &protected, &hidden)?);
            }
        }
        let temporary_for_variable = match mode {
            Mode::Namespaces => Path::new("/tmp").to_owned(),
            Mode::Landlock => temporary.join("tmp"),
        };
        environment.push(("TMPDIR".to_owned(), temporary_for_variable.display().to_string()));
        let open = grants.contains(&Grant::Network);
        if grants.contains(&Grant::Ssh) && !open {
            environment.extend(self.ssh_command());
        }
        Ok(Policy {
            mode,
            writable,
            protected,
            hidden,
            exposed: self.exposed(grants, open),
            temporary,
            network: if open { Network::Open } else { Network::Proxy },
            ports: grants
                .iter()
                .filter_map(|grant| if let Grant::Port(port) = grant { Some(*port) } else { None })
                .collect(),
            directory: directory.to_owned(),
            environment,
        })
    }

    /// Leads git's ssh through the proxy.
    fn ssh_command(&self) -> Option<(String, String)> {
        let program = self.facts.helper.canonicalize().ok()?;
        // The path stands in a shell's line, and the line in ssh's own language.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let program = program.to_str().filter(|program| program.chars().all(is_plain))?;
        let connect =
            format!("{program} {} {} %h %p", crate::HELPER_ARGUMENT, crate::connect::CONNECT_ARGUMENT);
        Some(("GIT_SSH_COMMAND".to_owned(), format!("ssh -o 'ProxyCommand={connect}'")))
    }

    /// A path of the lists: below home unless it is absolute.
    fn at_home(&self, path: &str) -> PathBuf {
        self.facts.home.join(path)
    }

    /// A granted path must exist, and be neither secret nor protected.
    fn grantable(&self, path: &Path, protected: &[PathBuf], hidden: &[PathBuf]) -> io::Result<PathBuf> {
        let refuse = |text: &str| Err(io::Error::other(format!("{} {text}", path.display())));
        let Ok(path) = path.canonicalize() else {
            return refuse("does not exist, so it cannot be made writable; name the folder it will be in");
        };
        let covers = |list: &[PathBuf]| list.iter().any(|entry| path.starts_with(entry));
        if covers(hidden) || covers(protected) || path.parent().is_none() {
            return refuse("is protected: no grant makes it writable");
        }
        Ok(path)
    }

    fn hidden(&self, grants: &[Grant]) -> Vec<PathBuf> {
        let mut hidden: Vec<PathBuf> = self.facts.own_folders.clone();
        let secrets = lists::SECRETS.iter().filter(|path| match **path {
            ".ssh" => !grants.contains(&Grant::Ssh),
            ".gnupg" => !grants.contains(&Grant::Signing),
            _ => true,
        });
        hidden.extend(secrets.map(|path| self.at_home(path)));
        if grants.contains(&Grant::Ssh) {
            let is_public = |name: &str| lists::SSH_SHOWN.contains(&name) || name.ends_with(".pub");
            hidden.extend(entries(&self.at_home(".ssh")).filter(|path| !named(path, is_public)));
        }
        if grants.contains(&Grant::Signing) {
            let is_public = |name: &str| lists::GNUPG_SHOWN.contains(&name);
            hidden.extend(entries(&self.at_home(".gnupg")).filter(|path| !named(path, is_public)));
        }
        if !grants.contains(&Grant::Cloud) {
            hidden.extend(lists::CLOUD.iter().map(|path| self.at_home(path)));
        }
        if !grants.contains(&Grant::Containers) {
            hidden.extend(lists::CONTAINERS.iter().map(|path| self.at_home(path)));
        }
        let is_key = |name: &str| lists::KEY_ENDINGS.iter().any(|ending| name.ends_with(ending));
        hidden.extend(entries(&self.facts.home).filter(|path| named(path, is_key)));
        let shown = self.exposed(grants, false);
        hidden.extend(self.sockets().into_iter().filter(|path| !shown.contains(path)));
        // A person who opens such a folder as a workspace wants to work in it.
        let roots: Vec<PathBuf> =
            self.facts.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        hidden.retain(|path| {
            let path = path.canonicalize();
            path.is_ok_and(|path| !roots.iter().any(|root| root.starts_with(&path)))
        });
        hidden
    }

    /// Sockets that services of this machine listen on, outside of the folders that are replaced anyway. A read-only
    /// mount does not stop a connection.
    fn sockets(&self) -> Vec<PathBuf> {
        let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let paths = table.lines().filter_map(|line| line.split_ascii_whitespace().nth(7)).map(PathBuf::from);
        let replaced = ["/run", "/var/run", "/tmp", "/var/tmp", "/dev"];
        let elsewhere = paths
            .filter(|path| path.is_absolute() && !replaced.iter().any(|folder| path.starts_with(folder)));
        elsewhere
            .filter(|path| !self.facts.roots.iter().any(|root| path.starts_with(root)))
            .take(MOST_SOCKETS)
            .collect()
    }

    fn protected(&self, git: &[GitPaths], grants: &[Grant]) -> Vec<PathBuf> {
        let mut protected: Vec<PathBuf> = lists::RUN_LATER.iter().map(|path| self.at_home(path)).collect();
        for root in &self.facts.roots {
            protected.extend(lists::PROJECT_PROTECTED.iter().map(|path| root.join(path)));
        }
        for git in git {
            protected.extend(git.protected.iter().cloned());
            if !grants.contains(&Grant::GitConfig) {
                protected.extend(git.configuration.iter().cloned());
            }
        }
        protected.retain(|path| path.symlink_metadata().is_ok());
        protected
    }

    /// Writable folders for downloads, and variables for those that do not exist.
    fn caches(&self) -> (Vec<PathBuf>, Vec<(String, String)>) {
        let mut folders = Vec::new();
        let mut variables = Vec::new();
        let cargo =
            self.facts.variables.get("CARGO_HOME").map_or_else(|| self.at_home(".cargo"), PathBuf::from);
        if cargo.is_dir() {
            let _ = fs::create_dir(cargo.join("registry"));
            folders.extend(lists::CARGO_CACHES.iter().map(|name| cargo.join(name)));
        }
        for (path, variable) in lists::CACHES {
            let folder = self.at_home(path);
            match variable {
                _ if folder.is_dir() => folders.push(folder),
                Some(variable) if !self.facts.variables.contains_key(*variable) => {
                    let moved =
                        self.facts.cache.join("sandbox").join(path.replace('/', "-").trim_start_matches('.'));
                    if fs::create_dir_all(&moved).is_ok() {
                        variables.push(((*variable).to_owned(), moved.display().to_string()));
                        folders.push(moved);
                    }
                }
                _ => {}
            }
        }
        // What can be started by its name must not be writable.
        let on_path = self.facts.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let on_path: Vec<PathBuf> = std::env::split_paths(on_path).collect();
        folders.retain(|folder| folder.exists() && !on_path.iter().any(|path| path.starts_with(folder)));
        (folders, variables)
    }

    fn exposed(&self, grants: &[Grant], open_network: bool) -> Vec<PathBuf> {
        // Programs of NixOS are found through this link.
        let mut exposed = vec![PathBuf::from("/run/current-system")];
        let runtime = self.facts.variables.get("XDG_RUNTIME_DIR").map(PathBuf::from);
        if open_network && let Ok(file) = Path::new("/etc/resolv.conf").canonicalize() {
            exposed.push(file);
        }
        if grants.contains(&Grant::Ssh) {
            exposed.extend(self.facts.variables.get("SSH_AUTH_SOCK").map(PathBuf::from));
            exposed.extend(self.facts.helper.canonicalize());
        }
        if grants.contains(&Grant::Signing) {
            exposed.extend(runtime.iter().map(|folder| folder.join("gnupg/S.gpg-agent")));
        }
        if grants.contains(&Grant::Containers) {
            exposed.extend(lists::CONTAINER_SOCKETS.iter().map(PathBuf::from));
            exposed.extend(
                runtime
                    .iter()
                    .flat_map(|folder| [folder.join("docker.sock"), folder.join("podman/podman.sock")]),
            );
        }
        exposed.retain(|path| path.exists());
        exposed
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn named(path: &Path, fits: impl Fn(&str) -> bool) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(fits)
}
