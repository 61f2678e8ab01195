//! What a host of the contract says and hears, whatever carries its lines. Also of the tests of the program.

use serde_json::{Value, json};
use testkit::Lines;

pub(crate) struct Talk {
    pub(crate) lines: Lines,
    /// Answers that came while another was awaited.
    early: Vec<Value>,
}

impl Talk {
    pub(crate) fn new(lines: Lines) -> Self {
        Self { lines, early: Vec::new() }
    }

    pub(crate) async fn send(&mut self, id: u64, method: &str, params: Value) {
        self.lines.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    /// The next line.
    pub(crate) async fn next(&mut self) -> Value {
        self.lines.receive().await.expect("the output goes on")
    }

    /// The answer to a request, and the chunks before it.
    pub(crate) async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        if let Some(at) = self.early.iter().position(|message| message["id"] == id) {
            return (self.early.remove(at), Vec::new());
        }
        let mut chunks = Vec::new();
        loop {
            let message = self.next().await;
            if message["method"] == "stream/chunk" {
                chunks.push(message["params"].clone());
            } else if message["id"] == id {
                return (message, chunks);
            } else {
                self.early.push(message);
            }
        }
    }

    pub(crate) async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(id, method, params).await;
        self.answer(id).await.0
    }

    /// The code of the interface for a specification.
    pub(crate) async fn generated(&mut self, spec: impl serde::Serialize) -> String {
        let answer = self.call(900, "generate", json!({"spec": spec, "format": "react"})).await;
        answer["result"]["code"].as_str().unwrap_or_else(|| panic!("no code: {answer}")).to_owned()
    }
}

/// Every line is a message of JSON-RPC, whatever it says.
pub(crate) fn check_message(message: &Value, _called: Option<&str>) {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
}

/// Two tables, `Users` and `Orders`, each with a name.
pub(crate) fn two_tables() -> Value {
    let list = |name: &str| {
        json!({"get": {"responses": {"200": {"description": "all", "content": {"application/json": {"schema": {
            "type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}}}}}}}})
    };
    let schema = json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"}, "status": {"type": "string"}}});
    json!({
        "openapi": "3.0.3", "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/users": list("User"), "/orders": list("Order")},
        "components": {"schemas": {"User": schema, "Order": schema}},
    })
}
