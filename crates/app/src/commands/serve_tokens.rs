//! `dragoman serve tokens` and `dragoman serve audit`: accounts of a server and the log of what they did.
//!
//! Invariants: a token is printed once, when it is made; an account whose token could not be printed does not exist; no
//! tool call makes, lists or revokes one.

use std::process::ExitCode;
use std::sync::Arc;

use config::Environment;
use domain::{Failure, Store};
use serde_json::{Value, json};
use serve::{Audit, Entry, Role, Verified, accounts};
use terminal::text::clean_line;

use super::failed;
use super::serve_arguments::{RoleArgument, ServeTask, TokensTask};
use crate::attaching::refusal_inside_tool_call;
use crate::{lifetime, output, stores};

/// Entries printed at a time.
const PAGE: usize = 500;

pub(super) fn run(task: ServeTask) -> ExitCode {
    if let Some(failure) = refusal_inside_tool_call("manages accounts") {
        return failed(&failure);
    }
    let environment = Environment::from_process();
    lifetime::run(async move {
        let store = stores::open(&environment)?;
        match task {
            ServeTask::Tokens(task) => tokens(&store, task).await,
            ServeTask::Audit { verify: true, json } => verify(store, json).await,
            ServeTask::Audit { verify: false, json } => print_log(store, json).await,
        }
    })
}

async fn tokens(store: &Arc<dyn Store>, task: TokensTask) -> Result<(), Failure> {
    match task {
        TokensTask::Add { name, role, budget, workspace, json } => {
            let role = role_of(role);
            let mut folders = Vec::new();
            for folder in workspace {
                let real = folder.canonicalize().ok().filter(|path| path.is_dir());
                let missing = || Failure::user(format!("{} is not a folder.", folder.display()));
                folders.push(real.ok_or_else(missing)?);
            }
            let token = accounts::add(store, &name, role, budget, folders).await?;
            let text = match json {
                true => json!({"name": name, "role": role.as_str(), "token": token}).to_string(),
                false => {
                    format!(
                        "{token}\nThis is the token of {name} ({}). It is not shown again.",
                        role.as_str()
                    )
                }
            };
            match output::deliver(format!("{text}\n")) {
                Ok(()) => Ok(()),
                Err(failure) => Err(take_back(store, &name, failure).await),
            }
        }
        TokensTask::List { json } => list(store.as_ref(), json).await,
        TokensTask::Change { name, role, budget } => {
            accounts::change(store, &name, role.map(role_of), budget).await?;
            output::print_line(&format!("The account {name} is changed."))
        }
        TokensTask::Revoke { name } => {
            accounts::revoke(store, &name).await?;
            output::print_line(&format!("The token of {name} is revoked."))
        }
    }
}

/// Ends an account whose token nobody has seen.
async fn take_back(store: &Arc<dyn Store>, name: &str, failure: Failure) -> Failure {
    match accounts::revoke(store, name).await {
        Ok(()) => failure.hint(format!("The account {name} was not made. Try again.")),
        Err(second) => failure.hint(format!(
            "The account {name} is there without a token ({}). Run `dragoman serve tokens revoke {name}`.",
            second.message
        )),
    }
}

fn role_of(role: RoleArgument) -> Role {
    match role {
        RoleArgument::View => Role::View,
        RoleArgument::Drive => Role::Drive,
        RoleArgument::Admin => Role::Admin,
    }
}

async fn list(store: &dyn Store, json: bool) -> Result<(), Failure> {
    let mut values = Vec::new();
    for account in accounts::list(store).await? {
        let spent = serve::spent(store, &account.name).await?;
        values.push(json!({
            "name": account.name, "role": account.role.as_str(), "budgetUsd": account.budget, "spentUsd": spent,
            "workspaces": account.workspaces, "createdAt": account.created,
        }));
    }
    if json {
        return output::print(format!("{}\n", json!({"accounts": values})));
    }
    if values.is_empty() {
        let text = "There are no accounts. Make one with `dragoman serve tokens add NAME --role ROLE`.";
        return output::print_line(text);
    }
    let line = |value: &Value| {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let spent = value["spentUsd"].as_f64().unwrap_or_default();
        let budget =
            value["budgetUsd"].as_f64().map_or_else(String::new, |budget| format!(" of ${budget:.2}"));
        format!("{:<20} {:<6} ${spent:.2}{budget}\n", text("name"), text("role"))
    };
    output::print(values.iter().map(line).collect::<String>())
}

async fn print_log(store: Arc<dyn Store>, json: bool) -> Result<(), Failure> {
    let audit = Audit::new(store);
    let mut after = 0;
    loop {
        let entries = audit.read(after, PAGE).await?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.number;
        let lines: String = entries.iter().map(|entry| log_line(entry, json)).collect();
        if !output::print_part(lines)? {
            return Ok(());
        }
    }
}

fn log_line(entry: &Entry, json: bool) -> String {
    let body = &entry.body;
    if json {
        let mut value = body.clone();
        value["number"] = json!(entry.number);
        value["hash"] = json!(entry.hash);
        return format!("{value}\n");
    }
    let text = |name: &str| clean_line(body[name].as_str().unwrap_or_default());
    let at = i64::try_from(body["at"].as_u64().unwrap_or_default()).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    let (who, action, chat, detail) = (text("who"), text("action"), text("chat"), text("detail"));
    format!("{:>6} {at:.0} {who:<16} {action:<14} {chat} {detail}\n", entry.number)
}

async fn verify(store: Arc<dyn Store>, json: bool) -> Result<(), Failure> {
    let found = Audit::new(store).verify().await?;
    if json {
        let value: Value = match &found {
            Verified::Whole { count, head } => json!({"whole": true, "count": count, "head": head}),
            Verified::Broken { number } => json!({"whole": false, "firstBroken": number}),
        };
        output::print(format!("{value}\n"))?;
    }
    match found {
        Verified::Whole { count, head } if !json => output::print(format!(
            "The log is whole: {count} entries. The hash of the last one is {head}.\n\
                 Note it: a later check that ends with another hash for entry {count} shows that the log was cut.\n"
        )),
        Verified::Whole { .. } => Ok(()),
        Verified::Broken { number } => {
            Err(Failure::user(format!("Entry {number} of the audit log was changed, removed or put in."))
                .hint("Compare it with a copy of the store."))
        }
    }
}
