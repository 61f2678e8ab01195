//! Stage 3: the plan of an interface, a small typed description that is all the printed module needs.
//!
//! Owns the order in which a plan is made from a `Spec`; its types are in `model`. Knows nothing of JSX.
//! Invariants: every operation of the specification is in `operations` and in one resource; no key of the
//! plan's JSON comes from the specification (its names are values), so that the literal is inert data; every
//! index is in range (`validate` proves it for plans from outside).

mod agreeing;
mod answers;
pub mod columns;
mod connection;
mod document;
mod editing;
mod forms;
mod graph;
mod grouping;
mod guarding;
mod inputs;
mod keys;
mod lists;
mod merging;
mod model;
mod models;
mod operations;
mod paging;
mod parts;
mod paths;
mod references;
mod relations;
mod resources;
mod roles;
mod rpc;
mod selecting;
mod servers;
mod showing;
pub mod slots;
mod validate;
pub mod words;

pub use forms::{Alternative, BodyForm, BodyKind, Input, InputKind, InputPlace, Shape};
pub use model::{
    AnswerNote, Column, Display, FixedHeader, Flow, Incoming, Key, Layout, List, Operation, Paging,
    PagingStyle, Plan, Relation, Resource, Scheme, SchemeKind, ServerChoice, TemplateVariable, Theme,
};
pub use servers::is_address;
pub use showing::{
    Action, Calculation, ColorRule, Computed, Condition, Constant, FormatKind, PastChange, PastPart,
    SavedView, Sort, Test, Tint, ValueFormat,
};
pub use slots::SlotCode;
pub use validate::Invalid;

use crate::spec::{Format, Spec};
use serde_json::Value;

/// The version of the plan's JSON form.
pub const VERSION: u32 = 1;

/// What the caller may choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub theme: Theme,
    pub layout: Layout,
    pub include_auth: bool,
    pub pagination: bool,
    /// The address of the API, before those of the specification.
    pub server: Option<String>,
    /// The title in place of the specification's.
    pub title: Option<String>,
    /// Sent with every request.
    pub headers: Vec<FixedHeader>,
    /// Options that were given and are not known; they become assumptions.
    pub unknown: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            layout: Layout::default(),
            include_auth: true,
            pagination: true,
            server: None,
            title: None,
            headers: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl Options {
    /// From the words of a host: `theme`, and `options` with `layout`, `includeAuth` and `pagination`.
    pub fn from_host(theme: Option<&str>, options: Option<&Value>) -> Self {
        let mut chosen = Self::default();
        match theme.map(str::to_ascii_lowercase).as_deref() {
            None | Some("light") => {}
            Some("dark") => chosen.theme = Theme::Dark,
            Some("auto" | "system") => chosen.theme = Theme::Auto,
            Some(other) => chosen.unknown.push(format!("theme “{}”", crate::problem::excerpt(other))),
        }
        let option = |key: &str| options.and_then(|options| options.get(key));
        match option("layout").and_then(Value::as_str).map(str::to_ascii_lowercase).as_deref() {
            None | Some("default" | "table" | "tables" | "list") => {}
            Some("cards" | "card" | "grid") => chosen.layout = Layout::Cards,
            Some("compact" | "dense") => chosen.layout = Layout::Compact,
            Some(other) => chosen.unknown.push(format!("layout “{}”", crate::problem::excerpt(other))),
        }
        chosen.include_auth = option("includeAuth").and_then(Value::as_bool).unwrap_or(true);
        chosen.pagination = option("pagination").and_then(Value::as_bool).unwrap_or(true);
        chosen
    }
}

/// Plans the interface of a specification.
pub fn plan(spec: &Spec, options: &Options) -> Plan {
    let models = models::Models::of(spec);
    let mut plan = Plan {
        version: VERSION,
        title: words::line(options.title.as_deref().unwrap_or(&spec.metadata.title), 120),
        description: words::markdown(spec.metadata.description.as_deref(), 1_500),
        api_version: words::line(&spec.metadata.version, 40),
        graphql: spec.format == Format::Graphql && spec.endpoints.is_empty(),
        theme: options.theme,
        layout: options.layout,
        auth: options.include_auth,
        pagination: options.pagination,
        headers: options.headers.clone(),
        schemes: operations::schemes(spec),
        webhooks: operations::incoming(&spec.webhooks, &models),
        assumptions: spec.assumptions.clone(),
        ..Plan::default()
    };
    for unknown in &options.unknown {
        plan.assumptions.push(format!("There is no {unknown}; the default was used."));
    }
    let mut servers = servers::Servers::of(spec, &mut plan.assumptions);
    let mut inputs = inputs::Inputs::new(&models);
    plan.operations = operations::operations(spec, &models, &mut inputs, &mut servers);
    plan.servers = servers.finish(options.server.as_deref(), &mut plan.operations);
    plan.resources = resources::resources(spec, &models, &mut plan.operations, &mut plan.assumptions);
    resources::title_operations(&plan.resources, &mut plan.operations);
    editing::mark_read_only(spec, &models, &plan.resources, &mut plan.operations);
    relations::relate(&mut plan.resources, &plan.operations, spec, &models);
    plan.shapes = inputs.finish();
    plan.guard();
    references::mark(&mut plan);
    if options.include_auth && plan.schemes.is_empty() {
        plan.auth = false;
    }
    plan
}
