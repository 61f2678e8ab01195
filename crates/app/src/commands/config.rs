//! `dragoman config show`.

use std::process::ExitCode;

use config::{Environment, Inputs};

pub fn show(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let inputs = Inputs { workspace_roots: crate::house::here(), ..Inputs::default() };
    let resolved = config::resolve(&environment, &inputs);
    if json {
        println!("{:#}", resolved.show_json());
    } else {
        print!("{}", resolved.show_text());
        for notice in &resolved.notices {
            eprintln!("note: {}", notice.text);
        }
    }
    ExitCode::SUCCESS
}
