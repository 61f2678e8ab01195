//! Managed settings: rules of the machine's administrator that no user, project or command line can loosen.
//!
//! They have a fixed place that only the administrator can write; no variable or argument names another one. Invariants: a
//! file that cannot be read as a whole, that another user could change, or that has a key nobody knows permits nothing, and
//! the program does not start with it; a rule only takes away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use domain::Failure;
use domain::hosts::HostList;
use domain::names::is_same_name;
use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::jsonc;
use crate::schema::nearest;

/// Where the file is.
const PLACE: &str = match platform::System::CURRENT {
    platform::System::Linux => "/etc/dragoman/managed.json",
    platform::System::MacOs => "/Library/Application Support/Dragoman/managed.json",
    platform::System::Windows => "C:\\ProgramData\\Dragoman\\managed.json",
};

const KEYS: [&str; 10] = [
    "allowedProviders",
    "allowedModels",
    "allowedHosts",
    "allowedMcpServers",
    "allowedPlugins",
    "sandboxRequired",
    "retentionDays",
    "budgets",
    "telemetry",
    "reviewer",
];

/// The file and its rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Managed {
    pub file: PathBuf,
    pub rules: ManagedRules,
    /// As they are written, for `config show`.
    pub(crate) written: Map<String, Value>,
}

/// What may be used. `None` takes nothing away.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ManagedRules {
    pub(crate) providers: Option<Vec<String>>,
    pub(crate) models: Option<Vec<String>>,
    pub(crate) hosts: Option<HostList>,
    pub(crate) servers: Option<Vec<ServerRule>>,
    pub(crate) plugins: Option<Vec<String>>,
    pub(crate) sandbox_required: bool,
    pub(crate) retention_days: Option<u64>,
    pub(crate) budgets: Budget,
    pub(crate) telemetry: Option<ManagedTelemetry>,
    /// The only model that may review tool calls; `off`: none may.
    pub(crate) reviewer: Option<String>,
}

/// One server of MCP: every member that is given must fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ServerRule {
    name: Option<String>,
    url: Option<String>,
    command: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ManagedTelemetry {
    /// Nothing is exported.
    Off,
    /// Takes the place of `otlp`.
    Only(Map<String, Value>),
}

impl Managed {
    /// The managed settings of this machine. `None`: the file does not exist.
    pub fn of_this_machine() -> Result<Option<Self>, Failure> {
        Self::read(Path::new(PLACE))
    }

    fn read(file: &Path) -> Result<Option<Self>, Failure> {
        let refuse = |why: String| {
            let text = format!("The managed settings in {} cannot be used: {why}.", file.display());
            Failure::config(text)
                .hint("Ask the administrator of this machine. Dragoman does not start without them.")
        };
        match fs::symlink_metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refuse(error.to_string())),
            Ok(kind) if !kind.is_file() => return Err(refuse("it is not an ordinary file".to_owned())),
            Ok(_) => {}
        }
        platform::check_owned_by_administrator(file).map_err(refuse)?;
        let text = jsonc::read(file).map_err(|broken| refuse(broken.0))?;
        let text = text.ok_or_else(|| refuse("it is gone".to_owned()))?;
        Self::parse(file, &text).map(Some).map_err(refuse)
    }

    /// The rules of a text.
    pub fn parse(file: &Path, text: &str) -> Result<Self, String> {
        let written = jsonc::parse(text).map_err(|broken| broken.0)?;
        let is_unknown = |key: &&String| *key != "$schema" && !KEYS.contains(&key.as_str());
        if let Some(key) = written.keys().find(is_unknown) {
            let hint = nearest(key, KEYS).map(|near| format!("; `{near}` is one")).unwrap_or_default();
            return Err(format!("`{key}` is not a managed setting{hint}"));
        }
        let rules = ManagedRules::read(&written)?;
        Ok(Self { file: file.to_owned(), rules, written })
    }

    /// Where nothing can be read, nothing is permitted.
    pub(crate) fn closed() -> Self {
        let hosts = Some(HostList::default());
        let (providers, models, plugins) = (Some(Vec::new()), Some(Vec::new()), Some(Vec::new()));
        let budgets = Budget { chat: Some(0.0), day: Some(0.0), run: Some(0.0) };
        let rules = ManagedRules {
            providers,
            models,
            hosts,
            servers: Some(Vec::new()),
            plugins,
            sandbox_required: true,
            retention_days: None,
            budgets,
            telemetry: Some(ManagedTelemetry::Off),
            reviewer: Some("off".to_owned()),
        };
        Self { file: PLACE.into(), rules, written: Map::new() }
    }
}

impl ManagedRules {
    fn read(written: &Map<String, Value>) -> Result<Self, String> {
        let texts = |key: &str| written.get(key).map(|value| texts(key, value)).transpose();
        let hosts = texts("allowedHosts")?.map(|entries| HostList::parse(&entries)).transpose();
        let servers = written.get("allowedMcpServers").map(ServerRule::read_all).transpose()?;
        let sandbox_required = match written.get("sandboxRequired") {
            None => false,
            Some(Value::Bool(required)) => *required,
            Some(_) => return Err("`sandboxRequired` must be true or false".to_owned()),
        };
        let days = |value: &Value| value.as_u64().filter(|days| *days > 0);
        let retention_days = written.get("retentionDays").map(|value| {
            days(value).ok_or_else(|| "`retentionDays` must be a whole number of at least 1".to_owned())
        });
        let reviewer = written.get("reviewer").map(|value| {
            let is_one = |text: &&str| *text == "off" || text.contains('/');
            let text = value.as_str().filter(is_one).map(str::to_owned);
            text.ok_or_else(|| "`reviewer` must be \"provider/model\" or \"off\"".to_owned())
        });
        Ok(Self {
            providers: texts("allowedProviders")?,
            models: texts("allowedModels")?,
            hosts: hosts.map_err(|entry| format!("`allowedHosts` holds {entry:?}, which is not a host"))?,
            servers,
            plugins: texts("allowedPlugins")?,
            sandbox_required,
            retention_days: retention_days.transpose()?,
            budgets: written.get("budgets").map(budgets).transpose()?.unwrap_or_default(),
            telemetry: written.get("telemetry").map(ManagedTelemetry::read).transpose()?,
            reviewer: reviewer.transpose()?,
        })
    }

    /// Hosts that may be reached; `None` is every host.
    pub fn hosts(&self) -> Option<&HostList> {
        self.hosts.as_ref()
    }

    /// Users do not decide what models cost.
    pub fn has_budgets(&self) -> bool {
        self.budgets != Budget::default()
    }

    /// What one turn may cost, whatever the command line says.
    pub fn run_budget(&self) -> Option<f64> {
        self.budgets.run
    }

    /// A repository: a folder, an address, or `user@host:path` as git writes it.
    pub fn permits_repository(&self, location: &str) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        match location.split_once(':') {
            _ if location.contains("://") => {
                location.starts_with("file://") || hosts.permits_address(location)
            }
            Some((place, _)) if !place.contains('/') => hosts.permits_address(&format!("ssh://{place}/")),
            Some(_) | None => true,
        }
    }

    pub fn permits_provider(&self, name: &str) -> bool {
        self.providers.as_ref().is_none_or(|list| list.iter().any(|entry| is_same_name(entry, name)))
    }

    /// `permits_provider`, for a provider whose address is not the one that its name stands for: the name alone says
    /// nothing about where prompts go.
    pub fn permits_address_of_provider(&self, url: &str) -> bool {
        let listed = || self.hosts.as_ref().is_some_and(|hosts| hosts.permits_address(url));
        self.providers.is_none() || HostList::default().permits_address(url) || listed()
    }

    /// By `provider/model`; `*` matches any characters.
    pub fn permits_model(&self, id: &str) -> bool {
        let (provider, model) = id.split_once('/').unwrap_or((id, ""));
        // ECA's spelling of a provider's name is as good as the other one.
        let fits_other = |entry: &str| {
            let own = entry.split_once('/');
            own.is_some_and(|(name, rest)| is_same_name(name, provider) && fits(rest, model))
        };
        let is_fitting = |entry: &String| fits(entry, id) || fits_other(entry);
        let is_listed = self.models.as_ref().is_none_or(|list| list.iter().any(is_fitting));
        is_listed && self.permits_provider(provider)
    }

    /// Settings may not send another name of a model than the one that was checked.
    pub fn restricts_models(&self) -> bool {
        self.models.is_some()
    }

    /// Some rule may permit a server of this name.
    pub fn may_permit_server(&self, name: &str) -> bool {
        let fits = |rule: &ServerRule| rule.name.as_deref().is_none_or(|own| is_same_name(own, name));
        self.servers.as_ref().is_none_or(|list| list.iter().any(fits))
    }

    /// A server with its address, or with its program and arguments.
    pub fn permits_server(&self, name: &str, url: Option<&str>, command: &[&str]) -> bool {
        self.servers.as_ref().is_none_or(|list| list.iter().any(|rule| rule.fits(name, url, command)))
    }

    /// A plugin of a source: by its name, by `name@source`, or by `name@location`.
    pub fn permits_plugin(&self, name: &str, source: &str, location: &str) -> bool {
        let is = |entry: &String| match entry.split_once('@') {
            None => entry == name,
            Some((own, from)) => (own == name || own == "*") && (from == source || from == location),
        };
        self.plugins.as_ref().is_none_or(|list| list.iter().any(is))
    }

    /// The sentence for what is refused.
    pub fn refusal(what: &str) -> Failure {
        Failure::user(format!("{what} is not permitted by the administrator of this machine."))
            .hint("`dragoman config show` names the managed settings and their file.")
    }
}

impl ServerRule {
    fn read_all(value: &Value) -> Result<Vec<Self>, String> {
        let wrong = || "`allowedMcpServers` must be a list of names or of {name, url, command}".to_owned();
        value.as_array().ok_or_else(wrong)?.iter().map(|entry| Self::read(entry).ok_or_else(wrong)).collect()
    }

    fn read(entry: &Value) -> Option<Self> {
        if let Some(name) = entry.as_str() {
            return Some(Self { name: Some(name.to_owned()), ..Self::default() });
        }
        let members = entry.as_object()?;
        let is_known = |key: &String| ["name", "url", "command"].contains(&key.as_str());
        if members.is_empty() || !members.keys().all(is_known) {
            return None;
        }
        let text = |key: &str| match members.get(key) {
            None => Some(None),
            Some(value) => Some(Some(value.as_str()?.to_owned())),
        };
        let command = match members.get("command") {
            None => None,
            Some(value) => {
                let words = value.as_array()?.iter().map(|word| Some(word.as_str()?.to_owned()));
                Some(words.collect::<Option<Vec<String>>>()?)
            }
        };
        Some(Self { name: text("name")?, url: text("url")?, command })
    }

    fn fits(&self, name: &str, url: Option<&str>, command: &[&str]) -> bool {
        self.name.as_deref().is_none_or(|own| is_same_name(own, name))
            && self.url.as_deref().is_none_or(|own| url.is_some_and(|url| fits_address(own, url)))
            && self.command.as_ref().is_none_or(|own| own == command)
    }
}

impl ManagedTelemetry {
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Bool(false) => Ok(Self::Off),
            Value::Object(otlp) => Ok(Self::Only(otlp.clone())),
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("`telemetry` must be false or an object like `otlp`".to_owned())
            }
        }
    }
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let entries = value.as_array().map(|list| list.iter().map(|entry| Some(entry.as_str()?.to_owned())));
    let entries = entries.and_then(|entries| entries.collect::<Option<Vec<String>>>());
    entries.ok_or_else(|| format!("`{key}` must be a list of texts"))
}

fn budgets(value: &Value) -> Result<Budget, String> {
    let wrong = || "`budgets` must be {chat, day, run} in dollars".to_owned();
    let members = value.as_object().ok_or_else(wrong)?;
    if !members.keys().all(|key| ["chat", "day", "run"].contains(&key.as_str())) {
        return Err(wrong());
    }
    let limit = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(value) => value.as_f64().filter(|limit| *limit >= 0.0).map(Some).ok_or_else(wrong),
    };
    Ok(Budget { chat: limit("chat")?, day: limit("day")?, run: limit("run")? })
}

/// As `fits`; a `*` in the host stands for a part of the host alone.
fn fits_address(pattern: &str, address: &str) -> bool {
    let split = |text: &str| -> Option<(String, String)> {
        let start = text.find("://")? + 3;
        let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |end| start + end);
        let (place, rest) = text.split_at(end);
        let is_plain = !place.contains(['@', '\\']) && place.chars().all(|c| c.is_ascii_graphic());
        is_plain.then(|| (place.to_ascii_lowercase(), if rest.is_empty() { "/" } else { rest }.to_owned()))
    };
    let (Some((own_place, own_rest)), Some((place, rest))) = (split(pattern), split(address)) else {
        return false;
    };
    fits(&own_place, &place) && fits(&own_rest, &rest)
}

/// `*` matches any number of characters, including zero.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).filter(|end| text.is_char_boundary(*end)).any(|end| fits(rest, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ManagedRules, String> {
        Managed::parse(Path::new("/etc/dragoman/managed.json"), text).map(|managed| managed.rules)
    }

    #[test]
    fn a_file_that_is_not_understood_is_refused() {
        for (text, why) in [
            ("{", "line 1"),
            ("[]", "object"),
            (r#"{"allowedProvider": []}"#, "`allowedProviders` is one"),
            (r#"{"allowedProviders": "openai"}"#, "must be a list of texts"),
            (r#"{"allowedModels": [1]}"#, "must be a list of texts"),
            (r#"{"allowedHosts": ["https://example.org"]}"#, "is not a host"),
            (r#"{"allowedMcpServers": [{"command": "x"}]}"#, "`allowedMcpServers` must be"),
            (r#"{"allowedMcpServers": [{}]}"#, "`allowedMcpServers` must be"),
            (r#"{"sandboxRequired": "yes"}"#, "`sandboxRequired` must be"),
            (r#"{"retentionDays": 0}"#, "`retentionDays` must be"),
            (r#"{"budgets": {"week": 1}}"#, "`budgets` must be"),
            (r#"{"budgets": {"day": -1}}"#, "`budgets` must be"),
            (r#"{"telemetry": true}"#, "`telemetry` must be"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(parse("{ /* nothing */ }"), Ok(ManagedRules::default()));
    }

    #[test]
    fn a_rule_permits_what_it_names() {
        let rules = parse(
            r#"{"allowedProviders": ["openai", "corp"], "allowedModels": ["openai/gpt-*", "corp/large"],
                "allowedPlugins": ["review", "lint@https://git.example/p.git", "*@corp"],
                "allowedMcpServers": ["notes", {"url": "https://*.corp.example/*"}, {"name": "fs", "command": ["fs", "."]}]}"#,
        )
        .unwrap();
        for (model, permitted) in [
            ("openai/gpt-5", true),
            ("openai/o3", false),
            ("anthropic/gpt-5", false),
            ("corp/large", true),
            ("corp/large2", false),
            ("local/x", false),
        ] {
            assert_eq!(rules.permits_model(model), permitted, "{model}");
        }
        for (name, url, command, permitted) in [
            ("notes", None, &["anything"][..], true),
            ("x", Some("https://mcp.corp.example/sse"), &[], true),
            ("x", Some("https://mcp.CORP.example/sse"), &[], true),
            ("x", Some("https://evil.example/"), &[], false),
            ("x", Some("https://evil.example/.corp.example/"), &[], false),
            ("x", Some("https://evil.example?.corp.example/"), &[], false),
            ("x", Some("https://mcp.corp.example@evil.example/"), &[], false),
            ("fs", None, &["fs", "."], true),
            ("fs", None, &["fs", "/"], false),
        ] {
            assert_eq!(rules.permits_server(name, url, command), permitted, "{name} {url:?} {command:?}");
        }
        for (name, source, location, permitted) in [
            ("review", "x", "https://evil.example", true),
            ("lint", "x", "https://git.example/p.git", true),
            ("lint", "x", "https://evil.example", false),
            ("any", "corp", "/srv/p", true),
            ("any", "x", "/srv/p", false),
        ] {
            assert_eq!(rules.permits_plugin(name, source, location), permitted, "{name}@{source}");
        }
        let hosts = parse(r#"{"allowedHosts": ["git.example"]}"#).unwrap();
        for (location, permitted) in [
            ("/srv/shop", true),
            ("./shop:x", true),
            ("https://git.example/shop.git", true),
            ("https://evil.example/shop.git", false),
            ("git@git.example:shop.git", true),
            ("git@evil.example:shop.git", false),
            ("evil.example:shop.git", false),
        ] {
            assert_eq!(hosts.permits_repository(location), permitted, "{location}");
        }
        assert!(!rules.permits_address_of_provider("https://evil.example/v1"));
        assert!(rules.permits_address_of_provider("http://localhost:8000/v1"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_could_change_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("managed.json");
        assert!(Managed::read(&file).unwrap().is_none());
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let error = Managed::read(&file).unwrap_err().to_string();
        assert!(error.contains("cannot be used") && error.contains("does not start"), "{error}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        assert!(Managed::read(&file).unwrap_err().to_string().contains("ordinary file"));
    }
}
