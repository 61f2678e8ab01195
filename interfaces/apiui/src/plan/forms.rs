//! The types of forms: the inputs and the body of an operation, as the plan holds them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyKind {
    #[default]
    Json,
    Form,
    Multipart,
    Text,
    File,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BodyForm {
    pub kind: BodyKind,
    /// Nested values of a form are named with brackets, `a[b][0]`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub brackets: bool,
    pub content_type: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    pub input: Box<Input>,
    /// Paths of fields that only the server sets; `*` stands for each item. An edit leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_set: Vec<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputKind {
    #[default]
    Text,
    Multiline,
    Secret,
    Number,
    Integer,
    Boolean,
    Date,
    Datetime,
    Time,
    Email,
    Url,
    Choice,
    File,
    Object,
    List,
    Map,
    /// One of several shapes.
    Variant,
    /// Anything, written as JSON.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputPlace {
    #[default]
    Query,
    Path,
    Header,
    Cookie,
    /// A variable of a GraphQL document.
    Variable,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    pub name: String,
    pub kind: InputKind,
    #[serde(default, skip_serializing_if = "is_query")]
    pub place: InputPlace,
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub nullable: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Scalars only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    /// What people read for each choice; empty where the values themselves are readable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The value to begin with, as JSON text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub initial: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub above: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub below: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// The entries of a list differ from each other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub distinct: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// The value is the key of an item of this resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<usize>,
    /// The fields of an object by the index of its shape …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<usize>,
    /// … or here, where it has no name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Input>,
    /// What a list or map holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<Input>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// The field that tells the variants apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub discriminator: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Alternative {
    pub label: String,
    /// The value of the discriminator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub input: Input,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Shape {
    pub name: String,
    pub fields: Vec<Input>,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_query(place: &InputPlace) -> bool {
    *place == InputPlace::Query
}
