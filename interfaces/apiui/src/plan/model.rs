//! The plan's types and their JSON form, which is the data literal of a printed module.
//!
//! No key of that JSON comes from a specification, and no default is written out, so that modules stay small.

use super::SlotCode;
use super::forms::{BodyForm, Input, InputPlace, Shape};
use super::showing::{Action, ColorRule, Computed, Condition, PastChange, SavedView, Sort, ValueFormat};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    #[default]
    Light,
    Dark,
    /// As the reader's system has it.
    Auto,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Tables.
    #[default]
    Default,
    Cards,
    /// Tables with tight rows.
    Compact,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    pub version: u32,
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    pub graphql: bool,
    pub theme: Theme,
    pub layout: Layout,
    #[serde(default, skip_serializing_if = "is_false")]
    pub view_only: bool,
    pub auth: bool,
    pub pagination: bool,
    pub servers: Vec<ServerChoice>,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<FixedHeader>,
    pub schemes: Vec<Scheme>,
    pub resources: Vec<Resource>,
    pub operations: Vec<Operation>,
    /// Objects that forms refer to, so that recursion is finite.
    pub shapes: Vec<Shape>,
    pub webhooks: Vec<Incoming>,
    /// Code of free changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotCode>,
    /// What the last changes replaced, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<PastChange>,
    pub assumptions: Vec<String>,
}

/// An address of the API, its variables filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerChoice {
    /// Empty, a path, or an http(s) address.
    pub url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The address before its variables were filled in, where it has some.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<TemplateVariable>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateVariable {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub initial: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FixedHeader {
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SchemeKind {
    ApiKey,
    Basic,
    Bearer,
    /// Another HTTP scheme: the whole header value is asked for.
    Http,
    Oauth2,
    OpenIdConnect,
    MutualTls,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scheme {
    pub name: String,
    pub kind: SchemeKind,
    /// Where an API key goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<InputPlace>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flow {
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authorization_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token_url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// A kind of thing the API has, with the operations on it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    /// Unique, and fit for a component's name: ASCII letters and digits.
    pub id: String,
    pub title: String,
    pub singular: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creates: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes: Option<usize>,
    /// Every operation of the resource, those above among them.
    pub operations: Vec<usize>,
    /// Which field of an item fills which parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
}

impl Resource {
    /// The one key that showing an item takes.
    pub fn detail_key(&self, operations: &[Operation]) -> Option<&Key> {
        let detail = operations.get(self.detail?)?;
        let head = |key: &Key| key.parameter.split('.').next().unwrap_or_default().to_owned();
        let takes = |key: &&Key| {
            let name = head(key);
            detail.inputs.iter().any(|input| input.name == key.parameter || input.name == name)
        };
        let mut keys = self.keys.iter().filter(takes);
        keys.next().filter(|_| keys.next().is_none())
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Key {
    /// Its name; with dots, the path to a field of a GraphQL variable: `where.id`.
    pub parameter: String,
    pub field: String,
    /// The specification does not say so: the page asks before it calls anything with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub guessed: bool,
    /// The operations, besides those that show, edit and delete an item, whose parameter of this name is this very key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<usize>,
}

/// From an item of this resource to another resource.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Relation {
    pub resource: usize,
    pub label: String,
    /// The field of the item that holds the other's key. Empty: the item's own keys are handed down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
    pub parameter: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct List {
    pub operation: usize,
    /// Where the items are in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub total: Vec<String>,
    pub columns: Vec<Column>,
    /// A search bar over these fields; none without fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Filters that are always in view, by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<Sort>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub grouping: String,
    pub page_size: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
    /// Differs from the plan's layout where a wish asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Fixed filters: rows that do not meet all of them are not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<SavedView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub colors: Vec<ColorRule>,
    /// Buttons over the selected rows and on the page of an item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

impl List {
    /// The most rows that the API sends at a time, where it says so.
    pub fn largest_page(&self, operations: &[Operation]) -> Option<u32> {
        let name = &self.paging.as_ref()?.size_parameter;
        let input = operations.get(self.operation)?.inputs.iter().find(|input| input.name == *name)?;
        // The cast ends at the largest number there is.
        input.maximum.filter(|maximum| *maximum >= 1.0).map(|maximum| maximum as u32)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PagingStyle {
    #[default]
    Page,
    Offset,
    Cursor,
    Link,
    Connection,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Paging {
    pub style: PagingStyle,
    /// The parameter that moves: page number, offset or cursor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub size_parameter: String,
    /// The number of the first page.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first: u32,
    /// Where the next cursor or address is in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// Where the answer says that there is more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// The field of the last item that is the next cursor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from_last: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Display {
    #[default]
    Text,
    Number,
    Boolean,
    Date,
    Datetime,
    Email,
    Link,
    Choice,
    Object,
    List,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Column {
    pub field: String,
    pub label: String,
    pub display: Display,
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// The values that the specification lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ValueFormat>,
    /// The name of the item that the key leads to is shown in its place.
    #[serde(default, skip_serializing_if = "is_false")]
    pub named: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed: Option<Computed>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operation {
    /// `METHOD path` or `query name`: what its controls carry.
    pub signature: String,
    pub title: String,
    pub method: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Changes something: left out of a read-only interface.
    #[serde(default, skip_serializing_if = "is_false")]
    pub writes: bool,
    /// Destroys something: asks before it calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub destroys: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// What says which rows a write is about, by its path in the variables, or in the body without a GraphQL document. A
    /// call with an empty one is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<Vec<String>>,
    /// Where the fields of an item are among the variables of an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyForm>,
    /// Alternatives of schemes needed together, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security: Vec<Vec<usize>>,
    /// The GraphQL document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query_text: String,
    /// Where the result is in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub result: Vec<String>,
    /// What may come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerNote>,
    /// The answer comes in parts: server-sent events or lines of JSON.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_parts: bool,
    /// A server of its own, by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<usize>,
    /// Requests that the API sends back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incoming: Vec<Incoming>,
}

/// One answer of an operation, as the specification describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerNote {
    pub status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The fields of the data, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shape: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Incoming {
    pub name: String,
    pub method: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
