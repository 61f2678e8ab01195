//! `dragoman explain-permission TOOL JSON`: the decision about a call and the rule behind it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use config::{Environment, Inputs};
use domain::host::Grants;
use domain::taint::Taint;
use domain::tool::{Review, Scope, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use domain::{Failure, SessionId, Tool, visible_json, visible_line};
use engine::approval::{self, ApprovalDecision, Case, Decision, Remembered};
use serde_json::{Value, json};

use super::failed;
use crate::sandboxing::{self, WorkspaceSandbox};

#[derive(clap::Args)]
pub(crate) struct ExplainArguments {
    /// The tool: `read_file`, `eca__read_file` or `server__tool`.
    #[arg(required_unless_present = "calls")]
    tool: Option<String>,
    /// Its arguments, a JSON object.
    #[arg(required_unless_present = "calls")]
    input: Option<String>,
    /// Count the questions of a file of calls: `{"tool": …, "input": …}` on each line, as one chat would make them.
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    calls: Option<PathBuf>,
    /// Decide as in the plan behavior.
    #[arg(long)]
    plan: bool,
    /// Decide as in a chat that has read text of strangers and a secret.
    #[arg(long)]
    tainted: bool,
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ExplainArguments) -> ExitCode {
    let ExplainArguments { tool, input, calls, plan, tainted, json } = arguments;
    match calls {
        Some(calls) => count(calls, *plan, *tainted, *json),
        None => explain_one(
            tool.as_deref().unwrap_or_default(),
            input.as_deref().unwrap_or_default(),
            *plan,
            *tainted,
            *json,
        ),
    }
}

fn explain_one(tool: &str, input: &str, plan: bool, tainted: bool, json: bool) -> ExitCode {
    let explained = read_input(input).and_then(|input| explain(&[(tool.to_owned(), input)], plan, tainted));
    let Some(Explained { decision, reason, reviewer, .. }) = unwrap(explained).and_then(|mut all| all.pop())
    else {
        return ExitCode::from(2);
    };
    let text = match json {
        true => {
            let mut value = json!({"decision": decision, "reason": reason});
            if let Some(reviewer) = reviewer {
                value["reviewer"] = reviewer.into();
            }
            visible_json(&value.to_string()).into_owned()
        }
        false => {
            let review = reviewer.map(|text| format!("\n{text}")).unwrap_or_default();
            format!("{decision}: {}{}", visible_line(&reason), review)
        }
    };
    super::print_bytes(format!("{text}\n").as_bytes())
}

/// The same for a call that waits for an answer in a chat, as lines for people.
pub(super) async fn explain_call(call: terminal::ExplainedCall) -> Result<Vec<String>, Failure> {
    // Looking for the sandbox blocks.
    let explained = tokio::task::spawn_blocking(move || {
        let terminal::ExplainedCall { tool, input, plan, tainted } = call;
        explain(&[(tool.clone(), input)], plan, tainted).map(|mut all| (tool, all.pop()))
    });
    let explained = explained.await.map_err(|error| Failure::internal(error.to_string()))??;
    let (tool, Some(Explained { decision, reason, reviewer, .. })) = explained else { return Ok(Vec::new()) };
    let mut lines = vec![format!("The rules decide about {tool}: {decision}. {}", visible_line(&reason))];
    lines.extend(reviewer);
    lines.push(String::new());
    lines.push("/permissions lists all rules; `dragoman docs approvals` has their order.".to_owned());
    Ok(lines)
}

/// Counts the questions of a recorded chat, where the person allows each call, and each for the session.
fn count(file: &Path, plan: bool, tainted: bool, json: bool) -> ExitCode {
    let Some(all) = unwrap(read_calls(file).and_then(|calls| explain(&calls, plan, tainted))) else {
        return ExitCode::from(2);
    };
    let of = |decision: &str| all.iter().filter(|one| one.decision == decision).count();
    let (allowed, asked, denied) = (of("allow"), of("ask"), of("deny"));
    let new = all.iter().filter(|one| one.decision == "ask" && !one.remembered).count();
    let text = match json {
        true => {
            let counts = json!({"calls": all.len(), "allowed": allowed, "asked": asked, "denied": denied,
                "askedWithRemembering": new});
            counts.to_string()
        }
        false => format!(
            "{} calls: {allowed} allowed, {asked} asked ({new} if each answer is for the session), {denied} denied.",
            all.len()
        ),
    };
    super::print_bytes(format!("{text}\n").as_bytes())
}

/// The decision about one call.
struct Explained {
    decision: &'static str,
    reason: String,
    /// An earlier answer for the session would have covered it.
    remembered: bool,
    /// What the reviewer would do, where one is set and the call is asked.
    reviewer: Option<String>,
}

fn unwrap<T>(result: Result<T, Failure>) -> Option<T> {
    result.map_err(|failure| failed(&failure)).ok()
}

fn read_input(text: &str) -> Result<Value, Failure> {
    let input: Value = serde_json::from_str(text)
        .map_err(|error| Failure::user(format!("The arguments are not JSON: {error}.")))?;
    match input.is_object() {
        true => Ok(input),
        false => Err(Failure::user("The arguments are not a JSON object.")
            .hint(r#"Write them like this: '{"command": "git push"}'."#)),
    }
}

fn read_calls(file: &Path) -> Result<Vec<(String, Value)>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::user(format!("{} cannot be read: {error}.", file.display())))?;
    let read = |(number, line): (usize, &str)| {
        let mut call = read_input(line)?;
        let tool = call["tool"].as_str().map(str::to_owned);
        let wrong = || Failure::user(format!("Line {} has no tool.", number + 1));
        Ok((tool.ok_or_else(wrong)?, call["input"].take()))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(read).collect()
}

/// Decides about calls as one chat would make them.
fn explain(calls: &[(String, Value)], plan: bool, tainted: bool) -> Result<Vec<Explained>, Failure> {
    let environment = Environment::from_process();
    let roots = crate::working_folder::current_folder();
    let resolved =
        config::resolve(&environment, &Inputs { workspace_roots: roots.clone(), ..Inputs::default() });
    let sandbox = sandboxing::workspace_sandbox(&environment, &resolved, &roots, &mut Vec::new());
    let sandbox = sandbox.map(WorkspaceSandbox::into_tools);
    let options = tools::Options { sandbox, ..crate::built_in_tools::options(&environment, &resolved) };
    let tools = domain::tool::ToolSource::tools(tools::builtin(options).as_ref());
    let rules = approval::rules_for(&resolved.settings, if plan { "plan" } else { "agent" });
    let scope = Scope {
        session: SessionId::new("explain"),
        roots: roots.into(),
        read_only: plan,
        remembered: Arc::from([]),
        forbidden_paths: approval::forbidden_paths(&rules).into(),
        tainted,
        secret_read: tainted,
    };
    let taint = sample_taint(tainted);
    let mut explained = Vec::new();
    let mut remembered = Remembered::default();
    for (name, input) in calls {
        let (spec, review) = review(name, input, &scope, &tools)?;
        let decide = |remembered: &Remembered| {
            approval::decide(&Case {
                rules: &rules,
                spec: &spec,
                input,
                review: &review,
                remembered,
                read_only: plan,
                trust: false,
                can_ask: true,
                granted: Grants::NONE,
                hook: None,
                taint: &taint,
            })
        };
        let verdict = decide(&Remembered::default());
        let is_remembered = decide(&remembered).decision == Decision::Allow;
        if verdict.decision == Decision::Ask {
            remembered.add(&approval::rememberable(&spec, input, &review));
        }
        let decision = name_of(verdict.decision);
        let reviewer = reviewer_text(resolved.settings.tools.reviewer.as_deref(), &verdict);
        explained.push(Explained { decision, reason: verdict.reason, remembered: is_remembered, reviewer });
    }
    Ok(explained)
}

/// What the reviewer would do about a call that is asked.
fn reviewer_text(model: Option<&str>, verdict: &ApprovalDecision) -> Option<String> {
    let model = model.filter(|_| verdict.decision == Decision::Ask)?;
    Some(match verdict.reviewable {
        true => {
            format!(
                "The reviewer {model} is asked first; it may allow the call or leave the question to you."
            )
        }
        false => format!("A person must answer; the reviewer {model} is not asked."),
    })
}

fn name_of(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny => "deny",
    }
}

/// The taint of a chat that has read text of strangers and a secret.
fn sample_taint(tainted: bool) -> Taint {
    let mut taint = Taint::default();
    if tainted {
        taint.add_source("text of a stranger");
        taint.add_secret("a secret");
    }
    taint
}

/// A built-in tool, or any tool of an MCP server by name alone.
fn review(
    name: &str,
    input: &Value,
    scope: &Scope,
    tools: &[Arc<dyn Tool>],
) -> Result<(ToolSpec, Review), Failure> {
    let bare = name.strip_prefix("eca__").unwrap_or(name);
    if let Some(tool) = tools.iter().find(|tool| tool.spec().name == bare) {
        prepare(tool.as_ref())?;
        let review = tool.review(input, scope).map_err(Failure::user)?;
        return Ok((tool.spec().clone(), review));
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

/// The first command of a chat finds out which sandbox there is; so does this one.
fn prepare(tool: &dyn Tool) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("No runtime: {error}.")))?;
    runtime.block_on(tool.prepare());
    Ok(())
}
