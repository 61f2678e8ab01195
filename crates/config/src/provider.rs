//! `providers.<name>`: how to reach a model vendor. Only values that the user set; llm's table knows the vendors.

use domain::{Failure, Level};
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::address;
use crate::cursor::Cursor;
use crate::destination::Destination;
use crate::lazy_text::{LazyText, SecretSource};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderSettings {
    /// `openai-responses`, `openai-chat`, `anthropic` or another format that llm knows.
    pub api: Option<String>,
    /// Also when it is empty or could not be looked up; `url_problem` then has the reason.
    pub url: Option<LazyText>,
    /// Why the written address cannot be used. No request may go to another address instead.
    pub url_problem: Option<Failure>,
    pub key: Option<SecretSource>,
    /// The host of a project's `url`, to which keys of the user are not sent.
    pub withheld_from: Option<String>,
    /// By the name the user chose, in the order of the settings.
    pub models: IndexMap<String, ModelSettings>,
    pub extra_headers: Vec<(String, SecretSource)>,
    pub extra_payload: Map<String, Value>,
    /// Whether the vendor is asked for its list of models.
    pub fetch_models: Option<bool>,
    /// Instead of the path that belongs to the API format.
    pub completion_path: Option<String>,
    /// Another server for a device login.
    pub auth_url: Option<String>,
    pub auth_client_id: Option<String>,
    /// Requests at once.
    pub concurrency: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// The vendor's name for it, where it differs.
    pub model_name: Option<String>,
    pub extra_payload: Map<String, Value>,
    pub extra_headers: Vec<(String, SecretSource)>,
    pub context_limit: Option<u64>,
    pub output_limit: Option<u64>,
    /// Dollars for a million tokens: input, output, cache read, cache write.
    pub input_cost: Option<f64>,
    pub output_cost: Option<f64>,
    pub cache_read_cost: Option<f64>,
    pub cache_write_cost: Option<f64>,
    /// Payloads to choose from; an empty one takes a built-in variant away.
    pub variants: IndexMap<String, Map<String, Value>>,
}

impl ProviderSettings {
    pub(crate) fn read(cursor: &Cursor) -> Self {
        let (url, url_problem) = url(&cursor.get("url")).unzip();
        let auth_url = cursor.get("auth").get("url");
        let destination = Destination::of(cursor, &[cursor.get("url"), auth_url.clone()]);
        let key = cursor.get("key");
        let has_foreign_key = key.node().is_some() && !destination.takes(&key);
        let headers = cursor.get("extraHeaders");
        let (extra_headers, mut is_short) = destination.members(&headers, headers.secrets());
        let mut models = IndexMap::new();
        for model in cursor.get("models").entries() {
            let mut read = ModelSettings::read(&model);
            let headers = model.get("extraHeaders");
            let (kept, is_shorter) = destination.members(&headers, read.extra_headers);
            (read.extra_headers, is_short) = (kept, is_short || is_shorter);
            models.insert(model.name().to_owned(), read);
        }
        if has_foreign_key || is_short || destination.is_secret() {
            destination.report(&cursor.dotted());
        }
        let secret_address = destination.is_secret().then(|| {
            let name = cursor.dotted();
            Failure::config(format!("`{name}` has an address of a project that refers to values of yours."))
                .hint("Name its host in `keyHosts` of your own settings, if you want to send them there.")
        });
        Self {
            api: cursor.get("api").text().or_else(|| api_of_eca(cursor)),
            url,
            url_problem: url_problem.flatten().or(secret_address),
            key: if has_foreign_key { None } else { key.secret() },
            withheld_from: destination.foreign_host().map(str::to_owned),
            models,
            extra_headers,
            extra_payload: object(&cursor.get("extraPayload")),
            fetch_models: cursor.get("fetchModels").flag(),
            completion_path: cursor.get("completionUrlRelativePath").text(),
            auth_url: auth_url.text(),
            auth_client_id: cursor.get("auth").get("clientId").text(),
            concurrency: cursor.get("concurrency").number(1..=1000),
        }
    }
}

/// At an address of its settings ECA speaks to Google in the form of OpenAI.
fn api_of_eca(cursor: &Cursor) -> Option<String> {
    let url = cursor.get("url");
    let is_of_eca = cursor.name() == "google" && url.node().is_some() && url.origin().is_of_eca();
    is_of_eca.then(|| "openai-chat".to_owned())
}

/// Looked up now, because a provider is unknown without it. An address that is written and empty is a problem: otherwise
/// the vendor's own address would get requests that were meant for another.
fn url(cursor: &Cursor) -> Option<(LazyText, Option<Failure>)> {
    let url = cursor.url_text()?;
    let found = url.get_blocking().and_then(|known| match known.is_empty() {
        true => Err(Failure::config(format!("`{}` is written, but is empty.", cursor.dotted()))
            .hint("Set what it refers to, or take it out of your settings.")),
        false => Ok(known),
    });
    match found {
        Ok(known) => {
            for secret in address::secrets(&known) {
                cursor.scope().redactor.add_secret(&secret);
            }
            Some((url, None))
        }
        Err(failure) => {
            let what = format!("cannot be used, and so its provider cannot either. {failure}");
            cursor.report(Level::Error, &what);
            Some((url, Some(failure)))
        }
    }
}

impl ModelSettings {
    fn read(cursor: &Cursor) -> Self {
        let variants = cursor.get("variants").entries();
        let cost = |name| cursor.get("cost").get(name).value().and_then(|cost| cost.as_f64());
        Self {
            model_name: cursor.get("modelName").text(),
            extra_payload: object(&cursor.get("extraPayload")),
            extra_headers: cursor.get("extraHeaders").secrets(),
            context_limit: cursor.get("limit").get("context").number(1..=u64::MAX),
            output_limit: cursor.get("limit").get("output").number(1..=u64::MAX),
            input_cost: cost("input"),
            output_cost: cost("output"),
            cache_read_cost: cost("cacheRead"),
            cache_write_cost: cost("cacheWrite"),
            variants: variants.iter().map(|entry| (entry.name().to_owned(), object(entry))).collect(),
        }
    }
}

/// An object that is handed on as it is.
pub(crate) fn object(cursor: &Cursor) -> Map<String, Value> {
    match cursor.value() {
        Some(Value::Object(object)) => object,
        None | Some(Value::Null) => Map::new(),
        Some(_) => {
            cursor.report_invalid("must be an object");
            Map::new()
        }
    }
}
