//! A profile in the files of AWS's own tools: `~/.aws/config` and `~/.aws/credentials`.
//!
//! Owns the reading of both files and of the tokens that `aws sso login` keeps. Makes no request and writes nothing.
//! Invariant: what is not a file of ordinary size is not read.

use std::collections::BTreeMap;
use std::path::Path;

use config::AwsSettings;
use jiff::Timestamp;
use serde_json::Value;

const MOST_BYTES: u64 = 1 << 20;
const MOST_TOKENS: usize = 200;

/// The keys of a profile; those of the credentials file win, as in AWS's own tools.
#[derive(Debug, Default)]
pub(crate) struct AwsProfile {
    keys: BTreeMap<String, String>,
    /// Neither file has it.
    pub(crate) is_missing: bool,
}

/// What a sign-in needs.
pub(crate) struct SignIn {
    pub(crate) start_url: String,
    pub(crate) region: String,
    pub(crate) account: String,
    pub(crate) role: String,
}

impl AwsProfile {
    pub(crate) fn read(settings: &AwsSettings) -> Self {
        let name = settings.profile.as_deref().unwrap_or("default");
        let config = sections(&read_small(&settings.config_file).unwrap_or_default());
        let credentials = sections(&read_small(&settings.credentials_file).unwrap_or_default());
        let in_config = match name {
            "default" => config.get("default").or_else(|| config.get("profile default")),
            name => config.get(&format!("profile {name}")),
        };
        let own = credentials.get(name);
        let is_missing = in_config.is_none() && own.is_none();
        let mut keys = in_config.cloned().unwrap_or_default();
        if let Some(session) =
            keys.get("sso_session").and_then(|name| config.get(&format!("sso-session {name}")))
        {
            for (key, value) in session {
                keys.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        keys.extend(own.cloned().unwrap_or_default());
        Self { keys, is_missing }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn sign_in(&self) -> Option<SignIn> {
        let text = |key: &str| self.get(key).map(str::to_owned);
        Some(SignIn {
            start_url: text("sso_start_url")?,
            region: text("sso_region")?,
            account: text("sso_account_id")?,
            role: text("sso_role_name")?,
        })
    }
}

/// A token of `aws sso login` for this address that is still good.
pub(crate) fn sign_in_token(cache: &Path, start_url: &str, now: Timestamp) -> Option<String> {
    let same = |text: &str| text.trim_end_matches(['/', '#']) == start_url.trim_end_matches(['/', '#']);
    let files = std::fs::read_dir(cache).ok()?.flatten().take(MOST_TOKENS);
    files.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "json")).find_map(|entry| {
        let file: Value = serde_json::from_str(&read_small(&entry.path())?).ok()?;
        let is_ours = file["startUrl"].as_str().is_some_and(same);
        let expires: Timestamp = file["expiresAt"].as_str()?.replace("UTC", "Z").parse().ok()?;
        (is_ours && expires > now).then(|| file["accessToken"].as_str().map(str::to_owned)).flatten()
    })
}

/// The sections of such a file, each with its keys. Lines that are indented belong to nested keys, which are not used.
fn sections(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            let name = trimmed.trim_start_matches('[').split(']').next().unwrap_or_default();
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ").replace(['"', '\''], "");
            all.entry(name.clone()).or_default();
            current = Some(name);
        } else if let (Some(section), Some((key, value))) = (&current, trimmed.split_once('='))
            && !line.starts_with([' ', '\t', '#', ';'])
        {
            let value = value.split(" #").next().unwrap_or_default().split(" ;").next().unwrap_or_default();
            let section = all.entry(section.clone()).or_default();
            section.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    all
}

fn read_small(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    (found.is_file() && found.len() <= MOST_BYTES).then(|| std::fs::read_to_string(path).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, folder: &Path) -> AwsProfile {
        let settings = AwsSettings {
            profile: Some(name.to_owned()),
            config_file: folder.join("config"),
            credentials_file: folder.join("credentials"),
            ..AwsSettings::default()
        };
        AwsProfile::read(&settings)
    }

    #[test]
    fn both_files_make_a_profile() {
        let folder = tempfile::tempdir().unwrap();
        let config = "# mine\n[default]\nregion = eu-west-1\n[profile \"work\"]\nregion=eu-central-1 # near\nsso_session = corp\n\
                      sso_account_id = 1\nsso_role_name = dev\ns3 =\n  max_queue = 3\n[sso-session corp]\n\
                      sso_start_url = https://corp.awsapps.com/start\nsso_region = eu-west-1\n";
        std::fs::write(folder.path().join("config"), config).unwrap();
        let credentials = "[work]\naws_access_key_id = AKID\n[old]\naws_secret_access_key = a=b\n";
        std::fs::write(folder.path().join("credentials"), credentials).unwrap();
        let work = profile("work", folder.path());
        assert_eq!((work.get("region"), work.get("aws_access_key_id")), (Some("eu-central-1"), Some("AKID")));
        assert_eq!(work.get("max_queue"), None);
        let sign_in = work.sign_in().unwrap();
        assert_eq!((sign_in.account.as_str(), sign_in.region.as_str()), ("1", "eu-west-1"));
        assert_eq!(profile("default", folder.path()).get("region"), Some("eu-west-1"));
        assert_eq!(profile("old", folder.path()).get("aws_secret_access_key"), Some("a=b"));
        assert!(profile("none", folder.path()).is_missing);
    }

    #[test]
    fn only_a_token_of_this_address_that_is_good_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let token = |name: &str, url: &str, expires: &str| {
            let text = format!(r#"{{"startUrl":"{url}","expiresAt":"{expires}","accessToken":"{name}"}}"#);
            std::fs::write(folder.path().join(format!("{name}.json")), text).unwrap();
        };
        token("old", "https://a/start", "2020-01-01T00:00:00Z");
        token("other", "https://b/start", "2099-01-01T00:00:00Z");
        std::fs::write(folder.path().join("broken.json"), "{").unwrap();
        let now = Timestamp::now();
        let found = || sign_in_token(folder.path(), "https://a/start/", now);
        assert_eq!(found(), None);
        token("good", "https://a/start", "2099-01-01T00:00:00UTC");
        assert_eq!(found().as_deref(), Some("good"));
    }
}
