//! How the rows of a list are chosen and shown: fixed filters, saved views, formats, colors, computed columns, buttons.
//!
//! Plain data of the plan. Names of fields are those of columns; an action's operation is an index of the plan.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sort {
    pub field: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub descending: bool,
}

/// What is asked of a field. Days are counted from the moment at which the page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Test {
    /// One of the values.
    #[default]
    Is,
    Above,
    AtLeast,
    Below,
    AtMost,
    Contains,
    StartsWith,
    Empty,
    Filled,
    Past,
    Future,
    Today,
    ThisWeek,
    ThisMonth,
    ThisYear,
    LastDays,
    NextDays,
    OlderDays,
}

/// A test of one field of a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    pub field: String,
    #[serde(default, skip_serializing_if = "is_usual")]
    pub test: Test,
    /// The rows that do not pass are meant.
    #[serde(default, skip_serializing_if = "is_false")]
    pub negated: bool,
    /// Texts, numbers and booleans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// The parameter of the list's operation by which the API itself chooses. Empty: the page chooses among the loaded rows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
}

/// Conditions under a name, which people switch to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedView {
    pub title: String,
    pub conditions: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Sort>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FormatKind {
    #[default]
    Number,
    Currency,
    /// 12 is 12 %.
    Percent,
    /// 0.12 is 12 %.
    Fraction,
    Date,
    Datetime,
    /// "3 days ago".
    Relative,
    /// A number of bytes.
    Bytes,
}

/// How the values of a column are written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueFormat {
    pub kind: FormatKind,
    /// Three letters, as in ISO 4217.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub currency: String,
    /// Digits after the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
    /// The values are cents.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cents: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tint {
    #[default]
    Red,
    Green,
    Yellow,
    Blue,
    Gray,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ColorRule {
    pub condition: Condition,
    pub tint: Tint,
    /// The row has the color, not the cell alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub whole_row: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Calculation {
    /// The texts of the fields, one after the other.
    #[default]
    Join,
    Add,
    Subtract,
    Multiply,
    Divide,
    DaysUntil,
    DaysSince,
}

/// A column that the API does not send.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Computed {
    pub how: Calculation,
    pub fields: Vec<String>,
    /// The last operand, where it is a number and no field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant: Option<f64>,
}

/// A button over one item or the selected rows: a call of an operation with constants.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Action {
    pub title: String,
    pub operation: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
}

/// A value that an action sends: of a field of the body, or of the record among the variables.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Constant {
    pub field: String,
    pub value: Value,
}

/// What a change replaced, so that it can be undone. The parts are JSON texts, so that no name of a specification is a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastChange {
    pub told: String,
    pub parts: Vec<PastPart>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastPart {
    /// The view, by index; none for the interface itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<usize>,
    pub before: String,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_usual(test: &Test) -> bool {
    *test == Test::Is
}
