//! `dragoman grants`: what people granted to a project beyond its sandbox.

use std::process::ExitCode;

use config::Environment;
use domain::{Failure, visible_line};
use process::sandbox::{Grant, ProjectGrants};

use super::failed;
use crate::attaching::refusal_inside_tool_call;
use crate::{sandboxing, working_folder};

#[derive(clap::Args)]
pub(crate) struct GrantsArguments {
    /// Grant this to the project: see `dragoman docs sandbox`.
    #[arg(long, value_name = "GRANT")]
    add: Vec<String>,
    /// Take this grant back.
    #[arg(long, value_name = "GRANT")]
    remove: Vec<String>,
    /// List the grants of all projects.
    #[arg(long, conflicts_with_all = ["add", "remove"])]
    all: bool,
}

pub(crate) fn run(arguments: &GrantsArguments) -> ExitCode {
    let changes = !arguments.add.is_empty() || !arguments.remove.is_empty();
    if changes && let Some(failure) = refusal_inside_tool_call("grants more than the sandbox allows") {
        return failed(&failure);
    }
    let grants = sandboxing::project_grants(&Environment::from_process());
    match change(&grants, arguments) {
        Ok(text) => super::print_bytes(format!("{text}\n").as_bytes()),
        Err(failure) => failed(&failure),
    }
}

fn change(grants: &ProjectGrants, arguments: &GrantsArguments) -> Result<String, Failure> {
    if arguments.all {
        return Ok(list_all(grants));
    }
    let project = working_folder::current_folder().into_iter().next();
    let project = project.ok_or_else(|| Failure::user("There is no current folder."))?;
    let unsaved = |error: std::io::Error| Failure::user(format!("The grants cannot be saved: {error}."));
    grants.add(&project, &parse(&arguments.add)?).map_err(unsaved)?;
    for grant in parse(&arguments.remove)? {
        if grants.remove(&project, Some(&grant)).map_err(unsaved)? == 0 {
            return Err(Failure::user(format!("{grant} was not granted to {}.", project.display())));
        }
    }
    let name = project.display().to_string();
    let lines: Vec<String> =
        grants.of(&project).iter().map(|grant| format!("  {grant}: {}", grant.meaning())).collect();
    Ok(match lines.is_empty() {
        true => format!("{} has no grants.", visible_line(&name)),
        false => format!("Granted to {}:\n{}", visible_line(&name), visible_lines(&lines)),
    })
}

fn parse(texts: &[String]) -> Result<Vec<Grant>, Failure> {
    texts.iter().map(|text| Grant::parse(text).map_err(Failure::user)).collect()
}

fn list_all(grants: &ProjectGrants) -> String {
    let all = grants.all();
    if all.is_empty() {
        return "No project has grants.".to_owned();
    }
    let lines: Vec<String> =
        all.iter().map(|(project, grants)| format!("{project}: {}", grants.join(", "))).collect();
    visible_lines(&lines)
}

fn visible_lines(lines: &[String]) -> String {
    lines.iter().map(|line| visible_line(line).into_owned()).collect::<Vec<_>>().join("\n")
}
