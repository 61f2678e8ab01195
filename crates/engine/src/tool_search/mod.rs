//! Many tools of servers in few tokens: beyond a budget the model is offered two tools in their place, one that searches
//! and one that calls a tool that was found.
//!
//! Must not know servers, providers or front-ends. Invariants: the engine, its policy and every client see the call of the
//! real tool, never its carrier; a tool of a server runs only after the model has read its definition as it is now; the
//! two tools stay the same while the configured servers do.

mod carrier;
mod rank;

use std::collections::HashMap;
use std::sync::Arc;

use domain::BoxFuture;
use domain::item::{Item, ItemKind, Part};
use domain::model::{DeferredTools, ModelInfo};
use domain::names::is_same_name;
use domain::taint::Taint;
use domain::tool::{Invocation, Review, Scope, ServerStatus, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::{Origin, ToolCall};
use serde_json::{Value, json};
use session::offered_tools;

use crate::own_text::own_description;
use crate::session::Session;
pub(crate) use carrier::{CARRIER, CarrierTool, as_carried, carried_call};
use rank::rank;

/// The name of the tool that searches, without its server.
const SEARCH: &str = "search_tools";
/// Definitions in one result.
const DEFAULT_FOUND: usize = 5;
const MAX_FOUND: usize = 20;
/// Bytes of the definitions in one result; the best one is there in any case.
const MAX_RESULT: usize = 32 << 10;
/// Tokens of a context window of which the size is not known.
const ASSUMED_CONTEXT: u64 = 128_000;
/// Bytes of JSON in a token, roughly.
const BYTES_PER_TOKEN: u64 = 4;

/// The tools of one step: those that the model is offered, and those that it finds by a search.
pub(crate) struct ToolList {
    offered: Vec<Arc<dyn Tool>>,
    /// Built-in tools that the family of the model is not shown, and that are called all the same by some models.
    unshown: Vec<Arc<dyn Tool>>,
    /// Empty where everything is offered.
    deferred: Arc<[Arc<dyn Tool>]>,
    /// The provider loads found tools, so they are called by their own names and no carrier is needed.
    is_loaded: bool,
}

impl ToolList {
    /// Offers everything where the definitions of servers are within the budget.
    pub(crate) fn new(mut tools: Vec<Arc<dyn Tool>>, session: &Session, model: &ModelInfo) -> Self {
        keep_one_per_name(&mut tools);
        let profile = session.profile.of(&model.id, &session.workspace.settings.model_families);
        let is_shown =
            |tool: &Arc<dyn Tool>| tool.spec().origin != Origin::Native || profile.shows(&tool.spec().name);
        let (tools, unshown): (Vec<_>, Vec<_>) = tools.into_iter().partition(is_shown);
        let settings = &session.workspace.settings.tools;
        let is_loaded = model.loads_tools && settings.search_by_provider;
        // A large window makes definitions possible, not cheap: they are paid in every request.
        let context = model.context_limit.unwrap_or(ASSUMED_CONTEXT);
        let share = context.saturating_mul(settings.search_above_percent) / 100;
        let budget = share.min(settings.search_above_tokens);
        if !is_above(&tools, budget.saturating_mul(BYTES_PER_TOKEN)) {
            return Self { offered: tools, unshown, deferred: Arc::from([]), is_loaded: false };
        }
        let (deferred, mut offered): (Vec<_>, Vec<_>) =
            tools.into_iter().partition(|tool| tool.spec().origin == Origin::Mcp);
        let deferred: Arc<[Arc<dyn Tool>]> = deferred.into();
        offered.push(Arc::new(SearchTool::new(session, deferred.clone(), is_loaded)));
        if !is_loaded {
            offered.push(Arc::new(CarrierTool));
        }
        Self { offered, unshown, deferred, is_loaded }
    }

    pub(crate) fn offered(&self) -> &[Arc<dyn Tool>] {
        &self.offered
    }

    pub(crate) fn is_searched(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Whether tools of servers are called by the carrier.
    pub(crate) fn is_carried(&self) -> bool {
        self.is_searched() && !self.is_loaded
    }

    /// What a provider that loads tools must know: the tools that searches since the last summary gave, as they are now.
    pub(crate) fn deferred(&self, session: &Session) -> Option<DeferredTools> {
        if !self.is_searched() || !self.is_loaded {
            return None;
        }
        let specs: Vec<(String, ToolSpec)> = self
            .deferred
            .iter()
            .map(|tool| (definition(tool.spec(), session), described(tool.spec(), session)))
            .collect();
        let state = session.state();
        let read =
            |(definition, spec): (String, ToolSpec)| has_read(state.items(), &definition).then_some(spec);
        let found = specs.into_iter().filter_map(read).collect();
        Some(DeferredTools { search: format!("eca__{SEARCH}"), found })
    }

    /// Whether this full name is that of the tool that carries calls of others.
    pub(crate) fn is_carrier(&self, offered: &str) -> bool {
        self.is_carried() && offered.strip_prefix("eca__") == Some(CARRIER)
    }

    pub(crate) fn find(&self, server: &str, name: &str) -> Option<&Arc<dyn Tool>> {
        self.all().find(|tool| tool.spec().server == server && tool.spec().name == name)
    }

    /// Whether a call changes no file.
    pub(crate) fn only_reads(&self, item: &Item) -> bool {
        let ItemKind::ToolCall(call) = &item.kind else { return true };
        let tool = self.find(&call.server, &call.name);
        tool.is_none_or(|tool| tool.spec().effect.is_read_only())
    }

    /// The server, bare name and origin of a full name.
    pub(crate) fn resolve(&self, offered: &str) -> (String, String, Origin) {
        let exact = self.all().find(|tool| is_named(tool.spec(), offered));
        if let Some(spec) = exact.or_else(|| self.find_other_spelling(offered)).map(|tool| tool.spec()) {
            return (spec.server.clone(), spec.name.clone(), spec.origin);
        }
        match offered.split_once("__") {
            Some((server, name)) if server != "eca" => (server.into(), name.into(), Origin::Mcp),
            Some((_, name)) => ("eca".into(), name.into(), Origin::Native),
            None => ("eca".into(), offered.into(), Origin::Native),
        }
    }

    /// ECA writes the names of servers in camel case. Where two servers differ in that alone, neither is meant.
    fn find_other_spelling(&self, offered: &str) -> Option<&Arc<dyn Tool>> {
        let is_same = |spec: &ToolSpec| is_same_name(&spec.offered_name(), offered);
        let mut tools = self.all().filter(|tool| is_same(tool.spec()));
        tools.next().filter(|_| tools.next().is_none())
    }

    /// What the model must know that called a tool which is not there.
    pub(crate) fn unknown(&self, call: &ToolCall) -> String {
        let known: Vec<String> = self.offered.iter().map(|tool| tool.spec().offered_name()).collect();
        let name = if call.origin == Origin::Mcp { named(call) } else { call.name.clone() };
        let problem = format!("There is no tool {name}. There are: {}.", known.join(", "));
        if !self.is_searched() {
            return problem;
        }
        format!("{problem} Tools of servers are found by eca__{SEARCH}.")
    }

    /// Why a call of a tool that is not offered cannot be: the model has not read its definition, or the arguments do
    /// not fit it.
    pub(crate) fn refusal(&self, session: &Session, tool: &dyn Tool, input: &Value) -> Option<String> {
        let spec = tool.spec();
        if !self.is_searched() || spec.origin != Origin::Mcp {
            return None;
        }
        let name = spec.offered_name();
        // Before the state is locked: the texts of the user depend on it too.
        let definition = definition(spec, session);
        if !has_read(session.state().items(), &definition) {
            return Some(format!(
                "The definition of {name} is not in this chat. Search for it with eca__{SEARCH} first, then call it."
            ));
        }
        // The server checks a schema that we cannot compile.
        let validator = jsonschema::validator_for(&spec.input_schema).ok()?;
        let problems: Vec<String> = validator.iter_errors(input).take(3).map(|it| it.to_string()).collect();
        let problems = problems.join("; ");
        (!problems.is_empty())
            .then(|| format!("The arguments do not fit the definition of {name}: {problems}. Correct them."))
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.offered.iter().chain(&self.unshown).chain(self.deferred.iter())
    }
}

/// Server `a` with a tool `b__c` and server `a__b` with a tool `c`: the user named the servers, so the longer name of a
/// server wins, and no server takes the name of another one's tool.
fn keep_one_per_name(tools: &mut Vec<Arc<dyn Tool>>) {
    let first = tools.first().cloned();
    if first.is_none_or(|first| tools.iter().all(|tool| tool.spec().server == first.spec().server)) {
        return;
    }
    let mut longest: HashMap<String, usize> = HashMap::new();
    for spec in tools.iter().map(|tool| tool.spec()) {
        let known = longest.entry(spec.offered_name()).or_default();
        *known = (*known).max(spec.server.len());
    }
    tools.retain(|tool| longest.get(&tool.spec().offered_name()) == Some(&tool.spec().server.len()));
}

/// Whether this is the full name of a tool.
fn is_named(spec: &ToolSpec, full_name: &str) -> bool {
    let rest = full_name.strip_prefix(spec.server.as_str()).and_then(|rest| rest.strip_prefix("__"));
    rest == Some(spec.name.as_str())
}

fn named(call: &ToolCall) -> String {
    format!("{}__{}", call.server, call.name)
}

/// Whether the definitions of servers are longer than that many bytes.
fn is_above(tools: &[Arc<dyn Tool>], limit: u64) -> bool {
    let mut length = 0;
    tools.iter().map(|tool| tool.spec()).filter(|spec| spec.origin == Origin::Mcp).any(|spec| {
        let schema = spec.input_schema.to_string();
        length += (spec.server.len() + spec.name.len() + spec.description.len() + schema.len()) as u64;
        length > limit
    })
}

/// A definition as a search gives it: one line, whatever the texts in it are.
fn definition(spec: &ToolSpec, session: &Session) -> String {
    let spec = described(spec, session);
    let (name, description) = (spec.offered_name(), &spec.description);
    json!({"name": name, "description": description, "input_schema": spec.input_schema}).to_string()
}

/// Whether a search since the last summary gave this definition.
fn has_read(items: &[Item], definition: &str) -> bool {
    let is_result = |call: &ToolCall| call.name == SEARCH && call.origin == Origin::Native && !call.error;
    let gives = |part: &Part| match part {
        Part::Text { text } => text.lines().any(|line| line == definition),
        Part::Image { .. } => false,
    };
    let since = items.iter().rev().take_while(|item| !matches!(item.kind, ItemKind::Compaction { .. }));
    since.into_iter().any(|item| match &item.kind {
        ItemKind::ToolCall(call) => is_result(call) && call.result.iter().any(gives),
        ItemKind::UserMessage { .. }
        | ItemKind::AgentMessage { .. }
        | ItemKind::Reasoning { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Compaction { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => false,
    })
}

/// The tool `search_tools`.
struct SearchTool {
    spec: ToolSpec,
    tools: Arc<[Arc<dyn Tool>]>,
    /// The definitions, in the order of `tools`.
    definitions: Vec<String>,
    /// How a found tool is called, for the model.
    help: String,
}

impl SearchTool {
    fn new(session: &Session, tools: Arc<[Arc<dyn Tool>]>, is_loaded: bool) -> Self {
        let definitions = tools.iter().map(|tool| definition(tool.spec(), session)).collect();
        let help = match is_loaded {
            true => "They can be called from then on".to_owned(),
            false => format!("eca__{CARRIER} calls them"),
        };
        Self { spec: search_spec(&server_names(session), &help), tools, definitions, help }
    }

    fn run_now(&self, input: &Value) -> Result<ToolResult, String> {
        let query = input["query"].as_str().map(str::trim).filter(|query| !query.is_empty());
        let query = query.ok_or("Give a query: words of the task, or the full name of a tool.")?;
        let limit = input["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(DEFAULT_FOUND).clamp(1, MAX_FOUND);
        let specs: Vec<&ToolSpec> = self.tools.iter().map(|tool| tool.spec()).collect();
        let found = rank(&specs, query);
        if found.is_empty() {
            return Ok(ToolResult::text(format!("No tool fits {query}. {}", self.overview())));
        }
        let (mut lines, mut taint) = (Vec::new(), Taint::default());
        let mut length = 0;
        for at in found.iter().copied().take(limit) {
            length += self.definitions[at].len();
            if length > MAX_RESULT && !lines.is_empty() {
                break;
            }
            taint.add_source(format!("tool descriptions of the MCP server {}", specs[at].server));
            lines.push(self.definitions[at].clone());
        }
        let (shown, all) = (lines.len(), found.len());
        lines.push(format!("[{shown} of {all} tools that fit. {}.]", self.help));
        Ok(ToolResult { taint, ..ToolResult::text(lines.join("\n")) })
    }

    /// The servers with the number of their tools.
    fn overview(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for tool in self.tools.iter() {
            let server = tool.spec().server.as_str();
            match counts.iter_mut().find(|(known, _)| *known == server) {
                Some((_, count)) => *count += 1,
                None => counts.push((server, 1)),
            }
        }
        let counts: Vec<String> =
            counts.iter().map(|(server, count)| format!("{server} ({count})")).collect();
        format!("Servers with the number of their tools: {}.", counts.join(", "))
    }
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let query: String = input["query"].as_str().unwrap_or_default().chars().take(60).collect();
        Ok(Review { summary: format!("Searching tools: {query}"), harmless: true, ..Review::default() })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move { self.run_now(&call.input).unwrap_or_else(ToolResult::error) })
    }
}

/// The servers of the configuration, also those that have not answered yet: a late one changes no definition.
fn server_names(session: &Session) -> Vec<String> {
    let servers = session.sources().flat_map(|source| source.servers());
    let is_on = |status| !matches!(status, ServerStatus::Disabled | ServerStatus::Stopped);
    let mut names: Vec<String> = servers
        .filter(|server| server.origin == Origin::Mcp && is_on(server.status))
        .map(|server| server.name)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn search_spec(servers: &[String], help: &str) -> ToolSpec {
    let description = format!(
        "Finds tools of these servers: {}. Gives the definitions of the tools that fit best. {help}. \
         Search before you say that something cannot be done.",
        servers.join(", ")
    );
    let input_schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words of the task, or the full name of a tool."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND,
                "description": format!("How many definitions, {DEFAULT_FOUND} by default.")},
        },
        "required": ["query"],
    });
    own_spec(SEARCH, description, input_schema, ToolEffect::Reads)
}

fn own_spec(name: &str, description: String, input_schema: Value, effect: ToolEffect) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        description,
        input_schema,
        effect,
    }
}

/// The tool with the description that the user wrote for it.
fn described(spec: &ToolSpec, session: &Session) -> ToolSpec {
    offered_tools::described(spec, own_description(spec, session.prompts()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NamedTool(ToolSpec);

    impl Tool for NamedTool {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn review(&self, _: &Value, _: &Scope) -> Result<Review, String> {
            Ok(Review::default())
        }

        fn run<'a>(&'a self, _: Invocation) -> BoxFuture<'a, ToolResult> {
            Box::pin(async { ToolResult::text("ok") })
        }
    }

    fn tool(server: &str, name: &str, effect: ToolEffect) -> Arc<dyn Tool> {
        let origin = if server == "eca" { Origin::Native } else { Origin::Mcp };
        let (description, input_schema) = ("x".repeat(100), json!({"type": "object"}));
        Arc::new(NamedTool(ToolSpec {
            name: name.into(),
            server: server.into(),
            origin,
            description,
            input_schema,
            effect,
        }))
    }

    fn list(tools: &[(&str, &str)]) -> ToolList {
        let offered = tools.iter().map(|(server, name)| tool(server, name, ToolEffect::Other)).collect();
        ToolList { offered, unshown: Vec::new(), deferred: Arc::from([]), is_loaded: false }
    }

    #[test]
    fn a_name_is_found_in_both_spellings_where_one_server_is_meant() {
        let one = list(&[("eca", "read_file"), ("test-mcp", "echo"), ("myServer", "get_it")]);
        for (offered, server, name) in [
            ("test-mcp__echo", "test-mcp", "echo"),
            ("testMcp__echo", "test-mcp", "echo"),
            ("my-server__get_it", "myServer", "get_it"),
            ("eca__read_file", "eca", "read_file"),
            // Neither another tool nor another server.
            ("testMcp__other", "testMcp", "other"),
            ("testmcp__echo", "testmcp", "echo"),
            ("read_file", "eca", "read_file"),
        ] {
            let (found_server, found_name, _) = one.resolve(offered);
            assert_eq!((found_server.as_str(), found_name.as_str()), (server, name), "{offered}");
        }
        // Two servers that differ in the spelling alone: only the exact name is one of them.
        let two = list(&[("test-mcp", "echo"), ("testMcp", "echo")]);
        for server in ["test-mcp", "testMcp"] {
            assert_eq!(two.resolve(&format!("{server}__echo")).0, server);
        }
        assert_eq!(two.resolve("test-Mcp__echo").0, "test-Mcp", "it could be either");
    }

    #[test]
    fn the_longer_name_of_a_server_wins() {
        let mut tools = vec![
            tool("a", "b__c", ToolEffect::Other),
            tool("a__b", "c", ToolEffect::Other),
            tool("a", "d", ToolEffect::Other),
        ];
        keep_one_per_name(&mut tools);
        let names: Vec<(&str, &str)> =
            tools.iter().map(|tool| (tool.spec().server.as_str(), tool.spec().name.as_str())).collect();
        assert_eq!(names, [("a__b", "c"), ("a", "d")]);
    }

    #[test]
    fn only_definitions_of_servers_count_against_the_budget() {
        let own: Vec<_> = (0..50).map(|at| tool("eca", &format!("t{at}"), ToolEffect::Reads)).collect();
        assert!(!is_above(&own, 1_000));
        let of_server: Vec<_> = (0..50).map(|at| tool("s", &format!("t{at}"), ToolEffect::Other)).collect();
        assert!(is_above(&of_server, 1_000) && !is_above(&of_server, 100_000));
    }
}
