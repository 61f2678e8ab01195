//! `dragoman explain-permission TOOL JSON`: the decision about a call and the rule behind it.

use std::process::ExitCode;
use std::sync::Arc;

use config::{Environment, Inputs};
use domain::host::Grants;
use domain::tool::{Review, Scope, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use domain::{Failure, SessionId, visible_json, visible_line};
use engine::approval::{self, Case, Decision, Remembered};
use serde_json::{Value, json};

use super::failed;

pub(crate) fn run(tool: &str, input: &str, plan: bool, json: bool) -> ExitCode {
    match explain(tool, input, plan) {
        Ok((decision, reason)) => {
            let text = match json {
                true => {
                    visible_json(&json!({"decision": decision, "reason": reason}).to_string()).into_owned()
                }
                false => format!("{decision}: {}", visible_line(&reason)),
            };
            super::print_bytes(format!("{text}\n").as_bytes())
        }
        Err(failure) => {
            failed(&failure);
            ExitCode::from(2)
        }
    }
}

fn explain(name: &str, input: &str, plan: bool) -> Result<(&'static str, String), Failure> {
    let input: Value = serde_json::from_str(input)
        .map_err(|error| Failure::user(format!("The arguments are not JSON: {error}.")))?;
    if !input.is_object() {
        return Err(Failure::user("The arguments are not a JSON object.")
            .hint(r#"Write them like this: '{"command": "git push"}'."#));
    }
    let environment = Environment::from_process();
    let roots = crate::workspaces::current_folder();
    let resolved =
        config::resolve(&environment, &Inputs { workspace_roots: roots.clone(), ..Inputs::default() });
    let scope = Scope {
        session: SessionId::new("explain"),
        roots: roots.into(),
        read_only: plan,
        remembered: Arc::from([]),
        forbidden_paths: std::sync::Arc::from([]),
    };
    let options = crate::workspaces::tool_options(&environment, &resolved);
    let (spec, review) = find(name, &input, &scope, options)?;
    let rules = approval::rules_for(&resolved.settings, if plan { "plan" } else { "agent" });
    let verdict = approval::decide(&Case {
        rules: &rules,
        spec: &spec,
        input: &input,
        review: &review,
        remembered: &Remembered::default(),
        read_only: plan,
        trust: false,
        can_ask: true,
        granted: Grants::None,
        hook: None,
    });
    let decision = match verdict.decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    };
    Ok((decision, verdict.reason))
}

/// A built-in tool, or any tool of an MCP server by name alone.
fn find(
    name: &str,
    input: &Value,
    scope: &Scope,
    options: tools::Options,
) -> Result<(ToolSpec, Review), Failure> {
    let bare = name.strip_prefix("eca__").unwrap_or(name);
    let built_in = tools::builtin(options);
    for tool in domain::tool::ToolSource::tools(built_in.as_ref()) {
        if tool.spec().name == bare {
            let review = tool.review(input, scope).map_err(Failure::user)?;
            return Ok((tool.spec().clone(), review));
        }
    }
    let Some((server, tool)) = name.split_once("__") else {
        return Err(Failure::user(format!("There is no tool {name}."))
            .hint("Name a tool of an MCP server as server__tool."));
    };
    let spec = ToolSpec {
        name: tool.to_owned(),
        server: server.to_owned(),
        origin: Origin::Mcp,
        description: String::new(),
        input_schema: json!({}),
        effect: ToolEffect::Other,
    };
    Ok((spec, Review { changes: true, ..Review::default() }))
}
