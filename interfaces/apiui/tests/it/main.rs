//! What a user of the crate would notice, over specifications of our own and, where they are, the shared ones.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "tests read files and the scale from the environment")]

mod browser;
mod census;
mod check;
mod figures;
mod fuzz;
mod instructions;
mod odd;
mod own;
mod requests;
mod rows;
mod served;
mod shared;
mod tool;
mod wishes;

use apiui::spec::Spec;

/// Every operation of the specification has a control in the code.
fn check_controls(name: &str, spec: &Spec, code: &str) {
    let rest = spec.endpoints.iter().map(|endpoint| format!("{} {}", endpoint.method, endpoint.path));
    let graph = spec.queries.iter().chain(&spec.mutations).chain(&spec.subscriptions);
    let graph = graph.map(|operation| format!("{} {}", operation.kind, operation.name));
    for signature in rest.chain(graph) {
        let plain = format!("data-operation=\"{signature}\"");
        let quoted = format!("data-operation={{{}}}", escaped(&signature));
        assert!(code.contains(&plain) || code.contains(&quoted), "{name}: no control for {signature}");
    }
}

/// A string literal as modules have them.
fn escaped(text: &str) -> String {
    let json = serde_json::to_string(text).expect("text");
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
