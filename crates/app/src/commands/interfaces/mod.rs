//! The one place where generated interfaces (`interfaces/`) join the program: `copilot`, `generate`,
//! `mcp-server --spec`, `spec` and `studio`.
//!
//! Owns what they are given: output, folders, engines and MCP servers. Invariant: no other module names a crate of that folder.

mod api_server;
mod copilot;
#[cfg(feature = "studio")]
mod plugin_calls;
#[cfg_attr(not(feature = "studio"), path = "without_studio.rs")]
mod studio;

use std::path::PathBuf;
use std::process::ExitCode;

use config::Environment;
use domain::{Abilities, Failure};
use interfaces::{Assistant, GenerateOptions, Talk};

use super::generate_arguments::GenerateArguments;
use super::{failed, finish};
use crate::workspaces::{EngineOptions, Workspaces};
use crate::{lifetime, output};

pub(crate) use api_server::run as api_server;
pub(crate) use copilot::run as copilot;
#[cfg(feature = "studio")]
pub(crate) use interfaces::studio::copy_tabs;
#[cfg(not(feature = "studio"))]
pub(crate) use studio::copy_tabs;
pub(crate) use studio::run as studio;

pub(crate) fn generate(arguments: GenerateArguments) -> ExitCode {
    finish(interfaces::generate(&Program, &options(arguments)))
}

pub(crate) fn check(place: &str, fetch_refs: bool, as_json: bool) -> ExitCode {
    match interfaces::spec::check(&Program, place, fetch_refs, as_json) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => failed(&failure),
    }
}

fn options(arguments: GenerateArguments) -> GenerateOptions {
    GenerateOptions {
        spec: arguments.spec,
        output: arguments.output,
        theme: arguments.theme,
        layout: arguments.layout,
        server: arguments.server,
        title: arguments.title,
        header: arguments.header,
        ask: arguments.ask,
        improve: arguments.improve,
        overwrite: arguments.overwrite,
        no_auth: arguments.no_auth,
        no_pagination: arguments.no_pagination,
        single_file: arguments.single_file,
        html: arguments.html,
        fetch_refs: arguments.fetch_refs,
    }
}

/// This program, as the commands of the other folder see it.
struct Program;

impl Assistant for Program {
    fn print(&self, text: &str) -> Result<(), Failure> {
        output::print(text)
    }

    fn note_part(&self, text: &str) {
        output::note_part(text);
    }

    fn cache_folder(&self) -> PathBuf {
        Environment::from_process().cache_dir()
    }

    fn with_engine(&self, talk: Talk<'_>) -> Result<(), Failure> {
        let mut outcome = Ok(());
        lifetime::run(async {
            outcome = talk_to_engine(talk).await;
            Ok(())
        });
        outcome
    }
}

async fn talk_to_engine(talk: Talk<'_>) -> Result<(), Failure> {
    let options = EngineOptions { is_ephemeral: true, ..EngineOptions::default() };
    let started = Workspaces::start_engine(Environment::from_process(), options)?;
    let abilities = Abilities { client: "dragoman generate".to_owned(), ..Abilities::default() };
    let link = started.engine.attach(abilities).await?;
    talk(link.commands.clone()).await;
    lifetime::shut_down(started.engine).await;
    Ok(())
}
