//! `customize`: a wish changes the plan inside the code, or goes to a model.
//!
//! Invariants: no state is kept, all that is needed is in the params; no code is answered that the checker refuses; on an
//! error nothing was changed.

use apiui::check::check;
use apiui::customize::{Outcome, wish};
use apiui::plan::{Options, Plan, plan};
use apiui::print::{UnknownModule, plan_of, print_whole};
use rpc::Fault;
use serde_json::value::RawValue;

use crate::from_wire;
use crate::model;
use crate::server::{Job, Server};
use crate::task::{Task, not_done_in_time};
use crate::to_wire;
use crate::wire::{CustomizeParams, CustomizeResult, Tools};

enum WishOutcome {
    Done(CustomizeResult),
    ForModel(Task),
}

pub(crate) async fn customize(
    server: &Server,
    job: &Job,
    params: Option<Box<RawValue>>,
) -> Result<CustomizeResult, Fault> {
    let outcome =
        job.run_blocking(move || read_wish(params.as_deref())).await.ok_or_else(not_done_in_time)??;
    match outcome {
        WishOutcome::Done(result) => Ok(result),
        WishOutcome::ForModel(task) => model::change(server, job, task).await,
    }
}

/// Everything that needs no model; on a thread of its own.
fn read_wish(params: Option<&RawValue>) -> Result<WishOutcome, Fault> {
    let params: CustomizeParams<'_> = from_wire::decode(params)?;
    if params.prompt.trim().is_empty() {
        return Err(Fault::invalid_params("prompt is empty. Say what should change."));
    }
    if params.current_code.trim().is_empty() {
        return Err(Fault::invalid_params("currentCode is empty. Generate an interface first."));
    }
    let history = from_wire::history(params.history);
    let (plan, no_model_fault) = match plan_of(&params.current_code) {
        Ok(plan) => match wish(&plan, &params.prompt, &history) {
            Outcome::Edited { plan, description, assumptions, .. } => {
                let code = printed(&plan)?;
                return Ok(WishOutcome::Done(CustomizeResult::changed(code, description, assumptions)));
            }
            Outcome::Clarify { question, options } => {
                return Ok(WishOutcome::Done(CustomizeResult::clarify(question, options)));
            }
            Outcome::Refused(refusal) => (Some(Box::new(plan)), to_wire::refused(&refusal)),
        },
        Err(reason) => (None, not_ours(&reason)),
    };
    let servers = servers(plan.as_deref(), &params.current_code, params.spec);
    let (code, prompt) = (params.current_code, params.prompt);
    let tools = Tools { offered: params.tools, results: params.tool_results };
    Ok(WishOutcome::ForModel(Task { code, plan, prompt, history, servers, tools, no_model_fault }))
}

/// The print of a plan that came from outside is checked like all code from outside.
fn printed(plan: &Plan) -> Result<String, Fault> {
    let code = print_whole(plan);
    match check(&code) {
        Ok(_) => Ok(code),
        Err(refusals) => Err(to_wire::check_failed(
            "The plan in this code leads to code that is not allowed. Generate the interface again.",
            &refusals,
        )),
    }
}

fn not_ours(reason: &UnknownModule) -> Fault {
    to_wire::customization_failed(format!(
        "{reason} Without a language model only code as it was generated can be changed. Generate the interface again, \
         or add a model. Nothing was changed."
    ))
}

/// The addresses that the plan, the code as it is, or the specification names.
pub(crate) fn servers(plan_now: Option<&Plan>, code: &str, spec: Option<&RawValue>) -> Vec<String> {
    let mut servers = vec![String::new()];
    match plan_now {
        Some(plan) => servers.extend(plan.servers.iter().map(|server| server.url.clone())),
        None => {
            // Foreign code may call the addresses it calls now, where the checker can read them.
            servers.extend(check(code).map(|checked| checked.servers).unwrap_or_default());
            if let Ok(reading) = from_wire::spec(spec) {
                let plan = plan(&reading.spec, &Options::default());
                servers.extend(plan.servers.into_iter().map(|server| server.url));
            }
        }
    }
    servers
}
