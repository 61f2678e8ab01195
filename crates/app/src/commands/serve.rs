//! `dragoman serve`: the chats of this machine in the browser.
//!
//! Invariant: nothing listens before this command, and nothing after it; a tool call cannot start it.

use std::process::ExitCode;
use std::sync::Arc;

use config::Environment;
use domain::Failure;
use serve::{Accounts, Chats, Guard, Options, Policy};
use tokio::sync::Mutex;
use web::{Host, Site};

use super::failed;
use super::ps::SeenChats;
use super::running_chats::running;
use super::serve_arguments::ServeArguments;
use super::serve_network::HostName;
use super::web_page::{self, Start};
use super::{editors, serve_network, serve_tokens};
use crate::attaching::refusal_inside_tool_call;
use crate::cli::Level;
use crate::workspaces::Workspaces;
use crate::{lifetime, logging, stores, working_folder};

pub(crate) fn run(mut arguments: ServeArguments, level: Option<Level>) -> ExitCode {
    if let Some(task) = arguments.task.take() {
        return serve_tokens::run(task);
    }
    if let Some(failure) = refusal_inside_tool_call("serves chats") {
        return failed(&failure);
    }
    if web::pages::CHATS.is_empty() {
        return failed(&Failure::config("This dragoman was built without the page of chats.").hint(
            "Build it with `make build` (node and npm are needed); it is target/release/dragoman then.",
        ));
    }
    let environment = Environment::from_process();
    logging::start(&environment, level);
    if let Some(address) = arguments.listen {
        return lifetime::run(serve_network::serve(arguments, address, environment));
    }
    lifetime::run(serve(arguments, environment))
}

async fn serve(arguments: ServeArguments, environment: Environment) -> Result<(), Failure> {
    working_folder::change_folder(arguments.cwd.as_deref())?;
    let forwarded = forwarded_hosts(&arguments.host)?;
    let host = Host::bind(arguments.port).await.map_err(|error| web_page::no_port(arguments.port, &error))?;
    let host = host.forwarded(forwarded);
    let bound = host.bound().clone();
    let store = stores::open(&environment)?;
    let engine = Workspaces::open(environment.clone())?;
    let folders = working_folder::current_folder();
    // Editors of this machine show a token of an account too.
    let accounts = Accounts::open(store.clone(), &folders)?;
    let guard = Guard::new(engine.clone(), store.clone(), Policy::default());
    let (running_store, seen) = (store.clone(), Arc::new(Mutex::new(SeenChats::new())));
    let chats = Chats::open(Options {
        engine: engine.clone(),
        store,
        folders,
        running: Box::new(move || Box::pin(running(running_store.clone(), seen.clone()))),
        version: env!("CARGO_PKG_VERSION"),
        scope: None,
    })
    .await?;
    let site = Site {
        name: "chats",
        version: env!("CARGO_PKG_VERSION"),
        assets: web::pages::CHATS,
        frame_script: None,
        api: chats.api(),
        open: serve_network::editors(accounts, guard),
        is_client: editors::is_client,
        body_limit: serve::body_limit,
    };
    let start = Start { name: "Chats", no_open: arguments.no_open, json: arguments.json };
    // Whoever reads the link may end the program at once: the signal is waited for before.
    let served = async {
        web_page::announce(&start, &bound, &environment)?;
        host.serve(site, serve::is_open, std::future::pending()).await;
        Ok(())
    };
    let served = lifetime::until_signal(served).await;
    lifetime::shut_down(engine).await;
    served.unwrap_or(Ok(()))
}

/// Only names of this machine: others need TLS and accounts.
fn forwarded_hosts(names: &[String]) -> Result<Vec<String>, Failure> {
    let mut hosts = Vec::new();
    for text in names {
        let name = HostName::parse(text)?;
        if !matches!(name.name.as_str(), "127.0.0.1" | "localhost") {
            return Err(Failure::user(format!("{} is not a name of this machine.", name.name))
                .hint("Serve other machines with --listen IP:PORT; `dragoman docs serve` shows how."));
        }
        let port = name.port.ok_or_else(|| {
            Failure::user("--host needs a port here.").hint(format!("Write --host {}:PORT.", name.name))
        })?;
        hosts.push(name.with_port(port, 80));
    }
    Ok(hosts)
}
