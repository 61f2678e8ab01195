//! The official JSON schema: every message we send is checked against it.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

pub(crate) struct Schema {
    definitions: Value,
    /// By side and method: the type of its parameters and of its result.
    types: HashMap<(String, String), (Option<String>, Option<String>)>,
    validators: Mutex<HashMap<String, &'static Validator>>,
}

pub(crate) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| read("schema/v1/schema.json"))
}

/// The draft.
pub(crate) fn schema_of_version_two() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| read("schema/v2/schema.json"))
}

pub(crate) fn read(place: &str) -> Schema {
    let text = std::fs::read_to_string(crate::sdk::package().join(place)).unwrap();
    let mut whole: Value = serde_json::from_str(&text).unwrap();
    Schema::new(whole["$defs"].take())
}

/// Every message that the agent sends; an answer with the method that it answers.
pub(crate) fn check_message(message: &Value, called: Option<&str>) {
    check_with(schema(), message, called);
}

pub(crate) fn check_with(schema: &Schema, message: &Value, called: Option<&str>) {
    assert_eq!(message["jsonrpc"], "2.0");
    if let Some(method) = message["method"].as_str() {
        return schema.check_call(method, &message["params"]);
    }
    if let Some(error) = message.get("error") {
        assert!(message.get("result").is_none(), "{message}");
        return schema.check_error(error);
    }
    // The stable schema lacks the method; its result has the members of a new session's.
    let method = called.expect("an answer to a request");
    let method = if method == "session/fork" { "session/new" } else { method };
    schema.check_result(method, &message["result"]);
}

impl Schema {
    fn new(definitions: Value) -> Self {
        let mut types: HashMap<_, (Option<String>, Option<String>)> = HashMap::new();
        for (name, definition) in definitions.as_object().unwrap() {
            let (Some(side), Some(method)) = (definition["x-side"].as_str(), definition["x-method"].as_str())
            else {
                continue;
            };
            let known = types.entry((side.to_owned(), method.to_owned())).or_default();
            if name.ends_with("Response") {
                known.1 = Some(name.clone());
            } else {
                known.0 = Some(name.clone());
            }
        }
        Self { definitions, types, validators: Mutex::default() }
    }

    /// A request or notification from the agent.
    pub(crate) fn check_call(&self, method: &str, params: &Value) {
        let side = if method.starts_with("$/") { "protocol" } else { "client" };
        let (params_type, _) = self.of(side, method);
        self.check(params_type.as_deref().unwrap(), params);
    }

    /// A result from the agent.
    pub(crate) fn check_result(&self, method: &str, result: &Value) {
        let (_, result_type) = self.of("agent", method);
        self.check(result_type.as_deref().unwrap(), result);
    }

    pub(crate) fn check_error(&self, error: &Value) {
        self.check("Error", error);
    }

    fn of(&self, side: &str, method: &str) -> &(Option<String>, Option<String>) {
        let key = (side.to_owned(), method.to_owned());
        self.types.get(&key).unwrap_or_else(|| panic!("the schema has no {method} of the {side}"))
    }

    fn check(&self, name: &str, value: &Value) {
        let validator = *self.validators.lock().unwrap().entry(name.to_owned()).or_insert_with(|| {
            let schema = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#/$defs/{name}"),
                "$defs": self.definitions,
            });
            Box::leak(Box::new(jsonschema::validator_for(&schema).unwrap()))
        });
        let problems: Vec<String> =
            validator.iter_errors(value).map(|it| format!("{}: {it}", it.instance_path())).collect();
        assert!(problems.is_empty(), "not a {name}: {problems:?}\n{value:#}");
    }
}

#[test]
fn the_schema_can_refuse() {
    let update = json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk"}});
    assert!(std::panic::catch_unwind(|| schema().check_call("session/update", &update)).is_err());
    let good = json!({"sessionId": "s", "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"},
    }});
    schema().check_call("session/update", &good);
}

#[test]
fn the_page_about_the_protocol_leaves_out_no_method() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/acp.md");
    let page = std::fs::read_to_string(page).unwrap();
    let both = schema().types.keys().chain(schema_of_version_two().types.keys());
    let methods = both.map(|(_, method)| method);
    let missing: Vec<&String> = methods.filter(|method| !page.contains(&format!("`{method}`"))).collect();
    assert!(missing.is_empty(), "acp.md does not tell of {missing:?}");
}
