//! Asks servers for their models: the known local servers of this machine, and the configured ones.
//!
//! Runs in the background and never delays a start. Invariants: only what answers like the server it should be is
//! believed; no key is sent to a server that was not configured; every question has a deadline.

use std::time::Duration;

use domain::model::ModelInfo;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::KnownModel;
use crate::connection::Endpoint;
use crate::format::{Api, Thinking};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// A machine may hold hundreds of models; asking for each takes its time.
const MAX_MODELS_ASKED: usize = 64;

/// Servers that are looked for on this machine, by the name of their vendor's row.
pub const LOCAL_SERVERS: [&str; 4] = ["ollama", "lmstudio", "llama.cpp", "vllm"];

/// Whether a url leads to this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whether anything listens at the host and port of a url without TLS.
pub(crate) async fn listens(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return true };
    let host = rest.split('/').next().unwrap_or(rest);
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let connecting = tokio::net::TcpStream::connect(address);
    tokio::time::timeout(REQUEST_TIMEOUT, connecting).await.is_ok_and(|connected| connected.is_ok())
}

/// The models a server says it has; nothing where it does not answer or is something else.
pub(crate) async fn models(endpoint: &Endpoint) -> Option<Vec<KnownModel>> {
    match (endpoint.vendor.api, endpoint.vendor.name) {
        (Api::Ollama, _) => list_ollama_models(endpoint).await,
        (_, "lmstudio") => match list_lmstudio_models(endpoint).await {
            Some(models) => Some(models),
            None => list_models(endpoint, |_| true).await,
        },
        (_, "llama.cpp") => {
            list_models(endpoint, |model| model.owned_by.as_deref() == Some("llamacpp")).await
        }
        (_, "vllm") if !endpoint.has_key() && endpoint.url == endpoint.vendor.url => {
            list_models(endpoint, |model| model.owned_by.as_deref() == Some("vllm")).await
        }
        (Api::OpenAiChat | Api::OpenAiResponses | Api::Anthropic, _) => list_models(endpoint, |_| true).await,
        (Api::Gemini | Api::Bedrock, _) => None,
    }
}

/// Parts of the names of models that answer no prompts.
const NOT_CHAT_MODELS: [&str; 8] =
    ["embed", "whisper", "tts", "rerank", "moderation", "dall-e", "stable-diffusion", "flux"];

#[derive(Deserialize)]
struct ModelList<T> {
    #[serde(alias = "models")]
    data: Vec<T>,
}

/// A model of `/models`; gateways add what they know.
#[derive(Deserialize)]
struct ListedModel {
    id: String,
    owned_by: Option<String>,
    context_length: Option<u64>,
    /// The name that vLLM and SGLang have for it.
    max_model_len: Option<u64>,
    context_window: Option<u64>,
    max_context_length: Option<u64>,
    max_input_tokens: Option<u64>,
    meta: Option<ModelMeta>,
    supported_parameters: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ModelMeta {
    n_ctx: Option<u64>,
    n_ctx_train: Option<u64>,
}

impl ListedModel {
    fn context_limit(&self) -> Option<u64> {
        let meta = self.meta.as_ref();
        [
            self.max_model_len,
            self.context_length,
            self.context_window,
            self.max_context_length,
            self.max_input_tokens,
            meta.and_then(|meta| meta.n_ctx),
            meta.and_then(|meta| meta.n_ctx_train),
        ]
        .into_iter()
        .flatten()
        .find(|limit| *limit > 0)
    }
}

async fn list_models(endpoint: &Endpoint, accept: impl Fn(&ListedModel) -> bool) -> Option<Vec<KnownModel>> {
    let url = endpoint.join_url(|base| match endpoint.vendor.api {
        Api::OpenAiChat => format!("{base}/models"),
        Api::OpenAiResponses | Api::Anthropic | Api::Gemini | Api::Ollama | Api::Bedrock => {
            crate::connection::versioned(base, "models")
        }
    });
    let list: ModelList<ListedModel> = fetch_json(endpoint, &url, None).await?;
    let is_chat_model = |model: &ListedModel| {
        !NOT_CHAT_MODELS.iter().any(|part| model.id.to_ascii_lowercase().contains(part))
    };
    let known = list.data.into_iter().filter(|model| accept(model) && is_chat_model(model)).map(|model| {
        let supports = |name: &str| {
            model.supported_parameters.as_ref().is_none_or(|list| list.iter().any(|p| p == name))
        };
        let context = model.context_limit();
        known(endpoint, &model.id, context, supports("tools"), true, Thinking::None)
    });
    let known: Vec<_> = known.collect();
    (!known.is_empty()).then_some(known)
}

#[derive(Deserialize)]
struct LmStudioModel {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    max_context_length: Option<u64>,
    loaded_context_length: Option<u64>,
}

async fn list_lmstudio_models(endpoint: &Endpoint) -> Option<Vec<KnownModel>> {
    let url = endpoint.join_url(|base| format!("{}/api/v0/models", base.trim_end_matches("/v1")));
    let list: ModelList<LmStudioModel> = fetch_json(endpoint, &url, None).await?;
    let models = list.data.iter().filter(|model| model.kind != "embeddings");
    let models = models.map(|model| {
        let context = model.loaded_context_length.or(model.max_context_length);
        known(endpoint, &model.id, context, true, model.kind == "vlm", Thinking::None)
    });
    Some(models.collect())
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
}

#[derive(Deserialize)]
struct OllamaShow {
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    model_info: serde_json::Map<String, Value>,
}

async fn list_ollama_models(endpoint: &Endpoint) -> Option<Vec<KnownModel>> {
    let list: ModelList<OllamaModel> =
        fetch_json(endpoint, &endpoint.join_url(|base| format!("{base}/api/tags")), None).await?;
    let about = endpoint.join_url(|base| format!("{base}/api/show"));
    let mut models = Vec::new();
    for model in list.data.iter().take(MAX_MODELS_ASKED) {
        let body = serde_json::json!({ "model": model.name });
        let show: Option<OllamaShow> = fetch_json(endpoint, &about, Some(body)).await;
        let can =
            |what: &str| show.as_ref().is_none_or(|show| show.capabilities.iter().any(|known| known == what));
        if !can("completion") {
            continue;
        }
        let context = show.as_ref().and_then(|show| {
            show.model_info
                .iter()
                .find(|(key, _)| key.ends_with(".context_length"))
                .and_then(|(_, value)| value.as_u64())
        });
        let thinks = show.is_some() && can("thinking");
        let thinking = if thinks { Thinking::Effort } else { Thinking::None };
        let mut known = known(endpoint, &model.name, context, can("tools"), can("vision"), thinking);
        if thinks {
            // gpt-oss takes words, the others only know yes and no.
            let steps: &[&str] =
                if model.name.starts_with("gpt-oss") { &["low", "medium", "high"] } else { &["none", "on"] };
            known.info.variants = steps.iter().map(|step| (*step).to_owned()).collect();
        }
        models.push(known);
    }
    Some(models)
}

fn known(
    endpoint: &Endpoint,
    name: &str,
    context: Option<u64>,
    tools: bool,
    images: bool,
    thinking: Thinking,
) -> KnownModel {
    let info = ModelInfo {
        id: format!("{}/{name}", endpoint.name),
        context_limit: context,
        tools,
        images,
        reasoning: thinking != Thinking::None,
        ..ModelInfo::default()
    };
    KnownModel { info, thinking, temperature: true }
}

/// A question with a deadline: `None` for everything but an answer of this shape.
async fn fetch_json<T: DeserializeOwned>(endpoint: &Endpoint, url: &str, body: Option<Value>) -> Option<T> {
    let answer = tokio::time::timeout(REQUEST_TIMEOUT, async {
        let client = endpoint.network.client(url).await.ok()?;
        let request = match body {
            Some(body) => client.post(url).json(&body),
            None => client.get(url),
        };
        let mut response = authorize(endpoint, request).await?.send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut bytes = Vec::new();
        while let Some(more) = response.chunk().await.ok()? {
            bytes.extend_from_slice(&more);
            if bytes.len() > MAX_ANSWER_BYTES {
                return None;
            }
        }
        serde_json::from_slice(&bytes).ok()
    });
    answer.await.ok().flatten()
}

/// Only a configured endpoint has a key and headers.
async fn authorize(endpoint: &Endpoint, mut request: RequestBuilder) -> Option<RequestBuilder> {
    use crate::provider::Credential;
    use crate::vendors::Auth;
    for (name, value) in endpoint.resolve_headers(&endpoint.headers).await.ok()? {
        request = request.header(name, value);
    }
    if endpoint.vendor.api == Api::Anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    Some(match (endpoint.credential().await.ok()?, endpoint.vendor.auth) {
        (Some(Credential::Key(key)), Auth::Header(name)) => request.header(name, key),
        (Some(Credential::Key(key) | Credential::Bearer(key)), _) => request.bearer_auth(key),
        _ => request,
    })
}
