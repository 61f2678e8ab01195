//! A tool of the user's own, as the settings define it. Plain data.

use serde_json::Value;

/// A tool as the user defined it.
#[derive(Clone, PartialEq, Debug)]
pub struct CustomTool {
    pub name: String,
    pub description: String,
    /// With `{{argument}}` for each argument.
    pub command: String,
    /// JSON Schema of the arguments, an object.
    pub input_schema: Value,
}
