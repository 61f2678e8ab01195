//! `dragoman config show`.

use std::process::ExitCode;

use config::{Environment, Inputs};

pub(crate) fn show(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let inputs = Inputs { workspace_roots: crate::workspaces::current_folder(), ..Inputs::default() };
    let resolved = config::resolve(&environment, &inputs);
    let text = if json { format!("{:#}\n", resolved.show_json()) } else { resolved.show_text() };
    super::print_bytes(text.as_bytes())
}
