//! From facts about the user and the workspace to the policy of one command. It must not know settings; `app` fills in
//! the facts. Making a [`Sandbox`] looks at nothing; a policy is worked out when a command starts.
//!
//! Invariant: a secret or protected path wins over every grant to write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use platform::project_files;

use crate::git_view::{GitAccess, GitView};
use crate::grant::Grant;
use crate::guarded;
use crate::host_filter::HostFilter;
use crate::own_ports::own_ports;
use crate::policy::{Mode, Network, Policy};
use crate::proxy::{Proxy, Upstream};
use crate::real_path::real_path;
use crate::registries::{self, Host};
use crate::registry_credentials;
use crate::temporary::Temporary;
use crate::watch::Watch;
use crate::{lists, memory};

/// Variables that the policy looks at; `app` hands over those that are set.
pub const VARIABLES: &[&str] = &["CARGO_HOME", "RUSTUP_HOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "PATH"];

/// Hosts that the grant `ssh` reaches.
pub const SSH_HOSTS: &[&str] =
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
    /// Hosts that the machine's administrator permits; the grant `network` opens these alone.
    pub permitted: Option<HostFilter>,
    /// Variables that the user's own settings pass on, whatever they hold.
    pub passed: Vec<String>,
    /// Memory that everything behind one wall may use together; 0: no limit. `None`: as the machine has it.
    pub memory_megabytes: Option<u64>,
    /// Files and folders of the confined program itself: shown and writable, also where they hold its logins.
    pub own_state: Vec<PathBuf>,
    /// What of its own state the program may not change: settings, hooks, whatever runs later.
    pub kept_state: Vec<PathBuf>,
    /// Where there is no wall, commands are refused.
    pub required: bool,
    /// The whole wall is not tried, as on a system that forbids user namespaces.
    pub without_namespaces: bool,
}

/// What one command may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    pub grants: Vec<Grant>,
    /// Nobody approved the command: it reaches no host, and files that run later are read-only.
    pub strict: bool,
    /// What it may do with git directories.
    pub git: GitAccess,
    /// It is known to change nothing, so nothing is looked for after it.
    pub only_reads: bool,
    /// Files that run later are read-only, though a person approved the rest.
    pub keeps_run_later: bool,
    /// What of the workspace runs later, at any depth, where that is known.
    pub run_later: Vec<PathBuf>,
    /// Files and folders that cannot be opened, though their names are seen.
    pub unreadable: Vec<PathBuf>,
    /// It reaches no host, package registries included.
    pub offline: bool,
    /// The line itself is one for git: it may write the repository that a worktree belongs to.
    pub writes_git: bool,
    /// Ports of Dragoman itself that serve this program alone. No grant of a user opens such a port.
    pub own_ports: Vec<u16>,
}

impl Allowance {
    pub fn new(grants: Vec<Grant>) -> Self {
        Self { grants, ..Self::default() }
    }
}

impl From<Vec<Grant>> for Allowance {
    fn from(grants: Vec<Grant>) -> Self {
        Self::new(grants)
    }
}

/// Variables that name registries, and places of their credentials.
pub fn registry_variables() -> impl Iterator<Item = &'static str> {
    registries::VARIABLES.iter().copied().chain(registry_credentials::place_variables())
}

/// The sandbox of one workspace.
#[derive(Debug)]
pub struct Sandbox {
    pub(crate) facts: Facts,
    hosts: OnceLock<BTreeSet<Host>>,
    temporary: Mutex<Option<Temporary>>,
    /// The folders of the workspace, to find git directories again.
    pub(crate) trees: git::Trees,
    pub(crate) watch: Mutex<Watch>,
}

impl Sandbox {
    pub fn new(facts: Facts) -> Self {
        Self {
            facts,
            hosts: OnceLock::new(),
            temporary: Mutex::default(),
            trees: git::Trees::default(),
            watch: Mutex::default(),
        }
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What git would find below the workspace folders.
    pub(crate) fn find_git(&self) -> git::Found {
        self.trees.find(&self.facts.roots)
    }

    /// The same for another workspace folder.
    pub fn rooted_at(&self, root: PathBuf) -> Self {
        Self::new(Facts { roots: vec![root], ..self.facts.clone() })
    }

    pub fn helper(&self) -> &Path {
        &self.facts.helper
    }

    /// The folder that commands see as `/tmp`, made when it is first needed.
    pub fn temporary(&self) -> io::Result<PathBuf> {
        let mut temporary = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if temporary.as_ref().is_none_or(|temporary| !temporary.path().is_dir()) {
            *temporary = Some(Temporary::make_in_any(&self.facts.temporary, &self.facts.cache)?);
        }
        let path = temporary.as_ref().map(|temporary| temporary.path().to_owned());
        path.ok_or_else(|| io::Error::other("there is no temporary folder"))
    }

    pub fn tries_namespaces(&self) -> bool {
        !self.facts.without_namespaces
    }

    /// A variable that the user's own settings pass on.
    pub fn passes(&self, name: &str) -> bool {
        self.facts.passed.iter().any(|passed| passed == name)
    }

    /// The settings forbid commands without a wall.
    pub fn is_required(&self) -> bool {
        self.facts.required
    }

    /// The proxy for a command with this allowance. A strict one reaches nothing through it; the proxy names the hosts.
    pub fn proxy(&self, allowance: &Allowance) -> Proxy {
        if allowance.strict {
            return Proxy::new(BTreeSet::new(), None);
        }
        let registries_closed = allowance.offline && !allowance.grants.contains(&Grant::Registries);
        let grants = &allowance.grants;
        let values =
            || registries::VARIABLES.iter().filter_map(|name| self.facts.variables.get(*name).cloned());
        let hosts = self.hosts.get_or_init(|| registries::hosts(&self.facts.home, values()));
        let listed = hosts.iter().chain(&self.facts.hosts).filter(|_| !registries_closed);
        let mut hosts: BTreeSet<Host> = listed.cloned().collect();
        for grant in grants {
            match grant {
                Grant::Host { name, port } => drop(hosts.insert((name.clone(), *port))),
                Grant::Ssh => hosts.extend(SSH_HOSTS.iter().map(|name| ((*name).to_owned(), Some(22)))),
                Grant::Network
                | Grant::Port(_)
                | Grant::Write(_)
                | Grant::GitConfig
                | Grant::GitWrite
                | Grant::GitCredentials
                | Grant::Secret(_)
                | Grant::RegistryCredentials
                | Grant::Registries
                | Grant::RunLater
                | Grant::Signing
                | Grant::Cloud
                | Grant::Containers => {}
            }
        }
        let proxy = Proxy::new(hosts, self.facts.upstream.clone());
        proxy.permit(self.facts.permitted.clone(), grants.contains(&Grant::Network))
    }

    /// The policy of a command that starts in `directory`.
    pub fn policy(&self, mode: Mode, allowance: &Allowance, directory: &Path) -> io::Result<Policy> {
        let view = self.git_view(mode, allowance, &self.find_git());
        self.policy_with(mode, allowance, directory, &view)
    }

    pub(crate) fn policy_with(
        &self,
        mode: Mode,
        allowance: &Allowance,
        directory: &Path,
        git: &GitView,
    ) -> io::Result<Policy> {
        let grants = &allowance.grants;
        let temporary = self.temporary()?;
        let hidden = self.hidden(grants);
        let mut protected = self.protected_from(allowance, git);
        let (caches, mut environment) = if allowance.strict { self.strict_caches() } else { self.caches() };
        // What only reads needs no folder of the workspace to be writable.
        let is_writable = |root: &&PathBuf| root.parent().is_some() && !allowance.only_reads;
        let mut writable: Vec<PathBuf> = self.facts.roots.iter().filter(is_writable).cloned().collect();
        writable.extend(git.writable.iter().cloned());
        writable.extend(caches);
        writable.extend(self.facts.writable.iter().cloned());
        let fixed: Vec<PathBuf> = protected.iter().chain(&git.covered).cloned().collect();
        writable.extend(self.granted_paths(grants, &fixed, &hidden)?);
        let links = guarded::links_in(&self.facts.own_folders);
        // What a grant shows is read, never written, where a folder around it is writable.
        protected.extend(self.facts.own_folders.iter().chain(&links).cloned());
        protected.extend(self.protected_state());
        writable.extend(self.facts.own_state.iter().filter(|path| path.exists()).cloned());
        let seen = if mode == Mode::Namespaces { PathBuf::from("/tmp") } else { temporary.join("tmp") };
        environment.push(("TMPDIR".to_owned(), seen.display().to_string()));
        let open = grants.contains(&Grant::Network) && self.facts.permitted.is_none();
        if grants.contains(&Grant::Ssh) && !open {
            environment.extend(self.ssh_command());
        }
        Ok(Policy {
            mode,
            writable,
            protected,
            hidden,
            guarded: self.guarded_paths(links),
            unreadable: allowance.unreadable.clone(),
            exposed: self.exposed(grants, open),
            temporary,
            network: if open { Network::Open } else { Network::Proxy },
            ports: grants.iter().filter_map(Grant::port).chain(allowance.own_ports.iter().copied()).collect(),
            directory: directory.to_owned(),
            environment,
            git_copies: git.copies.clone(),
            withheld: Vec::new(),
            memory: memory::limit(self.facts.memory_megabytes),
            terminal: false,
        })
    }

    /// What stays as it is, of the user's files and of the project's.
    fn protected_from(&self, allowance: &Allowance, git: &GitView) -> Vec<PathBuf> {
        let mut protected = self.protected(&git.protected);
        if allowance.strict || allowance.keeps_run_later {
            let nested = allowance.run_later.iter().filter(|path| !is_repository(path)).cloned();
            protected.extend(self.run_later().chain(nested).filter(|path| path.symlink_metadata().is_ok()));
        }
        protected
    }

    /// Paths that grants make writable. A grant that cannot be given refuses the command.
    fn granted_paths(
        &self,
        grants: &[Grant],
        protected: &[PathBuf],
        hidden: &[PathBuf],
    ) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for grant in grants {
            if let Grant::Write(path) = grant {
                paths.push(self.grantable(path, protected, hidden)?);
            }
            let is_here = |name: &str| {
                let is_loopback = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
                name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
            };
            let port = if let Grant::Port(port) = grant {
                Some(port)
            } else if let Grant::Host { name, port: Some(port) } = grant {
                is_here(name).then_some(port)
            } else {
                None
            };
            if let Some(port) = port.filter(|port| own_ports().contains(port)) {
                let text = format!("port {port} is Dragoman's own: no grant opens it");
                return Err(io::Error::other(text));
            }
        }
        Ok(paths)
    }

    /// Leads git's ssh through the proxy.
    fn ssh_command(&self) -> Option<(String, String)> {
        let program = self.facts.helper.canonicalize().ok()?;
        // The path is in a shell's line, and the line in ssh's own language.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let program = program.to_str().filter(|program| program.chars().all(is_plain))?;
        let connect =
            format!("{program} {} {} %h %p", crate::HELPER_ARGUMENT, crate::connect::CONNECT_ARGUMENT);
        Some(("GIT_SSH_COMMAND".to_owned(), format!("ssh -o 'ProxyCommand={connect}'")))
    }

    fn guarded_paths(&self, links: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut guarded = guarded::paths(&self.facts.home, &self.facts.own_folders, links);
        guarded.retain(|path| !self.is_own_state(path));
        guarded
    }

    /// Secrets of others, and what of its own state the program may not change.
    fn protected_state(&self) -> impl Iterator<Item = PathBuf> {
        let kept = self.facts.kept_state.iter().filter(|path| path.symlink_metadata().is_ok()).cloned();
        guarded::secrets(&self.facts.home).filter(|path| !self.is_own_state(path)).chain(kept)
    }

    /// Whether a secret is one of the confined program's own.
    fn is_own_state(&self, path: &Path) -> bool {
        self.facts.own_state.iter().any(|own| path.starts_with(own))
    }

    /// A path of the lists: below home unless it is absolute.
    pub(crate) fn at_home(&self, path: &str) -> PathBuf {
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
            path if lists::GIT_CREDENTIALS.contains(&path) => !grants.contains(&Grant::GitCredentials),
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
        if !grants.contains(&Grant::RegistryCredentials) {
            hidden.extend(registry_credentials::hidden(&self.facts.home, &self.facts.variables));
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
        hidden.retain(|path| !self.is_own_state(path));
        hidden.retain(|path| {
            let path = real_path(path);
            path.is_some_and(|path| !roots.iter().any(|root| root.starts_with(&path)))
        });
        hidden
    }

    /// Sockets that services of this machine listen on, outside of the folders that are replaced anyway. They are
    /// hidden, so that a program does not try them; what decides is who made a socket, when it is connected to.
    fn sockets(&self) -> BTreeSet<PathBuf> {
        let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        // A name may hold blanks: it is everything after the seventh column.
        let paths =
            table.lines().filter_map(|line| line.split_once(" /")).map(|(_, rest)| format!("/{rest}"));
        let replaced = ["/run", "/var/run", "/tmp", "/var/tmp", "/dev"];
        let paths = paths.map(PathBuf::from);
        let elsewhere = paths.filter(|path| !replaced.iter().any(|folder| path.starts_with(folder)));
        elsewhere.filter(|path| !self.facts.roots.iter().any(|root| path.starts_with(root))).collect()
    }

    fn protected(&self, git: &[PathBuf]) -> Vec<PathBuf> {
        let mut protected: Vec<PathBuf> = lists::RUN_LATER.iter().map(|path| self.at_home(path)).collect();
        for root in &self.facts.roots {
            protected.extend(lists::PROJECT_PROTECTED.iter().map(|path| root.join(path)));
        }
        protected.extend(git.iter().cloned());
        protected.retain(|path| path.symlink_metadata().is_ok());
        protected
    }

    /// Files and folders of the project that other programs run by themselves.
    fn run_later(&self) -> impl Iterator<Item = PathBuf> {
        self.facts.roots.iter().flat_map(|root| project_files::run_later_below(root))
    }

    /// Those that do not exist, and the repository where there is none. A strict command may not leave one behind.
    pub fn missing_run_later(&self) -> Vec<PathBuf> {
        let repositories = self.facts.roots.iter().map(|root| root.join(".git"));
        self.run_later().chain(repositories).filter(|path| path.symlink_metadata().is_err()).collect()
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
            exposed.push(self.at_home(".gnupg/S.gpg-agent"));
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

fn is_repository(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn named(path: &Path, fits: impl Fn(&str) -> bool) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(fits)
}
