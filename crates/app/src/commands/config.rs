//! `dragoman config show`.

use std::process::ExitCode;

use config::{Environment, Inputs};

pub fn show(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let inputs = Inputs { workspace_roots: crate::house::here(), ..Inputs::default() };
    let resolved = config::resolve(&environment, &inputs);
    if json {
        return super::print_bytes(format!("{:#}\n", resolved.show_json()).as_bytes());
    } else {
        super::print_bytes(resolved.show_text().as_bytes());
        for notice in &resolved.notices {
            eprintln!("note: {}", notice.text);
        }
    }
    ExitCode::SUCCESS
}
