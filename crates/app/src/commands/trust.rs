//! `dragoman trust`: the folders whose own configuration takes full effect, and a look at it before the user agrees.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::trust::TrustReview;
use config::{Environment, trust};
use domain::{Failure, visible_line};

use super::failed;
use crate::attaching::refusal_inside_tool_call;

/// More settings than this cannot be judged one by one.
const MAX_LINES: usize = 200;

#[derive(Args)]
pub(crate) struct TrustArguments {
    /// The folder; the current one by default.
    pub folder: Option<PathBuf>,
    /// Take the trust back.
    #[arg(long, conflicts_with_all = ["list", "show"])]
    pub revoke: bool,
    /// List trusted folders.
    #[arg(long)]
    pub list: bool,
    /// Show the settings, commands and files that trust would let in, and trust nothing.
    #[arg(long, conflicts_with = "list")]
    pub show: bool,
    /// Trust without a question. Where stdin is no terminal, there is none.
    #[arg(long)]
    pub yes: bool,
}

pub(crate) fn run(arguments: TrustArguments) -> ExitCode {
    let environment = Environment::from_process();
    let only_looks = arguments.list || arguments.show;
    if !only_looks && let Some(failure) = refusal_inside_tool_call("trusts folders") {
        return failed(&failure);
    }
    let folder = arguments.folder.clone().unwrap_or_else(|| PathBuf::from("."));
    // The full path can be read later too; a folder that is gone can still be forgotten.
    let full = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let name = visible_line(&full.display().to_string()).into_owned();
    let message = if arguments.list {
        trust::list(&environment).map(|folders| list_text(&folders))
    } else if arguments.revoke {
        trust::revoke(&environment, &folder).map(|was_trusted| match was_trusted {
            true => format!("{name} is no longer trusted."),
            false => format!("{name} was not trusted."),
        })
    } else if arguments.show {
        trust::review(&environment, &folder).map(|review| review_text(&name, &review))
    } else {
        grant(&environment, &folder, &name, arguments.yes)
    };
    match message {
        Ok(message) => super::print_bytes(format!("{message}\n").as_bytes()),
        Err(failure) => failed(&failure),
    }
}

fn grant(environment: &Environment, folder: &Path, name: &str, yes: bool) -> Result<String, Failure> {
    let review = trust::review(environment, folder)?;
    if review.is_empty() {
        trust::grant(environment, folder)?;
        return Ok(format!("{name} is trusted. It sets nothing that needed it."));
    }
    let text = review_text(name, &review);
    if !yes && std::io::stdin().is_terminal() {
        crate::output::deliver(format!("{text}\nTrust these settings? [y/N] "))?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(format!("{name} is not trusted."));
        }
        trust::grant(environment, folder)?;
        return Ok(format!("{name} is trusted. If one of these settings changes, you will be asked again."));
    }
    trust::grant(environment, folder)?;
    Ok(format!("{name} is trusted.\n{text}\nIf one of these settings changes, you will be asked again."))
}

fn review_text(name: &str, review: &TrustReview) -> String {
    if review.is_empty() {
        return format!("{name} sets nothing that needs trust.");
    }
    let mut lines = Vec::new();
    if !review.settings.is_empty() {
        lines.push(format!("Settings of {name} that take effect only with trust:"));
        add_lines(&mut lines, &review.settings);
    }
    if !review.texts.is_empty() {
        lines.push(format!(
            "Skills and commands of {name} that count only with trust, as their texts are now:"
        ));
        add_lines(&mut lines, &review.texts);
    }
    if !review.commands.is_empty() {
        lines.push("Commands that they would run:".to_owned());
        add_lines(&mut lines, &review.commands);
    }
    if !review.lookups.is_empty() {
        lines.push(
            "Commands that look up values. They run outside the sandbox, with your rights and tokens:"
                .to_owned(),
        );
        add_lines(&mut lines, &review.lookups);
    }
    if !review.addresses.is_empty() {
        lines.push(
            "Addresses that requests would go to. What a line names after \"with\" is sent there. Your own keys and \
             headers are sent there only if `keyHosts` of your own settings names the host:"
                .to_owned(),
        );
        add_lines(&mut lines, &review.addresses);
    }
    if !review.files.is_empty() {
        lines.push("Files whose present contents they use:".to_owned());
        let files: Vec<String> =
            review.files.iter().map(|file| visible_line(&file.display().to_string()).into_owned()).collect();
        add_lines(&mut lines, &files);
    }
    lines.join("\n")
}

fn add_lines(lines: &mut Vec<String>, more: &[String]) {
    lines.extend(more.iter().take(MAX_LINES).map(|line| format!("  {line}")));
    if more.len() > MAX_LINES {
        lines.push(format!("  and {} more", more.len() - MAX_LINES));
    }
}

fn list_text(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "No folder is trusted. `dragoman trust FOLDER` trusts one.".to_owned();
    }
    let names: Vec<String> =
        folders.iter().map(|folder| visible_line(&folder.display().to_string()).into_owned()).collect();
    names.join("\n")
}
