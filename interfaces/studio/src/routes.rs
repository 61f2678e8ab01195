//! The routes below `/api`: they read the request, call the studio and write the answer. docs/protocols/studio.md is their page.

use std::collections::HashMap;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use web::{ApiError, Input};

use crate::calls::{BaseUrlInput, ConnectionInput};
use crate::changes::MessageInput;
use crate::console::{EntryKind, Level};
use crate::exchange::NetworkRequest;
use crate::export::ExportInput;
use crate::oauth::{begun, closing_page};
use crate::plugins::PluginInput;
use crate::sign_ins::SignInInput;
use crate::specification::SpecificationInput;
use crate::studio::Studio;

type Answer = Result<Response, ApiError>;

/// The largest body of a path, in bytes.
pub fn body_limit(path: &str) -> usize {
    if path.ends_with("/specification") {
        64 << 20
    } else if path.ends_with("/network") {
        24 << 20
    } else {
        1 << 20
    }
}

/// Paths that a browser may be sent to from elsewhere.
pub fn is_open(path: &str) -> bool {
    path == "/oauth/callback"
}

impl Studio {
    /// Routes for pages that have shown their secret.
    pub fn api(&self) -> Router {
        Router::new()
            .route("/state", get(state))
            .route("/events", get(events))
            .route("/preferences", put(preferences))
            .route("/tabs", post(add_tab).put(order_tabs))
            .route("/tabs/{tab}", patch(rename_tab).delete(close_tab))
            .route("/tabs/{tab}/reopen", post(reopen_tab))
            .route("/tabs/{tab}/specification", post(specification))
            .route("/tabs/{tab}/generate", post(generate))
            .route("/tabs/{tab}/messages", post(message))
            .route("/tabs/{tab}/messages/{message}", delete(cancel_message))
            .route("/tabs/{tab}/versions", get(versions))
            .route("/tabs/{tab}/versions/{number}", get(version))
            .route("/tabs/{tab}/versions/{number}/script", get(script))
            .route("/tabs/{tab}/versions/{number}/revert", post(revert))
            .route("/tabs/{tab}/versions/{number}/outcome", post(outcome))
            .route("/tabs/{tab}/diff", get(diff))
            .route("/tabs/{tab}/frame-log", post(frame_log))
            .route("/tabs/{tab}/base-url", put(base_url))
            .route("/tabs/{tab}/network", post(network))
            .route("/tabs/{tab}/connection", put(connection).delete(forget_connection))
            .route("/tabs/{tab}/connection/oauth", post(oauth))
            .route("/tabs/{tab}/connection/test", post(test_connection))
            .route("/tabs/{tab}/export", post(export))
            .route("/plugins", post(add_plugin))
            .route("/plugins/{name}", delete(remove_plugin))
            .route("/plugins/{name}/try", post(try_plugin))
            .route("/tool-calls/{id}", post(tool_call))
            .route("/console", get(console).delete(clear_console))
            .route("/cli/restart", post(restart_cli))
            .with_state(self.clone())
    }

    /// Routes that a browser is sent to from elsewhere.
    pub fn open_routes(&self) -> Router {
        Router::new().route("/oauth/callback", get(oauth_callback)).with_state(self.clone())
    }
}

fn done() -> Answer {
    Ok(web::json(&json!({})))
}

/// The pairs of a query; of two with the same name the first counts.
fn pairs(query: Option<String>) -> HashMap<String, String> {
    let address = format!("http://localhost/?{}", query.unwrap_or_default());
    let mut found = HashMap::new();
    if let Ok(url) = reqwest::Url::parse(&address) {
        for (name, value) in url.query_pairs() {
            found.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
    }
    found
}

fn number(query: &HashMap<String, String>, name: &str) -> Option<u64> {
    query.get(name)?.parse().ok()
}

fn accepted(value: &Value) -> Answer {
    Ok((StatusCode::ACCEPTED, web::json(value)).into_response())
}

async fn state(State(studio): State<Studio>) -> Response {
    web::json(&studio.state())
}

async fn events(State(studio): State<Studio>) -> Response {
    let (first, receiver) = studio.subscribe();
    let rest = futures_util::stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok((name, text)) => Some(((name, text.to_string()), receiver)),
            // A page that lags reads the whole state again.
            Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => None,
        }
    });
    let first = futures_util::stream::iter([(first.0, first.1.to_string())]);
    web::events(futures_util::StreamExt::chain(first, rest))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreferencesInput {
    #[serde(default)]
    chat_width: Option<f64>,
    #[serde(default)]
    theme: Option<String>,
    #[serde(default)]
    active_tab: Option<String>,
}

async fn preferences(State(studio): State<Studio>, Input(input): Input<PreferencesInput>) -> Answer {
    if input.theme.as_deref().is_some_and(|theme| !["light", "dark", "auto"].contains(&theme)) {
        return Err(ApiError::invalid("A theme is `light`, `dark` or `auto`."));
    }
    let preferences = {
        let mut model = studio.model();
        if let Some(width) = input.chat_width.filter(|width| width.is_finite()) {
            model.preferences.chat_width = width.clamp(15.0, 85.0);
        }
        if let Some(theme) = input.theme {
            model.preferences.theme = theme;
        }
        if let Some(tab) = input.active_tab.filter(|tab| model.tab(tab).is_some()) {
            model.preferences.active_tab = Some(tab);
        }
        model.preferences.clone()
    };
    let kept = studio.archive.save_preferences(&preferences).await;
    kept.map_err(|failure| crate::studio::not_kept(&failure))?;
    studio.publish("preferences", &preferences);
    done()
}

#[derive(Deserialize)]
struct TabInput {
    #[serde(default)]
    title: Option<String>,
}

async fn add_tab(State(studio): State<Studio>, Input(input): Input<TabInput>) -> Answer {
    let id = studio.add_tab(input.title).await?;
    Ok((StatusCode::CREATED, web::json(&studio.tab_value(&id)?)).into_response())
}

async fn rename_tab(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<TabInput>,
) -> Answer {
    studio.rename_tab(&tab, input.title.unwrap_or_default()).await?;
    Ok(web::json(&studio.tab_value(&tab)?))
}

#[derive(Deserialize)]
struct OrderInput {
    order: Vec<String>,
}

async fn order_tabs(State(studio): State<Studio>, Input(input): Input<OrderInput>) -> Answer {
    studio.order_tabs(&input.order).await?;
    done()
}

async fn close_tab(State(studio): State<Studio>, Path(tab): Path<String>) -> Answer {
    studio.close_tab(&tab).await?;
    done()
}

async fn reopen_tab(State(studio): State<Studio>, Path(tab): Path<String>, Input(_): Input<Value>) -> Answer {
    studio.reopen_tab(&tab).await?;
    Ok(web::json(&studio.tab_value(&tab)?))
}

async fn specification(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<SpecificationInput>,
) -> Answer {
    studio.set_specification(&tab, input).await?;
    accepted(&studio.tab_value(&tab)?)
}

async fn generate(State(studio): State<Studio>, Path(tab): Path<String>, Input(_): Input<Value>) -> Answer {
    studio.begin_generating(&tab)?;
    accepted(&studio.tab_value(&tab)?)
}

async fn message(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<MessageInput>,
) -> Answer {
    let message = studio.take_message(&tab, input).await?;
    accepted(&json!({"message": message}))
}

async fn cancel_message(
    State(studio): State<Studio>,
    Path((tab, message)): Path<(String, String)>,
) -> Answer {
    studio.cancel_message(&tab, &message).await?;
    done()
}

async fn versions(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let query = pairs(query);
    let limit = number(&query, "limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(50);
    Ok(web::json(&studio.versions(&tab, number(&query, "before"), limit)?))
}

async fn version(State(studio): State<Studio>, Path((tab, number)): Path<(String, u64)>) -> Answer {
    let mut value = studio.version(&tab, number)?.shown(&studio.model().plugins);
    value["code"] = json!(studio.code(&tab, number).await?);
    Ok(web::json(&value))
}

async fn script(State(studio): State<Studio>, Path((tab, number)): Path<(String, u64)>) -> Answer {
    let (script, hash) = studio.script(&tab, number).await?;
    Ok(web::json(&json!({"script": *script, "hash": hash})))
}

async fn revert(
    State(studio): State<Studio>,
    Path((tab, number)): Path<(String, u64)>,
    Input(_): Input<Value>,
) -> Answer {
    let version = studio.revert(&tab, number, None).await?;
    Ok(web::json(&version.shown(&studio.model().plugins)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutcomeInput {
    is_rendered: bool,
    #[serde(default)]
    message: Option<String>,
}

async fn outcome(
    State(studio): State<Studio>,
    Path((tab, number)): Path<(String, u64)>,
    Input(input): Input<OutcomeInput>,
) -> Answer {
    let message = input.message.unwrap_or_else(|| "no reason was given".to_owned());
    let fault = (!input.is_rendered).then_some(message.as_str());
    let version = studio.take_outcome(&tab, number, fault).await?;
    let version = version.map(|version| version.shown(&studio.model().plugins));
    Ok(web::json(&json!({"version": version})))
}

async fn diff(State(studio): State<Studio>, Path(tab): Path<String>, RawQuery(query): RawQuery) -> Answer {
    let query = pairs(query);
    let (Some(from), Some(to)) = (number(&query, "from"), number(&query, "to")) else {
        return Err(ApiError::invalid("The query needs `from` and `to`."));
    };
    Ok(web::json(&studio.diff(&tab, from, to).await?))
}

#[derive(Deserialize)]
struct FrameLogInput {
    level: Level,
    message: String,
}

async fn frame_log(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<FrameLogInput>,
) -> Answer {
    studio.tab_value(&tab)?;
    studio.log(Some(&tab), EntryKind::Frame, input.level, &input.message, None);
    done()
}

async fn base_url(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<BaseUrlInput>,
) -> Answer {
    studio.confirm_base_url(&tab, input).await?;
    Ok(web::json(&studio.tab_value(&tab)?))
}

async fn network(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(request): Input<NetworkRequest>,
) -> Answer {
    if request.is_in_parts {
        return Ok(web::events(studio.stream_api(&tab, request)?));
    }
    Ok(web::json(&studio.call_api(&tab, &request).await?))
}

async fn connection(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<ConnectionInput>,
) -> Answer {
    Ok(web::json(&studio.set_connection(&tab, input).await?))
}

async fn forget_connection(State(studio): State<Studio>, Path(tab): Path<String>) -> Answer {
    studio.forget_connection(&tab)?;
    done()
}

async fn oauth(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<SignInInput>,
) -> Answer {
    Ok(web::json(&begun(&studio.begin_sign_in(&tab, input).await?)))
}

async fn oauth_callback(State(studio): State<Studio>, RawQuery(query): RawQuery) -> Response {
    let outcome = studio.end_sign_in(&pairs(query)).await;
    let mut response = web::html(closing_page(&outcome));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

#[derive(Deserialize)]
struct TestInput {
    #[serde(default)]
    path: Option<String>,
}

async fn test_connection(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<TestInput>,
) -> Answer {
    Ok(web::json(&studio.test_connection(&tab, input.path).await?))
}

async fn export(
    State(studio): State<Studio>,
    Path(tab): Path<String>,
    Input(input): Input<ExportInput>,
) -> Answer {
    let exported = studio.export(&tab, input).await?;
    let mut response = web::file(Bytes::from(exported.bytes), exported.content_type);
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{}\"", exported.name)) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

async fn console(State(studio): State<Studio>, RawQuery(query): RawQuery) -> Answer {
    let after = number(&pairs(query), "after").unwrap_or(0);
    let model = studio.model();
    Ok(web::json(&json!({"entries": model.console.after(after)})))
}

async fn clear_console(State(studio): State<Studio>) -> Answer {
    studio.model().console.clear();
    studio.publish("consoleCleared", &json!({}));
    done()
}

async fn add_plugin(State(studio): State<Studio>, Input(input): Input<PluginInput>) -> Answer {
    Ok(web::json(&studio.add_plugin(input)?))
}

async fn try_plugin(
    State(studio): State<Studio>,
    Path(name): Path<String>,
    Input(_): Input<Value>,
) -> Answer {
    Ok(web::json(&studio.try_plugin(&name)?))
}

async fn remove_plugin(
    State(studio): State<Studio>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let is_forced = pairs(query).get("force").is_some_and(|force| force == "true");
    studio.remove_plugin(&name, is_forced)?;
    done()
}

#[derive(Deserialize)]
struct ToolCallInput {
    allow: bool,
}

async fn tool_call(
    State(studio): State<Studio>,
    Path(id): Path<String>,
    Input(input): Input<ToolCallInput>,
) -> Answer {
    studio.settle_tool_call(&id, input.allow)?;
    done()
}

async fn restart_cli(State(studio): State<Studio>, Input(_): Input<Value>) -> Answer {
    studio.cli.restart().await;
    done()
}
