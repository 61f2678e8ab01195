//! A provider as `app` describes it: plain data, its key behind a function that is called when it is needed.
//!
//! Invariant: a key is never printed, not even by `Debug`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::model::ModelInfo;
use domain::{BoxFuture, Failure};
use serde_json::{Map, Value};

use crate::format::Api;

/// A configured provider. A member that is `None` comes from the vendor's row.
#[derive(Clone, Debug, Default)]
pub struct ProviderConfig {
    /// The part before the slash in `provider/model`.
    pub name: String,
    pub api: Option<Api>,
    pub url: Option<String>,
    /// The path after the url in place of the format's own, e.g. `/chat/completions`.
    pub path: Option<String>,
    pub key: Option<KeySource>,
    /// Models the user configured; they are listed before those of the catalog.
    pub models: Vec<ModelConfig>,
    /// Sent with every request; a value may have to be looked up like a key.
    pub headers: Vec<(String, KeySource)>,
    /// How long a stream may stay silent.
    pub silence: Option<Duration>,
    /// List the catalog's models of this provider as well.
    pub catalog: bool,
    /// Ask the server which models it has; by default where none are configured.
    pub fetch_models: Option<bool>,
    /// Requests at once, where it differs from the others.
    pub concurrency: Option<usize>,
}

/// A model of configuration.
#[derive(Clone, Debug, Default)]
pub struct ModelConfig {
    /// The part after the slash.
    pub name: String,
    /// The name on the wire where it differs.
    pub wire_name: Option<String>,
    /// Limits and prices in place of the catalog's.
    pub info: Option<ModelInfo>,
    /// Members merged into every request.
    pub body: Map<String, Value>,
    pub headers: Vec<(String, KeySource)>,
    /// Members merged into requests of a variant, by its name, weakest first.
    pub variants: Vec<(String, Map<String, Value>)>,
}

/// The secret that authorizes a request.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    Key(String),
    /// A key that `Authorization: Bearer` carries whatever the vendor's row says (subscriptions, gateways).
    Bearer(String),
    Aws {
        access_key: String,
        secret_key: String,
        session_token: Option<String>,
    },
}

impl Credential {
    /// The parts that must never be shown.
    pub fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Key(key) | Self::Bearer(key) => vec![key],
            Self::Aws { secret_key, session_token, .. } => {
                std::iter::once(secret_key.as_str()).chain(session_token.as_deref()).collect()
            }
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

type Source = dyn Fn() -> BoxFuture<'static, Result<Option<Credential>, Failure>> + Send + Sync;

/// Where a key comes from. Asked before each request, so that it can be renewed; [`KeySource::once`] remembers.
#[derive(Clone)]
pub struct KeySource {
    source: Arc<Source>,
    /// Whether there is one now; without it there always is.
    available: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl KeySource {
    /// Asks `source` before every request.
    pub fn new<F>(source: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<Option<Credential>, Failure>> + Send + Sync + 'static,
    {
        Self { source: Arc::new(source), available: None }
    }

    /// The same for a key that may come and go: `there` says, without waiting, whether it is available.
    pub fn available_while(self, available: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { available: Some(Arc::new(available)), ..self }
    }

    pub fn is_available(&self) -> bool {
        self.available.as_ref().is_none_or(|available| available())
    }

    /// Asks `source` when the first request needs it, and keeps what it gave.
    pub fn once<F>(source: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<Option<Credential>, Failure>> + Send + Sync + 'static,
    {
        let cell = Arc::new(tokio::sync::OnceCell::new());
        let source = Arc::new(source);
        Self::new(move || {
            let (cell, source) = (cell.clone(), source.clone());
            Box::pin(async move { cell.get_or_try_init(|| source()).await.cloned() })
        })
    }

    pub fn fixed(key: impl Into<String>) -> Self {
        let credential = Credential::Key(key.into());
        Self::new(move || {
            let credential = credential.clone();
            Box::pin(async move { Ok(Some(credential)) })
        })
    }

    pub async fn get(&self) -> Result<Option<Credential>, Failure> {
        (self.source)().await
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySource(…)")
    }
}

/// Limits of one call, the same for all providers unless a provider has its own.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// How long a stream may stay silent.
    pub silence: Duration,
    pub attempts: u32,
    /// The first wait before another attempt; each later one is twice as long.
    pub first_wait: Duration,
    /// A longer wait than this is not waited: the call fails and says when it makes sense again.
    pub longest_wait: Duration,
    /// Requests at once to one provider.
    pub concurrency: usize,
    /// An answer that is larger ends with a notice.
    pub max_answer_bytes: usize,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(120),
            attempts: 8,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(600),
            concurrency: 256,
            max_answer_bytes: 16 << 20,
        }
    }
}
