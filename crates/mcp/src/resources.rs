//! Resources of servers for the model and for people who type: the tool that lists and reads them, what was read a moment
//! ago, and completion of arguments.
//!
//! Invariants: the tool is one of its server, so rules, questions and taint treat it like the others; a kept resource is used
//! only as long as its server said, and never after that server said that it changed; a wait for completions is short.

use std::sync::Arc;
use std::time::Duration;

use domain::tool::{Invocation, Resource, Review, Scope, Tool, ToolResult, ToolSpec};
use domain::{BoxFuture, Failure, Part};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Client;
use crate::content;
use crate::definitions::PromptDefinition;
use crate::read_cache::ResourceTemplate;
use crate::resource_tool_spec::{READ_TOOL, tool_spec};
use crate::server_state::ServerState;
use crate::text::single_line;
use crate::uri_template::TypedUri;
use crate::wire::{Completed, ReadResult};

/// Entries of one listing.
const MAX_LISTED: usize = 200;
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_COMPLETIONS: usize = 20;
const MAX_VALUE_LENGTH: usize = 400;

impl ServerState {
    pub(crate) async fn read_resource(&self, uri: &str) -> Result<Vec<Part>, Failure> {
        let client = self.client()?;
        if let Some(parts) = client.read_cache().get(uri) {
            return Ok(parts);
        }
        let reply =
            client.request_rounds("resources/read", &json!({"uri": uri}), self.options.call_timeout).await;
        let (result, rounds): (ReadResult, usize) = reply.map_err(|reason| self.failure(&reason))?;
        let fresh_for = result.ttl_ms.map(Duration::from_millis);
        let parts = content::from_resource(result);
        // An answer that depends on a person's input is not the resource's.
        if let Some(fresh_for) = fresh_for.filter(|_| rounds == 0) {
            client.read_cache().keep(uri, &parts, fresh_for);
        }
        Ok(parts)
    }

    /// The resources that a typed text leads to by the templates of this server.
    pub(crate) async fn templated_resources(&self, typed: &str) -> Vec<Resource> {
        let (offer, Ok(client)) = (self.offer(), self.client()) else { return Vec::new() };
        let read = |known: &ResourceTemplate| {
            let shown = known.resource.name.to_lowercase();
            let template = known.template.as_ref()?;
            let by_name = || {
                template.read_nothing().filter(|_| typed.len() > 1 && shown.contains(&typed.to_lowercase()))
            };
            Some((known.resource.clone(), template.read(typed).or_else(by_name)?))
        };
        let client = &client;
        let completing = offer.templates.iter().filter_map(read).map(|(resource, read)| async move {
            let completed = complete_address(client, &resource.uri, &read).await;
            (resource, read.is_whole, completed)
        });
        let mut found: Vec<Resource> = Vec::new();
        for (resource, is_whole, completed) in join_all(completing).await {
            for uri in is_whole.then(|| typed.to_owned()).into_iter().chain(completed) {
                if found.iter().all(|known| known.uri != uri) {
                    found.push(Resource { name: uri.clone(), uri, ..resource.clone() });
                }
            }
        }
        found.truncate(MAX_COMPLETIONS);
        found
    }

    /// Values for the last of these arguments.
    pub(crate) async fn complete_prompt(
        &self,
        prompt: &PromptDefinition,
        arguments: &[String],
    ) -> Vec<String> {
        let Some((value, before)) = arguments.split_last() else { return Vec::new() };
        let names: Vec<&str> = prompt.prompt.arguments.iter().map(|it| it.name.as_str()).collect();
        let (Some(name), Ok(client)) = (names.get(before.len()), self.client()) else { return Vec::new() };
        let earlier: Vec<(String, String)> =
            names.iter().map(|name| (*name).to_owned()).zip(before.iter().cloned()).collect();
        let reference = json!({"type": "ref/prompt", "name": prompt.wire_name});
        complete(&client, &reference, (name, value), &earlier).await
    }
}

async fn complete_address(client: &Client, template: &str, read: &TypedUri) -> Vec<String> {
    let Some(open) = &read.open else { return Vec::new() };
    let reference = json!({"type": "ref/resource", "uri": template});
    let values = complete(client, &reference, (&open.name, &open.value), &read.earlier).await;
    values.iter().filter_map(|value| open.fill(value)).collect()
}

async fn complete(
    client: &Client,
    reference: &Value,
    (name, value): (&str, &str),
    earlier: &[(String, String)],
) -> Vec<String> {
    if client.capabilities().completions.is_none() {
        return Vec::new();
    }
    let arguments: serde_json::Map<String, Value> =
        earlier.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let mut params = json!({"ref": reference, "argument": {"name": name, "value": value}});
    if !arguments.is_empty() {
        params["context"] = json!({"arguments": arguments});
    }
    match client.request::<Completed>("completion/complete", &params, COMPLETION_TIMEOUT).await {
        Ok(completed) => {
            let values = completed.completion.values.into_iter();
            let is_clean =
                |value: &String| single_line(value, MAX_VALUE_LENGTH) == *value && !value.is_empty();
            values.filter(is_clean).take(MAX_COMPLETIONS).collect()
        }
        Err(problem) => {
            tracing::debug!(problem, "an argument could not be completed");
            Vec::new()
        }
    }
}

/// The tool that lists and reads the resources of one server.
pub(crate) struct ResourceTool {
    state: Arc<ServerState>,
    spec: ToolSpec,
}

impl ResourceTool {
    pub(crate) fn new(state: Arc<ServerState>) -> Self {
        let spec = tool_spec(&state.config.name);
        Self { state, spec }
    }

    async fn answer(&self, invocation: Invocation) -> Result<ToolResult, Failure> {
        self.state.ready_client(&invocation.cancel).await?;
        let query = invocation.input["query"].as_str().unwrap_or_default();
        let Some(uri) = wanted_uri(&invocation.input) else {
            return Ok(ToolResult::text(self.list(query)));
        };
        let parts = tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => return Err(Failure::user("The call was stopped.")),
            parts = self.state.read_resource(uri) => parts?,
        };
        let parts = if parts.is_empty() { vec![Part::text("The resource is empty.")] } else { parts };
        Ok(ToolResult { parts, ..ToolResult::default() })
    }

    fn list(&self, query: &str) -> String {
        let (offer, query) = (self.state.offer(), query.to_lowercase());
        let templates = offer.templates.iter().map(|known| ("template", &known.resource));
        let all = offer.resources.iter().map(|resource| ("resource", resource)).chain(templates);
        let fits = |resource: &Resource| {
            [&resource.name, &resource.uri, &resource.description]
                .into_iter()
                .any(|text| text.to_lowercase().contains(&query))
        };
        let line = |(kind, resource): (&str, &Resource)| {
            json!({"kind": kind, "uri": resource.uri, "name": resource.name, "description": resource.description, "mimeType": resource.mime})
                .to_string()
        };
        let found: Vec<_> = all.filter(|(_, resource)| fits(resource)).collect();
        let count = found.len();
        let mut lines: Vec<String> = found.into_iter().take(MAX_LISTED).map(line).collect();
        lines.push(match count {
            0 => "[Nothing fits.]".to_owned(),
            _ => format!(
                "[{} of {count} entries. Give the `uri` of one to read it; fill in the variables of a template first.]",
                lines.len()
            ),
        });
        lines.join("\n")
    }
}

fn wanted_uri(input: &Value) -> Option<&str> {
    input["uri"].as_str().map(str::trim).filter(|uri| !uri.is_empty())
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        if !input.is_object() {
            return Err(format!("The arguments of {READ_TOOL} must be a JSON object."));
        }
        let server = &self.spec.server;
        // A list is there already; only reading reaches the server.
        Ok(match wanted_uri(input) {
            Some(uri) => Review {
                summary: format!("Reading {} of the MCP server {server}", single_line(uri, 200)),
                ..Review::default()
            },
            None => Review {
                summary: format!("Listing the resources of the MCP server {server}"),
                harmless: true,
                ..Review::default()
            },
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.answer(call).await.unwrap_or_else(|failure| ToolResult::error(failure.to_string()))
        })
    }
}
