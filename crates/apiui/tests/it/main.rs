//! What a user of the crate would notice, over specifications of our own and, where they are, the shared ones.
#![allow(clippy::disallowed_methods, reason = "tests read files and the scale from the environment")]

mod check;
mod shared;

use apiui::spec::Spec;

/// Every operation of the specification has a control in the code.
fn check_controls(name: &str, spec: &Spec, code: &str) {
    let rest = spec.endpoints.iter().map(|endpoint| format!("{} {}", endpoint.method, endpoint.path));
    let graph = spec.queries.iter().chain(&spec.mutations).chain(&spec.subscriptions);
    let graph = graph.map(|operation| format!("{} {}", operation.kind, operation.name));
    for signature in rest.chain(graph) {
        let plain = format!("data-operation=\"{signature}\"");
        let quoted = format!("data-operation={{{}}}", serde_json::to_string(&signature).expect("text").replace('<', "\\u003c"));
        assert!(code.contains(&plain) || code.contains(&quoted), "{name}: no control for {signature}");
    }
}
