//! The variables that a child needs which talks to providers and to nothing else: where programs and settings are, how to
//! reach the network, and the keys of providers.
//!
//! Invariant: everything else of the environment stays with the parent.

use std::ffi::OsString;

use crate::environment::Environment;
use crate::resolve::Resolved;
use crate::variables;

/// Where programs, settings and data are, and the language.
const PLACES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "DRAGOMAN_DATA",
    "DRAGOMAN_MODELS",
    "DRAGOMAN_CONFIG",
    "ECA_CONFIG",
    "DRAGOMAN_PURE",
    "DRAGOMAN_STORE",
];

/// How the network is reached.
const NETWORK: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "DRAGOMAN_CLIENT_CERT",
    "DRAGOMAN_CLIENT_KEY",
    "DRAGOMAN_CLIENT_KEY_PASSPHRASE",
    "ECA_CLIENT_CERT",
    "ECA_CLIENT_KEY",
    "ECA_CLIENT_KEY_PASSPHRASE",
];

/// Where a provider's key may come from besides a variable of its own.
const ACCOUNTS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
];

/// Begins a reference to a variable in a setting.
const REFERENCE: &str = "${env:";

impl Resolved {
    /// The variables of such a child, with their values.
    pub fn provider_environment(&self, environment: &Environment) -> Vec<(OsString, OsString)> {
        let mut names: Vec<String> =
            [PLACES, NETWORK, ACCOUNTS].concat().into_iter().map(str::to_owned).collect();
        names.extend(variables::provider_names(&self.tree));
        for layer in &self.layers {
            let sections = ["providers", "network", "store"].into_iter().filter_map(|name| layer.at(&[name]));
            names.extend(sections.flat_map(|value| references(&value.to_string())));
        }
        names.sort();
        names.dedup();
        let value =
            |name: String| environment.os(&name).map(|value| (OsString::from(name), value.to_owned()));
        names.into_iter().filter_map(value).collect()
    }
}

/// The variables that a text refers to.
fn references(text: &str) -> Vec<String> {
    let parts = text.split(REFERENCE).skip(1);
    let name = |part: &str| part.split(['}', ':']).next().unwrap_or_default().to_owned();
    parts.map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inputs;

    #[test]
    fn only_what_a_provider_needs_is_handed_on() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".config/dragoman");
        std::fs::create_dir_all(&folder).unwrap();
        let settings = r#"{"providers": {"my-own": {"api": "openai", "key": "${env:TEAM_SECRET}"}}}"#;
        std::fs::write(folder.join("config.json"), settings).unwrap();
        let variables = [
            ("PATH", "/bin"),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_API_KEY", "a"),
            ("MY_OWN_API_URL", "http://u"),
            ("TEAM_SECRET", "s"),
            ("GITHUB_TOKEN", "no"),
            ("SSH_AUTH_SOCK", "no"),
            ("SHELL", "no"),
        ];
        let environment = Environment::new(home.path(), variables);
        let resolved = crate::resolve(&environment, &Inputs::default());
        let names: Vec<_> = resolved
            .provider_environment(&environment)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        assert_eq!(names, ["ANTHROPIC_API_KEY", "LANG", "MY_OWN_API_URL", "PATH", "TEAM_SECRET"]);
    }
}
