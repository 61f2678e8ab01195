//! What a command may have beyond the ordinary: each grant has one spelling, which the model asks with, a person
//! approves and a session remembers. It decides nothing. Invariant: `parse` and `Display` are inverse.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// The whole network of this machine.
    Network,
    /// One more host, at its port for the web unless another is named.
    Host { name: String, port: Option<u16> },
    /// A port of this machine.
    Port(u16),
    /// A folder or file may be written.
    Write(PathBuf),
    /// `.git/config` may be changed: remotes, upstream branches, submodules. Hooks and settings that name programs may not.
    GitConfig,
    /// The git directory itself may be written, for a server that does not end: it gets no copy.
    GitWrite,
    /// Passwords and tokens that git, `gh` and `glab` keep for the hosts of repositories.
    GitCredentials,
    /// A file of the workspace that holds secrets, or those in a folder of it, in a tainted chat. Relative to the workspace.
    Secret(PathBuf),
    /// Passwords and tokens for package registries.
    RegistryCredentials,
    /// Downloads from package registries, for a command that nobody approved yet.
    Registries,
    /// Files of the project that editors, shells and continuous integration run, for a command that nobody approved yet.
    RunLater,
    /// The agent's socket, `known_hosts` and `config`; never key files.
    Ssh,
    /// The agent and the public keyring of GnuPG.
    Signing,
    /// Credentials of cloud providers and clusters.
    Cloud,
    /// The container engine, which can do everything its own rights allow, and its credentials.
    Containers,
}

/// The spellings, for the model and for messages.
pub const SPELLINGS: &str = "network, network:HOST, network:HOST:PORT, port:NUMBER, write:/PATH, secret:PATH, registries, registry-credentials, run-later, git-config, git-write, git-credentials, ssh, signing, cloud, containers";

impl Grant {
    /// The port of this machine that it opens.
    pub(crate) fn port(&self) -> Option<u16> {
        if let Self::Port(port) = self { Some(*port) } else { None }
    }

    /// The sentence says what can be asked for.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` cannot be granted. What can: {SPELLINGS}.");
        let (kind, value) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        match (kind, value) {
            ("network", "") => Ok(Self::Network),
            ("network", host) => {
                let (name, port) = match host.rsplit_once(':') {
                    Some((name, port)) => (name, Some(port.parse().map_err(|_| unknown())?)),
                    None => (host, None),
                };
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
                let is_name = !name.is_empty() && name.len() < 254 && name.bytes().all(fits);
                is_name.then(|| Self::Host { name: name.to_ascii_lowercase(), port }).ok_or_else(unknown)
            }
            ("port", number) => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Port(number)),
                _ => Err(unknown()),
            },
            ("write", path) => {
                let path = PathBuf::from(path);
                let dots = path.components().any(|part| part.as_os_str() == "..");
                (path.is_absolute() && !dots && path.parent().is_some())
                    .then_some(Self::Write(path))
                    .ok_or_else(unknown)
            }
            ("secret", path) => {
                let path = PathBuf::from(path);
                let dots = path.components().any(|part| part.as_os_str() == "..");
                (!dots && path.file_name().is_some()).then_some(Self::Secret(path)).ok_or_else(unknown)
            }
            ("registry-credentials", "") => Ok(Self::RegistryCredentials),
            ("git-config", "") => Ok(Self::GitConfig),
            ("git-write", "") => Ok(Self::GitWrite),
            ("git-credentials", "") => Ok(Self::GitCredentials),
            ("registries", "") => Ok(Self::Registries),
            ("run-later", "") => Ok(Self::RunLater),
            ("ssh", "") => Ok(Self::Ssh),
            ("signing", "") => Ok(Self::Signing),
            ("cloud", "") => Ok(Self::Cloud),
            ("containers", "") => Ok(Self::Containers),
            _ => Err(unknown()),
        }
    }

    /// Whether it opens a way to other machines, or to services that have one.
    pub fn reaches_out(&self) -> bool {
        match self {
            Self::Network
            | Self::Host { .. }
            | Self::Port(_)
            | Self::Ssh
            | Self::Signing
            | Self::Cloud
            | Self::Containers
            | Self::GitCredentials
            | Self::RegistryCredentials => true,
            Self::Write(_)
            | Self::GitConfig
            | Self::GitWrite
            | Self::Secret(_)
            | Self::Registries
            | Self::RunLater => false,
        }
    }

    /// One sentence for the person who decides.
    pub fn meaning(&self) -> String {
        match self {
            Self::Network => "It may use the whole network.".to_owned(),
            Self::Host { name, port } => {
                let port = port.map(|port| format!(", port {port}")).unwrap_or_default();
                format!("It may connect to {name}{port}.")
            }
            Self::Port(port) => format!("It may connect to port {port} of this machine."),
            Self::Write(path) => format!("It may write to {}.", path.display()),
            Self::GitConfig => "It may change the configuration of the repository (.git/config).".to_owned(),
            Self::GitWrite => {
                "It may write the repository itself (.git): git runs what a program puts there.".to_owned()
            }
            Self::GitCredentials => "It may read the passwords that git, gh and glab keep.".to_owned(),
            Self::Secret(path) => format!(
                "It may read {}, which holds secrets; what it prints then counts as secret.",
                path.display()
            ),
            Self::RegistryCredentials => {
                "It may read your passwords and tokens for package registries.".to_owned()
            }
            Self::Registries => "It may download from package registries.".to_owned(),
            Self::RunLater => {
                "It may change files that editors, shells and continuous integration run.".to_owned()
            }
            Self::Ssh => "It may use the ssh agent, which signs in with your keys.".to_owned(),
            Self::Signing => "It may use the GnuPG agent, which signs with your keys.".to_owned(),
            Self::Cloud => "It may read the credentials of cloud providers and clusters.".to_owned(),
            Self::Containers => {
                "It may use the container engine, which can reach every file of yours.".to_owned()
            }
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("network"),
            Self::Host { name, port: None } => write!(f, "network:{name}"),
            Self::Host { name, port: Some(port) } => write!(f, "network:{name}:{port}"),
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Write(path) => write!(f, "write:{}", path.display()),
            Self::GitConfig => f.write_str("git-config"),
            Self::GitWrite => f.write_str("git-write"),
            Self::GitCredentials => f.write_str("git-credentials"),
            Self::Secret(path) => write!(f, "secret:{}", path.display()),
            Self::RegistryCredentials => f.write_str("registry-credentials"),
            Self::Registries => f.write_str("registries"),
            Self::RunLater => f.write_str("run-later"),
            Self::Ssh => f.write_str("ssh"),
            Self::Signing => f.write_str("signing"),
            Self::Cloud => f.write_str("cloud"),
            Self::Containers => f.write_str("containers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_written_as_it_is_read() {
        for text in [
            "network",
            "network:example.org",
            "network:example.org:8080",
            "port:5432",
            "write:/srv/data",
            "git-config",
            "git-write",
            "git-credentials",
            "secret:.env",
            "secret:config/keys",
            "registries",
            "registry-credentials",
            "run-later",
            "ssh",
            "signing",
            "cloud",
            "containers",
        ] {
            assert_eq!(Grant::parse(text).map(|grant| grant.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_cannot_be_granted_is_refused() {
        for text in [
            "",
            "all",
            "network:",
            "network:a b",
            "network:a/b",
            "network:x:y",
            "network:user@host",
            "port:0",
            "port:",
            "port:70000",
            "write:",
            "write:relative",
            "write:/",
            "write:/a/../etc",
            "secret:",
            "secret:.",
            "secret:../x",
            "ssh:keys",
            "*",
            "network:*.com",
        ] {
            let parsed = Grant::parse(text);
            let only_network = text == "network:" && parsed == Ok(Grant::Network);
            assert!(parsed.is_err() || only_network, "{text}: {parsed:?}");
        }
    }
}
