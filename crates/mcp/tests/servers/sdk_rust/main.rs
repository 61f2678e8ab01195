//! A server made with the official Rust SDK, with what `sdk_python.py` has. `sdk-rust` speaks over stdin and stdout,
//! `sdk-rust PORT` over HTTP.

use std::error::Error;
use std::sync::Arc;

use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ListResourceTemplatesResult, PaginatedRequestParams,
    ProgressNotificationParam, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    RequestMetaObject, ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Json, Peer, RoleServer, ServerHandler, ServiceExt, prompt, prompt_handler, prompt_router, tool,
    tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Person {
    who: String,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

#[tool_router]
impl Server {
    fn new() -> Self {
        Self { tool_router: Self::tool_router(), prompt_router: Self::prompt_router() }
    }

    #[tool(description = "Adds two numbers.")]
    async fn add(&self, numbers: Parameters<Numbers>) -> Result<Json<Sum>, String> {
        Ok(Json(Sum { sum: numbers.0.a + numbers.0.b }))
    }

    #[tool(description = "Shows progress.")]
    async fn work(&self, meta: RequestMetaObject, client: Peer<RoleServer>) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0).with_message("half");
            let _ = client.notify_progress(progress).await;
        }
        Ok("done".to_owned())
    }
}

#[prompt_router]
impl Server {
    #[prompt(name = "greet", description = "Greets.")]
    async fn greet(&self, person: Parameters<Person>) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(Role::User, format!("Say hello to {}.", person.0.who))]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let abilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        ServerConfig::new(abilities.enable_completions().build())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let note = ResourceTemplate::new("note://{number}", "note");
        Ok(ListResourceTemplatesResult::with_all_items(vec![note]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let number = request.uri.trim_start_matches("note://");
        let text = ResourceContents::text(format!("the text of note {number}"), request.uri.clone());
        Ok(ReadResourceResult::new(vec![text]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let fitting = ["40", "41", "50"].into_iter().filter(|it| it.starts_with(&request.argument.value));
        let values = CompletionInfo::with_all_values(fitting.map(str::to_owned).collect());
        Ok(CompleteResult::new(values.map_err(|why| ErrorData::internal_error(why, None))?))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(port) = std::env::args().nth(1) else {
        Server::new().serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(|| Ok(Server::new()), sessions, StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
