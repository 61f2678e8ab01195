//! `dragoman copilot`: the Copilot CLI contract on stdin and stdout.

use std::io;
use std::process::ExitCode;

use domain::Abilities;
use domain::command::WorkspaceSpec;
use interfaces::copilot::{self, Limits};

use crate::cli::Level;
use crate::commands::server::on_stdio;
use crate::working_folder;

pub(crate) fn run(level: Option<Level>) -> ExitCode {
    on_stdio(level, |engine, transport, _| async move {
        let abilities = Abilities { client: "copilot host".to_owned(), ..Abilities::default() };
        let link = engine.attach(abilities).await.map_err(io::Error::other)?;
        let workspace = WorkspaceSpec { roots: working_folder::current_folder(), options: None };
        copilot::serve(link, workspace, transport, Limits::default()).await
    })
}
