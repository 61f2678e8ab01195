//! The shape of sections that are not supported but have keys that matter: `hooks`.

use schemars::JsonSchema;
use serde_json::Value;

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(super) struct Hook {
    /// The event, for example `preToolCall`.
    r#type: String,
    /// The calls that the hook is about: a regular expression for `server__tool`, or rules as in
    /// `toolCall.approval.deny`.
    matcher: Value,
}
