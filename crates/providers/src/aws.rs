//! Credentials for Bedrock as AWS's own tools find them: the environment, a profile (keys, a program, a sign-in), a
//! container, the machine.
//!
//! Owns the order and the requests. Invariants: nothing is asked before a request to a model needs it; keys are kept in
//! memory until shortly before their end; messages hold no secret.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::{AwsContainer, AwsSettings, Redactor};
use domain::{CancellationToken, Failure};
use jiff::{SignedDuration, Timestamp};
use llm::{Credential, KeySource, Network};
use process::Spawn;
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::aws_profile::{AwsProfile, SignIn, sign_in_token};

const SERVICE_TIMEOUT: Duration = Duration::from_secs(20);
/// The service of the machine is near, or is not there.
const METADATA_TIMEOUT: Duration = Duration::from_secs(3);
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(50);
/// Keys that end sooner are asked for again.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);
const MOST_BYTES: usize = 64 << 10;

/// Whether the environment says that credentials of AWS are to be used.
pub(crate) fn are_expected(settings: &AwsSettings) -> bool {
    settings.access_key_id.is_some() && settings.secret_access_key.is_some()
        || settings.profile.is_some()
        || settings.container.is_some()
}

/// The region of the environment, else of the profile.
pub(crate) fn region(settings: &AwsSettings) -> Option<String> {
    settings.region.clone().or_else(|| AwsProfile::read(settings).get("region").map(str::to_owned))
}

/// The source of the credentials.
pub(crate) fn key_source(settings: &AwsSettings, network: Arc<Network>, redactor: Redactor) -> KeySource {
    let finder = Arc::new(Finder { settings: settings.clone(), network, redactor, known: Mutex::default() });
    KeySource::new(move || {
        let finder = finder.clone();
        Box::pin(async move { finder.credential().await })
    })
}

#[derive(Clone)]
struct AwsKeys {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
    expires: Option<Timestamp>,
}

struct Finder {
    settings: AwsSettings,
    network: Arc<Network>,
    redactor: Redactor,
    known: Mutex<Option<AwsKeys>>,
}

impl Finder {
    async fn credential(&self) -> Result<Option<Credential>, Failure> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_good = |keys: &AwsKeys| keys.expires.is_none_or(|expires| expires - MARGIN > Timestamp::now());
        let keys = match known.filter(is_good) {
            Some(keys) => Some(keys),
            None => self.find().await?,
        };
        let Some(keys) = keys else { return Ok(None) };
        self.redactor.add_secret(&keys.secret_key);
        if let Some(token) = &keys.session_token {
            self.redactor.add_secret(token);
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
        let AwsKeys { access_key, secret_key, session_token, .. } = keys;
        Ok(Some(Credential::Aws { access_key, secret_key, session_token }))
    }

    async fn find(&self) -> Result<Option<AwsKeys>, Failure> {
        let settings = &self.settings;
        if let (Some(access_key), Some(secret_key)) = (&settings.access_key_id, &settings.secret_access_key) {
            return Ok(Some(AwsKeys {
                access_key: access_key.clone(),
                secret_key: secret_key.expose().to_owned(),
                session_token: settings.session_token.as_ref().map(|token| token.expose().to_owned()),
                expires: None,
            }));
        }
        let of_files = settings.clone();
        let profile = tokio::task::spawn_blocking(move || AwsProfile::read(&of_files)).await;
        let profile = profile.map_err(|error| Failure::internal(error.to_string()))?;
        if let Some(keys) = self.of_profile(&profile).await? {
            return Ok(Some(keys));
        }
        if let Some(container) = &settings.container {
            return self.of_container(container).await.map(Some);
        }
        match &settings.metadata_endpoint {
            Some(endpoint) => Ok(self.of_machine(endpoint).await),
            None => Ok(None),
        }
    }

    async fn of_profile(&self, profile: &AwsProfile) -> Result<Option<AwsKeys>, Failure> {
        let name = self.settings.profile.as_deref().unwrap_or("default");
        if profile.is_missing {
            return match &self.settings.profile {
                Some(name) => Err(Failure::auth(format!("There is no AWS profile `{name}`."))
                    .hint("AWS_PROFILE names a profile of ~/.aws/config or ~/.aws/credentials.")),
                None => Ok(None),
            };
        }
        if let (Some(access), Some(secret)) =
            (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
        {
            return Ok(Some(AwsKeys {
                access_key: access.to_owned(),
                secret_key: secret.to_owned(),
                session_token: profile.get("aws_session_token").map(str::to_owned),
                expires: None,
            }));
        }
        if let Some(line) = profile.get("credential_process") {
            return of_program(name, line).await.map(Some);
        }
        if let Some(sign_in) = profile.sign_in() {
            return self.of_sign_in(name, &sign_in).await.map(Some);
        }
        if profile.get("role_arn").is_some() {
            let line = format!(
                "credential_process = aws configure export-credentials --profile {name} --format process"
            );
            return Err(Failure::auth(format!(
                "The AWS profile `{name}` assumes a role, which Dragoman does not do."
            ))
            .hint(format!("Name a profile with this line instead: {line}")));
        }
        Ok(None)
    }

    async fn of_sign_in(&self, name: &str, sign_in: &SignIn) -> Result<AwsKeys, Failure> {
        let (cache, start_url) = (self.settings.sso_cache.clone(), sign_in.start_url.clone());
        let token =
            tokio::task::spawn_blocking(move || sign_in_token(&cache, &start_url, Timestamp::now())).await;
        let again = format!("Run `aws sso login --profile {name}`.");
        let Some(token) = token.ok().flatten() else {
            return Err(Failure::auth(format!("The AWS profile `{name}` is not signed in.")).hint(again));
        };
        self.redactor.add_secret(&token);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !sign_in.region.bytes().all(is_plain) {
            return Err(Failure::auth(format!("`sso_region` of the AWS profile `{name}` is not a region.")));
        }
        let otherwise = || format!("https://portal.sso.{}.amazonaws.com", sign_in.region);
        let base = self.settings.sso_endpoint.clone().unwrap_or_else(otherwise);
        let [account, role] = [&sign_in.account, &sign_in.role].map(|text| encode(text));
        let base = base.trim_end_matches('/');
        let url = format!("{base}/federation/credentials?account_id={account}&role_name={role}");
        let request = self.network.client(&url).await?.get(&url);
        let answer = ask(request.header("x-amz-sso_bearer_token", token), SERVICE_TIMEOUT).await;
        let answer = answer.map_err(|reason| {
            Failure::auth(format!("The sign-in of the AWS profile `{name}` was refused: {reason}."))
                .hint(again)
        })?;
        keys_of(&answer["roleCredentials"])
            .ok_or_else(|| Failure::auth("The sign-in service of AWS gave no credentials."))
    }

    async fn of_container(&self, container: &AwsContainer) -> Result<AwsKeys, Failure> {
        let url = &container.url;
        let refused = |reason: &str| {
            Failure::auth(format!("The container gave no AWS credentials: {reason}."))
                .hint("AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI names the address.")
        };
        if !may_be_asked(url) {
            return Err(refused("only https, this machine and the addresses of ECS and EKS are asked"));
        }
        let mut request = self.network.client(url).await?.get(url);
        let token = match &container.token_file {
            Some(file) => {
                Some(tokio::fs::read_to_string(file).await.map_err(|error| refused(&error.to_string()))?)
            }
            None => container.token.as_ref().map(|token| token.expose().to_owned()),
        };
        if let Some(token) = token {
            self.redactor.add_secret(token.trim());
            request = request.header("authorization", token.trim());
        }
        let answer = ask(request, SERVICE_TIMEOUT).await.map_err(|reason| refused(&reason))?;
        keys_of(&answer).ok_or_else(|| refused("the answer holds none"))
    }

    /// By the second version of the service, which asks for a token first. A machine without it has no credentials.
    async fn of_machine(&self, endpoint: &str) -> Option<AwsKeys> {
        let base = format!("{}/latest", endpoint.trim_end_matches('/'));
        let client = self.network.client(&base).await.ok()?;
        let token =
            client.put(format!("{base}/api/token")).header("x-aws-ec2-metadata-token-ttl-seconds", "300");
        let token = text(token, METADATA_TIMEOUT).await.ok()?;
        let get = |path: &str| {
            let request = client.get(format!("{base}/meta-data/iam/security-credentials/{path}"));
            request.header("x-aws-ec2-metadata-token", token.trim())
        };
        let roles = text(get(""), METADATA_TIMEOUT).await.ok()?;
        let role = roles.lines().next().filter(|role| !role.is_empty() && !role.contains(['/', '?', '#']))?;
        keys_of(&ask(get(role), METADATA_TIMEOUT).await.ok()?)
    }
}

async fn of_program(name: &str, line: &str) -> Result<AwsKeys, Failure> {
    let failed = |reason: &str| {
        Failure::auth(format!(
            "The `credential_process` of the AWS profile `{name}` gave no credentials: {reason}."
        ))
    };
    let finished = Spawn::shell(line).deadline(PROGRAM_TIMEOUT).run(&CancellationToken::new()).await;
    let finished = finished.map_err(|error| failed(&error.to_string()))?;
    if !finished.success() {
        return Err(failed("it failed"));
    }
    let answer: Value = serde_json::from_str(&finished.stdout.text()).unwrap_or_default();
    keys_of(&answer).ok_or_else(|| failed("its output holds none"))
}

/// Only services that may know: nothing else is sent the container's token.
fn may_be_asked(url: &str) -> bool {
    let near = ["http://169.254.170.2/", "http://169.254.170.23/", "http://[fd00:ec2::23]/"];
    let own = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let is_own = |start: &&str| url.strip_prefix(*start).is_some_and(|rest| rest.starts_with([':', '/']));
    url.starts_with("https://") || near.iter().any(|start| url.starts_with(start)) || own.iter().any(is_own)
}

/// The keys of an answer, in the spellings of all services.
fn keys_of(answer: &Value) -> Option<AwsKeys> {
    let text = |names: &[&str]| names.iter().find_map(|name| answer[*name].as_str()).map(str::to_owned);
    let of_text = answer["Expiration"].as_str().and_then(|time| time.parse().ok());
    let of_number = answer["expiration"].as_i64().and_then(|time| Timestamp::from_millisecond(time).ok());
    Some(AwsKeys {
        access_key: text(&["AccessKeyId", "accessKeyId"])?,
        secret_key: text(&["SecretAccessKey", "secretAccessKey"])?,
        session_token: text(&["Token", "SessionToken", "sessionToken"]),
        expires: of_text.or(of_number),
    })
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

async fn ask(request: RequestBuilder, timeout: Duration) -> Result<Value, String> {
    serde_json::from_str(&text(request, timeout).await?).map_err(|_| "the answer is not JSON".to_owned())
}

/// The reason holds no part of the request.
async fn text(request: RequestBuilder, timeout: Duration) -> Result<String, String> {
    let answer = async {
        let mut response = request.send().await.map_err(|_| "it cannot be reached".to_owned())?;
        if !response.status().is_success() {
            return Err(format!("it answers {}", response.status()));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|_| "its answer broke off".to_owned())? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MOST_BYTES {
                return Err("its answer is too long".to_owned());
            }
        }
        String::from_utf8(bytes).map_err(|_| "its answer is not text".to_owned())
    };
    tokio::time::timeout(timeout, answer).await.map_err(|_| "it does not answer".to_owned())?
}
