//! `dragoman trust`: which folders' own configuration takes full effect.

use std::path::PathBuf;
use std::process::ExitCode;

use config::{Environment, trust};

use super::failed;

pub(crate) fn run(folder: Option<PathBuf>, revoke: bool, list: bool) -> ExitCode {
    let environment = Environment::from_process();
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    // `.` says nothing to whoever reads it later; a folder that is gone can still be forgotten.
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let shown = shown.display();
    let said = if list {
        trust::list(&environment).map(|folders| listed(&folders))
    } else if revoke {
        trust::revoke(&environment, &folder).map(|was| match was {
            true => format!("{shown} is no longer trusted."),
            false => format!("{shown} was not trusted."),
        })
    } else {
        trust::grant(&environment, &folder).map(|settings| match settings.as_slice() {
            [] => format!("{shown} is trusted. It sets nothing that needed it."),
            settings => format!(
                "{shown} is trusted. These settings of it now take effect:\n  {}\nIf one of them changes, you will be \
                 asked again.",
                settings.join("\n  ")
            ),
        })
    };
    match said {
        Ok(said) => super::print_bytes(format!("{said}\n").as_bytes()),
        Err(failure) => failed(&failure),
    }
}

fn listed(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "No folder is trusted. `dragoman trust FOLDER` trusts one.".to_owned();
    }
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join("\n")
}
