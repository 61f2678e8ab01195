//! Hosts that package managers need: the public registries, and those that the user's own configuration names.
//! A project's files name none: a hostile repository would name a host of its own.

use std::collections::BTreeSet;
use std::path::Path;

/// Where packages come from by default, by their public names.
const PUBLIC: &[&str] = &[
    // Rust
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "static.rust-lang.org",
    // JavaScript
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "npm.jsr.io",
    "jsr.io",
    "nodejs.org",
    // Python
    "pypi.org",
    "files.pythonhosted.org",
    // Go
    "proxy.golang.org",
    "sum.golang.org",
    // Java
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    "services.gradle.org",
    // Ruby, PHP, .NET, Dart, Elixir
    "rubygems.org",
    "index.rubygems.org",
    "packagist.org",
    "repo.packagist.org",
    "api.nuget.org",
    "pub.dev",
    "hex.pm",
    "repo.hex.pm",
];

/// The user's files below home that name other registries to package managers.
const FILES: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".cargo/config.toml",
    ".cargo/config",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/go/env",
    ".config/pypoetry/config.toml",
    ".bunfig.toml",
    ".gemrc",
    ".m2/settings.xml",
];

/// Variables with the same purpose.
pub(crate) const VARIABLES: &[&str] = &[
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "GOPROXY",
    "GOSUMDB",
    "YARN_REGISTRY",
];

const LARGEST: usize = 64 * 1024;

/// A host, and the port where one is named.
pub type Host = (String, Option<u16>);

/// A host that packages come from by default.
pub fn is_public(host: &str) -> bool {
    PUBLIC.contains(&host)
}

/// The public registries and the user's own.
pub(crate) fn hosts(home: &Path, variables: impl Iterator<Item = String>) -> BTreeSet<Host> {
    let mut hosts: BTreeSet<Host> = PUBLIC.iter().map(|name| ((*name).to_owned(), None)).collect();
    for file in FILES {
        // A file of another kind could block; a large one is no configuration.
        let path = home.join(file);
        let small = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LARGEST as u64);
        if let Some(text) = small.then(|| std::fs::read_to_string(path).ok()).flatten() {
            hosts.extend(named_in(&text));
        }
    }
    for value in variables {
        hosts.extend(named_in(&value));
    }
    hosts
}

/// The hosts of all web addresses in a text.
fn named_in(text: &str) -> Vec<Host> {
    let mut hosts = Vec::new();
    for (at, _) in text.match_indices("://") {
        let scheme =
            text[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '+').next().unwrap_or_default();
        if !scheme.ends_with("http") && !scheme.ends_with("https") {
            continue;
        }
        let rest = &text[at + 3..];
        let authority = rest.split(|c: char| "/?#\"'<>,|; \t\r\n".contains(c)).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (host, None),
        };
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        {
            hosts.push((name.to_ascii_lowercase(), port));
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_configuration() {
        let text = "registry=https://user:key@packages.example.com:8443/npm/\n\
                    index-url = http://mirror.example.org/simple, ftp://no.example.org\n\
                    [source]\nregistry = \"sparse+https://crates.example.net/index/\"";
        let host = |name: &str, port| (name.to_owned(), port);
        assert_eq!(
            named_in(text),
            [
                host("packages.example.com", Some(8443)),
                host("mirror.example.org", None),
                host("crates.example.net", None)
            ]
        );
    }
}
