//! Reads the lists of a server page by page, bounds and cleans them, and converts them into domain types.
//!
//! Invariant: the number and size of kept items are bounded, names fit every model API, and each omission has a note.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use domain::command::SlashArgument;
use domain::tool::{Resource, ServerPrompt, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::definitions::{PromptDefinition, ToolDefinition};
use crate::digest::DefinitionHash;
use crate::era::Era;
use crate::handler::Lists;
use crate::http::param_headers;
use crate::read_cache::ResourceTemplate;
use crate::text::{plain_name, sanitize, single_line};
use crate::uri_template::UriTemplate;
use crate::wire::{Page, PromptItem, ResourceItem, TemplateItem, ToolItem};

/// Far beyond what servers have: many tools cost no tokens, because they are searched.
const MAX_TOOLS: usize = 10_000;
/// Bytes of all definitions of a server.
const MAX_LIST_BYTES: usize = 16 << 20;
const MAX_PROMPTS: usize = 256;
const MAX_RESOURCES: usize = 1_000;
const MAX_TEMPLATES: usize = 100;
const MAX_ARGUMENTS: usize = 32;
const MAX_PAGES: usize = 100;
const MAX_DESCRIPTION_LENGTH: usize = 4 << 10;
const MAX_LINE_LENGTH: usize = 400;
const MAX_URI_LENGTH: usize = 2 << 10;
const MAX_SCHEMA_BYTES: usize = 32 << 10;

/// Tools that could be read, and why others were left out.
#[derive(Default)]
pub(crate) struct ToolList {
    pub definitions: Vec<ToolDefinition>,
    pub notes: Vec<String>,
}

pub(crate) async fn list_tools(
    client: &Client,
    server: &str,
    deadline: Duration,
) -> Result<ToolList, String> {
    if client.capabilities().tools.is_none() {
        return Ok(ToolList::default());
    }
    let is_stateless_http = client.is_http() && client.era() == Era::Stateless;
    Ok(read_tools(
        server,
        is_stateless_http,
        &list(client, ("tools/list", Lists::TOOLS), MAX_TOOLS, deadline).await?,
    ))
}

pub(crate) async fn list_prompts(
    client: &Client,
    server: &str,
    deadline: Duration,
) -> Vec<Arc<PromptDefinition>> {
    if client.capabilities().prompts.is_none() {
        return Vec::new();
    }
    match list(client, ("prompts/list", Lists::PROMPTS), MAX_PROMPTS, deadline).await {
        Ok(items) => read_prompts(server, &items),
        Err(problem) => {
            tracing::warn!(server, problem, "the server's prompts could not be listed");
            Vec::new()
        }
    }
}

pub(crate) async fn list_resources(client: &Client, server: &str, deadline: Duration) -> Vec<Resource> {
    if client.capabilities().resources.is_none() {
        return Vec::new();
    }
    match list(client, ("resources/list", Lists::RESOURCES), MAX_RESOURCES, deadline).await {
        Ok(items) => read_resources(server, &items),
        Err(problem) => {
            tracing::warn!(server, problem, "the server's resources could not be listed");
            Vec::new()
        }
    }
}

pub(crate) async fn list_templates(
    client: &Client,
    server: &str,
    deadline: Duration,
) -> Vec<ResourceTemplate> {
    if client.capabilities().resources.is_none() {
        return Vec::new();
    }
    match list(client, ("resources/templates/list", Lists::RESOURCES), MAX_TEMPLATES, deadline).await {
        Ok(items) => read_templates(server, &items),
        // Servers without templates often do not know the method.
        Err(problem) => {
            tracing::debug!(server, problem, "the server's templates could not be listed");
            Vec::new()
        }
    }
}

/// All pages, until there are one more than `most` items; within `deadline` altogether. Remembers how long they are fresh.
async fn list(
    client: &Client,
    (method, kind): (&str, Lists),
    most: usize,
    deadline: Duration,
) -> Result<Vec<Box<RawValue>>, String> {
    let pages = async {
        let mut items: Vec<Box<RawValue>> = Vec::new();
        let mut bytes = 0;
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page: Page = client.request(method, &params, deadline).await?;
            // A list that is old at once says nothing: changes are told.
            if let Some(ttl) = page.ttl_ms.filter(|ttl| *ttl > 0 && client.era() == Era::Stateless) {
                client.changed().expire_after(kind, Duration::from_millis(ttl));
            }
            let read = items.len();
            items.extend(page.items.into_iter().take(most + 1 - read));
            bytes += items[read..].iter().map(|item| item.get().len()).sum::<usize>();
            match page.next_cursor {
                Some(cursor)
                    if items.len() <= most
                        && bytes <= MAX_LIST_BYTES
                        && params["cursor"] != json!(cursor) =>
                {
                    params = json!({"cursor": cursor});
                }
                _ => break,
            }
        }
        Ok(items)
    };
    let late = |_| Err(format!("It did not answer {method} within {} s.", deadline.as_secs()));
    tokio::time::timeout(deadline, pages).await.unwrap_or_else(late)
}

fn read<'a, T: Deserialize<'a>>(item: &'a RawValue) -> Option<T> {
    serde_json::from_str(item.get()).ok()
}

pub(crate) fn read_tools(server: &str, has_headers: bool, items: &[Box<RawValue>]) -> ToolList {
    let mut list = ToolList::default();
    let mut names = HashSet::new();
    let mut bytes = 0;
    for item in items.iter().take(MAX_TOOLS) {
        bytes += item.get().len();
        if bytes > MAX_LIST_BYTES {
            let limit = MAX_LIST_BYTES >> 20;
            list.notes.push(format!(
                "Its tools have more than {limit} MiB of definitions; the others are left out."
            ));
            break;
        }
        match read_tool(server, has_headers, item) {
            Ok(definition) if names.insert(definition.spec.name.clone()) => list.definitions.push(definition),
            Ok(definition) => {
                list.notes.push(format!(
                    "Two of its tools are called {}; the second is left out.",
                    definition.spec.name
                ));
            }
            Err(note) => list.notes.push(note),
        }
    }
    if items.len() > MAX_TOOLS {
        list.notes.push(format!("It has more than {MAX_TOOLS} tools; the others are left out."));
    }
    list
}

fn read_tool(server: &str, has_headers: bool, item: &RawValue) -> Result<ToolDefinition, String> {
    let unreadable = || "One of its tools has no readable definition and is left out.".to_owned();
    let tool: ToolItem = read(item).ok_or_else(unreadable)?;
    let name = plain_name(&tool.name).ok_or_else(unreadable)?;
    let runs_as_task =
        tool.execution.is_some_and(|execution| execution.task_support.as_deref() == Some("required"));
    let schema = tool.input_schema.as_deref().map_or("{}", RawValue::get);
    if schema.len() > MAX_SCHEMA_BYTES {
        let limit = MAX_SCHEMA_BYTES >> 10;
        return Err(format!(
            "The schema of its tool {name} is larger than {limit} KiB; the tool is left out."
        ));
    }
    let input_schema = object_schema(serde_json::from_str(schema).unwrap_or_default());
    let param_headers =
        if has_headers { param_headers(&input_schema) } else { Ok(Vec::new()) }.map_err(|problem| {
            format!("The schema of its tool {name} is wrong ({problem}); the tool is left out.")
        })?;
    let description = tool.description.unwrap_or_default();
    let read_only_hint = tool.annotations.and_then(|hints| hints.read_only_hint).unwrap_or(false);
    let digest = DefinitionHash::new()
        .text(&tool.name)
        .text(&description)
        .text(if read_only_hint { "read-only" } else { "" })
        .text(if runs_as_task { "task" } else { "" })
        .value(&input_schema)
        .done();
    let mut source = json!({
        "name": tool.name, "description": description, "inputSchema": input_schema,
        "annotations": {"readOnlyHint": read_only_hint},
    });
    if runs_as_task {
        source["execution"] = json!({"taskSupport": "required"});
    }
    let spec = ToolSpec {
        name,
        server: server.to_owned(),
        origin: Origin::Mcp,
        description: sanitize(&description, MAX_DESCRIPTION_LENGTH),
        input_schema,
        effect: ToolEffect::Other,
    };
    let source = source.to_string();
    let wire_name = tool.name;
    Ok(ToolDefinition { wire_name, spec, read_only_hint, digest, runs_as_task, param_headers, source })
}

/// A schema that model APIs take: an object that says so.
fn object_schema(schema: Value) -> Value {
    let mut members = match schema {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    members.insert("type".to_owned(), "object".into());
    if !members.get("properties").is_some_and(Value::is_object) {
        members.insert("properties".to_owned(), json!({}));
    }
    Value::Object(members)
}

fn read_prompts(server: &str, items: &[Box<RawValue>]) -> Vec<Arc<PromptDefinition>> {
    let mut names = HashSet::new();
    let mut entry = |item: &RawValue| {
        let prompt: PromptItem = read(item)?;
        let name = plain_name(&prompt.name).filter(|name| names.insert(name.clone()))?;
        let arguments = prompt.arguments.iter().take(MAX_ARGUMENTS).map(|argument| SlashArgument {
            name: argument.name.clone(),
            description: argument.description.as_deref().map(|text| single_line(text, MAX_LINE_LENGTH)),
            required: argument.required,
        });
        let shown = ServerPrompt {
            name: format!("{server}:{name}"),
            description: single_line(prompt.description.as_deref().unwrap_or_default(), MAX_LINE_LENGTH),
            arguments: arguments.collect(),
        };
        Some(Arc::new(PromptDefinition { wire_name: prompt.name, prompt: shown }))
    };
    items.iter().take(MAX_PROMPTS).filter_map(|item| entry(item)).collect()
}

fn read_resources(server: &str, items: &[Box<RawValue>]) -> Vec<Resource> {
    let resource = |item: &RawValue| {
        let resource: ResourceItem = read(item)?;
        let fits = !resource.uri.is_empty() && resource.uri.len() <= MAX_URI_LENGTH;
        fits.then(|| Resource {
            server: server.to_owned(),
            name: single_line(
                if resource.name.is_empty() { &resource.uri } else { &resource.name },
                MAX_LINE_LENGTH,
            ),
            description: single_line(resource.description.as_deref().unwrap_or_default(), MAX_LINE_LENGTH),
            mime: single_line(resource.mime_type.as_deref().unwrap_or_default(), MAX_LINE_LENGTH),
            uri: resource.uri,
        })
    };
    items.iter().take(MAX_RESOURCES).filter_map(|item| resource(item)).collect()
}

fn read_templates(server: &str, items: &[Box<RawValue>]) -> Vec<ResourceTemplate> {
    let template = |item: &RawValue| {
        let TemplateItem { uri_template, name, description, mime_type } = read(item)?;
        let fits = !uri_template.is_empty() && uri_template.len() <= MAX_URI_LENGTH;
        fits.then(|| ResourceTemplate {
            template: UriTemplate::parse(&uri_template).map(Arc::new),
            resource: Resource {
                server: server.to_owned(),
                name: single_line(if name.is_empty() { &uri_template } else { &name }, MAX_LINE_LENGTH),
                description: single_line(description.as_deref().unwrap_or_default(), MAX_LINE_LENGTH),
                mime: single_line(mime_type.as_deref().unwrap_or_default(), MAX_LINE_LENGTH),
                uri: uri_template,
            },
        })
    };
    items.iter().take(MAX_TEMPLATES).filter_map(|item| template(item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    #[test]
    fn what_a_server_lists_is_bounded_and_cleaned() {
        let huge = "x".repeat(100_000);
        let list = read_tools(
            "s",
            false,
            &[
                raw(json!({"name": "a.b", "description": format!("\u{1b}[2J{huge}"), "inputSchema": 7})),
                raw(json!({"name": "a_b", "inputSchema": {"type": "object"}})),
                raw(json!({"name": "wide", "inputSchema": {"description": huge}})),
                raw(json!({"name": "task", "execution": {"taskSupport": "required"}})),
                raw(json!({"title": "nameless"})),
                raw(json!("text")),
            ],
        );
        let [tool, task] = list.definitions.as_slice() else { panic!("two tools are left") };
        assert!(task.runs_as_task && !tool.runs_as_task);
        assert_eq!((tool.wire_name.as_str(), tool.spec.offered_name().as_str()), ("a.b", "s__a_b"));
        assert!(tool.spec.description.len() < 5_000 && tool.spec.description.starts_with("xxx"));
        assert_eq!(tool.spec.input_schema, json!({"type": "object", "properties": {}}));
        assert_eq!(list.notes.len(), 4, "{:?}", list.notes);
        let many = |count: usize| -> Vec<_> {
            (0..count).map(|number| raw(json!({"name": format!("t{number}")}))).collect()
        };
        let list = read_tools("s", false, &many(1_000));
        assert_eq!((list.definitions.len(), list.notes.len()), (1_000, 0), "a large server is not cut");
        let list = read_tools("s", false, &many(MAX_TOOLS + 1));
        assert_eq!((list.definitions.len(), list.notes.len()), (MAX_TOOLS, 1));
        let wide = "x".repeat(30 << 10);
        let wide = |number| raw(json!({"name": format!("t{number}"), "inputSchema": {"title": wide}}));
        let list = read_tools("s", false, &(0..600).map(wide).collect::<Vec<_>>());
        assert!((500..560).contains(&list.definitions.len()), "{}", list.definitions.len());
        assert!(list.notes.len() == 1 && list.notes[0].contains("16 MiB"), "{:?}", list.notes);
    }

    #[test]
    fn a_hint_changes_the_pin_but_never_makes_a_tool_read_only() {
        let read = |hint: bool| {
            let item = raw(json!({"name": "t", "annotations": {"readOnlyHint": hint}}));
            read_tool("s", false, &item).unwrap()
        };
        assert_ne!(read(true).digest, read(false).digest);
        assert_eq!(read(true).spec.effect, ToolEffect::Other);
    }
}
