//! Signs in to GitHub Copilot: the device flow, and the exchange of the sign-in for a short-lived token.
//!
//! Invariants: a token is renewed before it expires, by one process of the machine at a time; every wait has a
//! deadline; no token appears in an error.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::{AccessToken, Credentials, StoredCredential};
use domain::{Failure, FailureKind};
use llm::{Credential, Network};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub const PROVIDER: &str = "github-copilot";
const HOME: &str = "https://github.com";
const HOME_API: &str = "https://api.github.com";
/// The public client id that editors use to sign in to Copilot.
const CLIENT: &str = "Iv1.b507a08c87ecfe98";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// A token with less time left than this is renewed.
const RENEW_BEFORE_SECONDS: i64 = 300;

/// The server and client id of the sign-in.
#[derive(Clone)]
pub struct SignInServer {
    url: String,
    client: String,
    network: Arc<Network>,
}

/// The page to open and the code to type there.
#[derive(Deserialize)]
pub struct Device {
    pub verification_uri: String,
    pub user_code: String,
    device_code: String,
    expires_in: u64,
    #[serde(default = "default_interval")]
    interval: u64,
}

fn default_interval() -> u64 {
    5
}

#[derive(Deserialize)]
struct PollResponse {
    access_token: Option<String>,
    error: Option<String>,
    interval: Option<u64>,
}

#[derive(Deserialize)]
struct ExchangeResponse {
    token: String,
    expires_at: i64,
}

impl SignInServer {
    /// `settings` may name another server or client id.
    pub fn new(settings: Option<&config::ProviderSettings>, network: Arc<Network>) -> Self {
        let url = settings.and_then(|it| it.auth_url.as_deref()).unwrap_or(HOME);
        let client = settings.and_then(|it| it.auth_client_id.as_deref()).unwrap_or(CLIENT);
        Self { url: url.trim_end_matches('/').to_owned(), client: client.to_owned(), network }
    }

    pub async fn begin(&self) -> Result<Device, Failure> {
        let body = json!({"client_id": self.client, "scope": "read:user"});
        self.post("/login/device/code", &body).await
    }

    /// Keeps the credential once the user has typed the code, and then calls `on_signed_in`: there are new models.
    pub fn finish_in_background(
        self,
        device: Device,
        credentials: Arc<dyn Credentials>,
        on_signed_in: impl FnOnce() + Send + 'static,
    ) {
        tokio::spawn(async move {
            let signed_in = self.finish(&device).await.and_then(|it| credentials.put(PROVIDER, it));
            match signed_in {
                Ok(()) => on_signed_in(),
                Err(failure) => tracing::warn!(%failure, "the sign-in failed"),
            }
        });
    }

    /// Polls until the user has typed the code or the code has expired.
    pub async fn finish(&self, device: &Device) -> Result<StoredCredential, Failure> {
        let polling = async {
            let mut pause = device.interval;
            loop {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                let body = json!({
                    "client_id": self.client,
                    "device_code": device.device_code,
                    "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                });
                let polled: PollResponse = self.post("/login/oauth/access_token", &body).await?;
                match (polled.access_token, polled.error.as_deref()) {
                    (Some(token), _) => return Ok(StoredCredential::GitHub { token, access: None }),
                    (None, Some("authorization_pending")) => {}
                    (None, Some("slow_down")) => pause = polled.interval.unwrap_or(pause + 5),
                    (None, Some("access_denied")) => return Err(sign_in_failure("You refused the sign-in.")),
                    (None, _) => return Err(sign_in_failure("GitHub did not accept the sign-in.")),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(device.expires_in), polling)
            .await
            .unwrap_or_else(|_| Err(sign_in_failure("The code has expired.")))
    }

    /// The token for the next request: the stored one while it is fresh, else a new one.
    pub(crate) async fn valid_token(
        &self,
        credentials: &Arc<dyn Credentials>,
    ) -> Result<Option<Credential>, Failure> {
        let usable = |credentials: &Arc<dyn Credentials>| match credentials.get(PROVIDER)? {
            Some(StoredCredential::GitHub { token, access }) => {
                Ok::<_, Failure>(Some((token, access.filter(is_fresh))))
            }
            _ => Ok(None),
        };
        match usable(credentials)? {
            None => return Ok(None),
            Some((_, Some(access))) => return Ok(Some(Credential::Bearer(access.token))),
            Some((_, None)) => {}
        }
        let waiting = credentials.clone();
        let _renewing = tokio::task::spawn_blocking(move || waiting.renewing())
            .await
            .map_err(|_| Failure::internal("Renewing a token broke."))??;
        // Another process may have renewed it meanwhile.
        match usable(credentials)? {
            None => Ok(None),
            Some((_, Some(access))) => Ok(Some(Credential::Bearer(access.token))),
            Some((token, None)) => {
                let access = self.exchange(&token).await?;
                let renewed = StoredCredential::GitHub { token, access: Some(access.clone()) };
                credentials.put(PROVIDER, renewed)?;
                Ok(Some(Credential::Bearer(access.token)))
            }
        }
    }

    /// Exchanges a GitHub token for a Copilot token.
    pub(crate) async fn exchange(&self, token: &str) -> Result<AccessToken, Failure> {
        let base = if self.url == HOME { HOME_API } else { &self.url };
        let url = format!("{base}/copilot_internal/v2/token");
        let client = self.network.client(&url).await?;
        let request = client.get(&url).header("authorization", format!("token {token}"));
        let ExchangeResponse { token, expires_at } = receive(request).await?;
        Ok(AccessToken { token, expires_at })
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        let url = format!("{}{path}", self.url);
        let client = self.network.client(&url).await?;
        receive(client.post(&url).json(body)).await
    }
}

/// It need not be renewed yet.
pub(crate) fn is_fresh(access: &AccessToken) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    access.expires_at - RENEW_BEFORE_SECONDS > i64::try_from(now).unwrap_or(i64::MAX)
}

async fn receive<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, Failure> {
    let unreachable = |why: String| {
        Failure::provider(format!("GitHub cannot be reached: {why}."))
            .hint("Check the network and try again.")
    };
    let receiving = async {
        let sent = request.header("accept", "application/json").send().await;
        let response = sent.map_err(|error| unreachable(error.without_url().to_string()))?;
        let status = response.status();
        if status.as_u16() == 401 || status.as_u16() == 403 {
            return Err(sign_in_failure("GitHub refuses the sign-in, or this account has no Copilot."));
        }
        if !status.is_success() {
            return Err(unreachable(format!("it says {status}")));
        }
        response.json().await.map_err(|_| unreachable("its answer is not understood".to_owned()))
    };
    tokio::time::timeout(REQUEST_TIMEOUT, receiving)
        .await
        .unwrap_or_else(|_| Err(unreachable("it does not answer".to_owned())))
}

fn sign_in_failure(message: &str) -> Failure {
    Failure::new(FailureKind::Auth, message).hint(format!("Run `dragoman login {PROVIDER}` again."))
}
