//! `dragoman serve tokens` and `dragoman serve audit`: accounts of a server and the log of what they did.
//!
//! Invariant: a token is printed once, when it is made; no tool call makes, lists or revokes one.

use std::process::ExitCode;
use std::sync::Arc;

use config::Environment;
use domain::{Failure, Store};
use serde_json::{Value, json};
use serve::{Audit, Role, Verified, accounts};
use terminal::text::clean_line;

use super::failed;
use super::serve_arguments::{RoleArgument, ServeTask, TokensTask};
use crate::attaching::refusal_inside_tool_call;
use crate::{lifetime, stores};

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
            if json {
                println!("{}", json!({"name": name, "role": role.as_str(), "token": token}));
            } else {
                println!("{token}\nThis is the token of {name} ({}). It is not shown again.", role.as_str());
            }
        }
        TokensTask::List { json } => list(store.as_ref(), json).await?,
        TokensTask::Change { name, role, budget } => {
            accounts::change(store, &name, role.map(role_of), budget).await?;
            println!("The account {name} is changed.");
        }
        TokensTask::Revoke { name } => {
            accounts::revoke(store, &name).await?;
            println!("The token of {name} is revoked.");
        }
    }
    Ok(())
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
        println!("{}", json!({"accounts": values}));
        return Ok(());
    }
    if values.is_empty() {
        println!("There are no accounts. Make one with `dragoman serve tokens add NAME --role ROLE`.");
    }
    for value in values {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let spent = value["spentUsd"].as_f64().unwrap_or_default();
        let budget =
            value["budgetUsd"].as_f64().map_or_else(String::new, |budget| format!(" of ${budget:.2}"));
        println!("{:<20} {:<6} ${spent:.2}{budget}", text("name"), text("role"));
    }
    Ok(())
}

async fn print_log(store: Arc<dyn Store>, json: bool) -> Result<(), Failure> {
    let audit = Audit::new(store);
    let mut after = 0;
    loop {
        let entries = audit.read(after, PAGE).await?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.number;
        for entry in &entries {
            let body = &entry.body;
            if json {
                let mut value = body.clone();
                value["number"] = json!(entry.number);
                value["hash"] = json!(entry.hash);
                println!("{value}");
            } else {
                let text = |name: &str| clean_line(body[name].as_str().unwrap_or_default());
                let at = i64::try_from(body["at"].as_u64().unwrap_or_default()).unwrap_or_default();
                let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
                println!(
                    "{:>6} {at:.0} {:<16} {:<14} {} {}",
                    entry.number,
                    text("who"),
                    text("action"),
                    text("chat"),
                    text("detail")
                );
            }
        }
    }
}

async fn verify(store: Arc<dyn Store>, json: bool) -> Result<(), Failure> {
    let found = Audit::new(store).verify().await?;
    if json {
        let value: Value = match &found {
            Verified::Whole { count, head } => json!({"whole": true, "count": count, "head": head}),
            Verified::Broken { number } => json!({"whole": false, "firstBroken": number}),
        };
        println!("{value}");
    }
    match found {
        Verified::Whole { count, head } if !json => {
            println!("The log is whole: {count} entries. The hash of the last one is {head}.");
            println!(
                "Note it: a later check that ends with another hash for entry {count} shows that the log was cut."
            );
            Ok(())
        }
        Verified::Whole { .. } => Ok(()),
        Verified::Broken { number } => {
            Err(Failure::user(format!("Entry {number} of the audit log was changed, removed or put in."))
                .hint("Compare it with a copy of the store."))
        }
    }
}
