//! Passwords and tokens for package registries: the files and variables that hold them. The grant `registry-credentials`
//! shows them.
//!
//! Invariant: a file of settings that may hold a password is hidden as soon as something in it looks like one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Files below home that hold credentials and nothing else.
pub(crate) const FILES: &[&str] = &[
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".config/uv/credentials.toml",
    ".local/share/uv/credentials",
    ".config/hatch/config.toml",
    ".cache/hatch/publish",
    ".local/share/hatch/publish",
    ".config/dart/pub-credentials.json",
    ".config/dart/pub-tokens.json",
    ".pub-cache/credentials.json",
    ".hex/hex.config",
    ".config/hex/hex.config",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".m2/settings-security.xml",
    ".config/rattler/credentials.json",
    ".rattler/credentials.json",
    ".conan2/credentials.json",
    ".luarocks/upload_config.lua",
    ".vsce",
    ".ovsx",
    ".cocoapods/trunk",
];

/// Files of settings below home that may hold credentials as well.
const SETTINGS: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".config/pnpm/rc",
    ".config/pnpm/auth.ini",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/pypoetry/config.toml",
    ".condarc",
    ".gemrc",
    ".bundle/config",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config",
    ".cargo/config",
    ".cargo/config.toml",
];

/// Variables that name other places, and the files there; an empty one is the place itself.
const NAMED: &[(&str, &[&str])] = &[
    ("NPM_CONFIG_USERCONFIG", &[""]),
    ("npm_config_userconfig", &[""]),
    ("PIP_CONFIG_FILE", &[""]),
    ("UV_CONFIG_FILE", &[""]),
    ("UV_CREDENTIALS_DIR", &["credentials.toml"]),
    ("BUNDLE_USER_CONFIG", &[""]),
    ("BUNDLE_APP_CONFIG", &["config"]),
    ("POETRY_CONFIG_DIR", &["auth.toml", "config.toml"]),
    ("COMPOSER_HOME", &["auth.json"]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("MAVEN_SETTINGS", &[""]),
    ("HEX_HOME", &["hex.config"]),
    ("CARGO_HOME", &["credentials", "credentials.toml", "config", "config.toml"]),
];

/// The variables above, for those who hand over what is set.
pub(crate) fn place_variables() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name).chain(["XDG_CONFIG_HOME"])
}

/// Variables with addresses of registries, which may hold a password.
const ADDRESSES: &[&str] = &[
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "NPM_CONFIG_REGISTRY",
    "YARN_REGISTRY",
    "GOPROXY",
];

/// Words beside a password in a file of settings, in lower case.
const SIGNS: &[&str] =
    &["_auth", "token", "passw", "secret", "apikey", "api_key", "api-key", "privatekey", "keyfile"];

/// Variables with tokens, in capital letters.
const VARIABLES: &[&str] = &[
    "NPM_TOKEN",
    "NPM_AUTH_TOKEN",
    "NODE_AUTH_TOKEN",
    "NPM_CONFIG__AUTH",
    "NPM_CONFIG__AUTHTOKEN",
    "NPM_CONFIG__PASSWORD",
    "YARN_NPM_AUTH_TOKEN",
    "YARN_NPM_AUTH_IDENT",
    "BUN_AUTH_TOKEN",
    "JSR_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "CRATES_IO_TOKEN",
    "TWINE_PASSWORD",
    "TWINE_USERNAME",
    "PYPI_TOKEN",
    "PYPI_API_TOKEN",
    "PYPI_PASSWORD",
    "UV_PUBLISH_TOKEN",
    "UV_PUBLISH_PASSWORD",
    "FLIT_PASSWORD",
    "HATCH_INDEX_AUTH",
    "PDM_PUBLISH_PASSWORD",
    "GEM_HOST_API_KEY",
    "RUBYGEMS_API_KEY",
    "COMPOSER_AUTH",
    "NUGET_API_KEY",
    "HEX_API_KEY",
    "PUB_TOKEN",
    "VSCE_PAT",
    "OVSX_PAT",
    "ANACONDA_API_TOKEN",
    "COCOAPODS_TRUNK_TOKEN",
    "MAVEN_PASSWORD",
    "SONATYPE_PASSWORD",
    "OSSRH_PASSWORD",
    "ORG_GRADLE_PROJECT_SONATYPEPASSWORD",
];

/// Beginnings and endings of such names, whatever is between.
const PATTERNS: &[(&str, &str)] = &[
    ("CARGO_REGISTRIES_", "_TOKEN"),
    ("POETRY_PYPI_TOKEN_", ""),
    ("POETRY_HTTP_BASIC_", "_PASSWORD"),
    ("UV_INDEX_", "_PASSWORD"),
    ("UV_INDEX_", "_USERNAME"),
    ("NPM_CONFIG_//", ""),
    ("NUGETPACKAGESOURCECREDENTIALS_", ""),
    ("BUNDLE_", "__COM"),
    ("BUNDLE_", "__ORG"),
];

/// A larger file is no file of settings.
const LARGEST: u64 = 256 * 1024;

/// Which of these files a command may not see.
pub(crate) fn hidden(home: &Path, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = FILES.iter().map(|path| home.join(path)).collect();
    let mut settings: Vec<PathBuf> = SETTINGS.iter().map(|path| home.join(path)).collect();
    if let Some(config) = variables.get("XDG_CONFIG_HOME").map(Path::new) {
        let below = |path: &&str| path.strip_prefix(".config/").map(|path| config.join(path));
        paths.extend(FILES.iter().filter_map(below));
        settings.extend(SETTINGS.iter().filter_map(below));
    }
    for (name, below) in NAMED {
        let Some(place) = variables.get(*name).map(Path::new) else { continue };
        settings.extend(
            below.iter().map(|file| if file.is_empty() { place.to_owned() } else { place.join(file) }),
        );
    }
    paths.extend(settings.into_iter().filter(|path| may_hold_credentials(path)));
    paths
}

/// A file that cannot be looked at counts as one with credentials.
fn may_hold_credentials(path: &Path) -> bool {
    let Ok(kind) = path.metadata() else { return false };
    if !kind.is_file() || kind.len() > LARGEST {
        return kind.is_file();
    }
    fs::read(path).map_or(true, |bytes| holds_credentials(&String::from_utf8_lossy(&bytes)))
}

fn holds_credentials(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.lines().any(|line| SIGNS.iter().any(|sign| has_value(line, sign))) || has_user_in_address(&lower)
}

/// `https://name:password@host`.
fn has_user_in_address(text: &str) -> bool {
    text.split("://")
        .skip(1)
        .any(|rest| rest.split(['/', '"', '\'', ' ', ',', '\n']).next().unwrap_or_default().contains('@'))
}

/// `sign = value`, where the value is neither empty nor the name of a variable.
fn has_value(line: &str, sign: &str) -> bool {
    let Some((_, rest)) = line.split_once(sign) else { return false };
    let Some(at) = rest.find(['=', ':', '>']) else { return false };
    let value = rest[at + 1..].trim_matches([' ', '"', '\'', '\r']);
    !value.is_empty() && !value.starts_with('$') && !value.starts_with('<')
}

/// Whether a variable holds such a token, by its name, or by a password in its address.
pub fn is_credential_variable(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str().map(str::to_ascii_uppercase) else { return false };
    if ADDRESSES.contains(&name.as_str()) {
        return has_user_in_address(&value.to_string_lossy());
    }
    VARIABLES.contains(&name.as_str())
        || PATTERNS.iter().any(|(start, end)| {
            name.len() > start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_hidden_only_where_they_hold_a_password() {
        for text in [
            "//registry.npmjs.org/:_authToken=abc",
            "registry=https://me:word@packages.example.com/",
            "npmAuthToken: abc",
            "<server><password>x</password></server>",
            "[http-basic.private]\npassword = \"x\"",
        ] {
            assert!(holds_credentials(text), "{text}");
        }
        for text in [
            "registry=https://packages.example.com/\nsave-exact=true",
            "[build]\njobs = 4",
            "",
            "[registry]\nglobal-credential-providers = [\"cargo:token\"]",
            "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
        ] {
            assert!(!holds_credentials(text), "{text}");
        }
    }

    #[test]
    fn tokens_are_known_by_the_names_of_their_variables() {
        for name in
            ["NPM_TOKEN", "npm_config__authToken", "CARGO_REGISTRIES_OWN_TOKEN", "POETRY_PYPI_TOKEN_PYPI"]
        {
            assert!(is_credential_variable(OsStr::new(name), OsStr::new("x")), "{name}");
        }
        for name in
            ["PATH", "CARGO_HOME", "npm_config_registry", "GITHUB_TOKEN", "CARGO_REGISTRIES_OWN_INDEX"]
        {
            assert!(!is_credential_variable(OsStr::new(name), OsStr::new("x")), "{name}");
        }
        let address = |value: &str| is_credential_variable(OsStr::new("PIP_INDEX_URL"), OsStr::new(value));
        assert!(
            address("https://me:word@packages.example.com/simple") && !address("https://pypi.org/simple")
        );
        assert!(is_credential_variable(
            OsStr::new("npm_config_//npm.example.com/:_authToken"),
            OsStr::new("x")
        ));
    }

    #[test]
    fn places_that_variables_name_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("other-npmrc");
        fs::write(&file, "//registry.npmjs.org/:_authToken=npm_x").unwrap();
        let place = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        let variables =
            [place("NPM_CONFIG_USERCONFIG", &file), place("XDG_CONFIG_HOME", folder.path())].into();
        let found = hidden(Path::new("/home/me"), &variables);
        assert!(
            found.contains(&file) && found.contains(&folder.path().join("pypoetry/auth.toml")),
            "{found:?}"
        );
    }
}
