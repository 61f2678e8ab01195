//! `customTools`: shell lines of the user's that a model may call as tools.
//!
//! Invariant: a tool that cannot be read is reported and left out.

use std::collections::BTreeMap;

use domain::Level;
use serde_json::{Map, Value, json};

use crate::cursor::Cursor;
use crate::provider::object;

/// Names are parts of the names that models use, which providers limit.
const MAX_NAME: usize = 48;

#[derive(Debug, Clone, PartialEq)]
pub struct CustomTool {
    pub name: String,
    pub description: String,
    /// With `{{argument}}` for each argument.
    pub command: String,
    /// JSON Schema of the arguments, an object.
    pub input_schema: Value,
}

pub(crate) fn read(cursor: &Cursor) -> Vec<CustomTool> {
    cursor.entries().iter().filter_map(read_tool).collect()
}

/// `formatters`: shell lines by ending of files.
pub(crate) fn read_formatters(cursor: &Cursor) -> BTreeMap<String, String> {
    let entries = cursor.entries();
    entries.iter().filter_map(|entry| Some((entry.name().to_owned(), entry.text()?))).collect()
}

fn read_tool(entry: &Cursor) -> Option<CustomTool> {
    let refuse = |what: &str| {
        entry.report(Level::Error, &format!("{what} The tool is left out."));
        None
    };
    let name = entry.name();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        return refuse("must have a name of letters, digits, `_` and `-`.");
    }
    let (schema, description) = (entry.get("schema"), entry.get("description").text());
    let properties = object(&schema.get("properties"));
    let required = schema.get("required").texts();
    let Some(command) = entry.get("command").text() else { return refuse("must have a command.") };
    let Some(description) = description else { return refuse("must have a description.") };
    if let Some(unknown) = unknown_argument(&command, &properties) {
        return refuse(&format!("uses {{{{{unknown}}}}}, which is not one of its arguments."));
    }
    let input_schema = json!({"type": "object", "properties": properties, "required": required});
    Some(CustomTool { name: name.to_owned(), description, command, input_schema })
}

/// A placeholder of the command that no argument fills.
fn unknown_argument<'c>(command: &'c str, properties: &Map<String, Value>) -> Option<&'c str> {
    let parts = command.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    parts.map(|(name, _)| name.trim()).find(|name| !properties.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Inputs};

    fn resolve(tools: &Value) -> (Vec<CustomTool>, String) {
        let home = tempfile::tempdir().unwrap();
        let config = json!({"customTools": tools}).to_string();
        let environment = Environment::new(home.path(), [("DRAGOMAN_CONFIG", config)]);
        let resolved = crate::resolve(&environment, &Inputs::default());
        let notices: Vec<String> = resolved.notices.into_iter().map(|notice| notice.text).collect();
        (resolved.settings.tools.custom, notices.join("\n"))
    }

    #[test]
    fn a_tool_has_a_name_a_description_a_command_and_its_arguments() {
        let schema = json!({"properties": {"url": {"type": "string"}}, "required": ["url"]});
        let good = json!({"description": "Gets a page.", "command": "curl {{url}}", "schema": schema});
        let (tools, notices) = resolve(&json!({"get-page": good}));
        assert_eq!(notices, "");
        assert_eq!(tools[0].name, "get-page");
        assert_eq!(tools[0].input_schema["required"], json!(["url"]));
    }

    #[test]
    fn a_tool_that_cannot_be_read_is_left_out_and_named() {
        for (name, tool, problem) in [
            ("no command", json!({"description": "x", "command": "ls"}), "must have a name"),
            ("silent", json!({"command": "ls"}), "must have a description"),
            ("idle", json!({"description": "x"}), "must have a command"),
            ("lost", json!({"description": "x", "command": "ls {{where}}"}), "{{where}}"),
        ] {
            let (tools, notices) = resolve(&json!({name: tool}));
            assert!(tools.is_empty() && notices.contains(problem), "{name}: {notices}");
        }
    }
}
