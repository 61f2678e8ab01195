//! `dragoman update`: how this copy was installed, and the command that brings a newer one. It changes nothing: a
//! program that overwrites itself behind a package manager breaks the package.

use std::process::ExitCode;

use config::Environment;
use serde_json::json;

use crate::installation::{self, Installation};

pub(crate) fn run(as_json: bool) -> ExitCode {
    let installation = Installation::detect(&Environment::from_process());
    let text = match as_json {
        true => format!(
            "{:#}\n",
            json!({
                "version": installation::VERSION,
                "program": installation.program,
                "installedBy": installation.method,
                "command": installation.update_command,
            })
        ),
        false => {
            let program = domain::visible_line(&installation.program.display().to_string()).into_owned();
            let head =
                format!("Dragoman {} ({program}) {}.\n", installation::VERSION, installation.description());
            match &installation.update_command {
                Some(command) => format!("{head}A newer one comes with:\n\n  {command}\n"),
                None => format!("{head}Replace the file by a newer one in the same way.\n"),
            }
        }
    };
    super::print_bytes(text.as_bytes())
}

/// Whether the command line is `dragoman --version --json`, in either order.
pub(crate) fn wants_version() -> bool {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let has = |names: &[&str]| arguments.iter().any(|it| names.iter().any(|name| it == *name));
    arguments.len() == 2 && has(&["--version", "-V"]) && has(&["--json"])
}

/// `dragoman --version --json`. The members are a promise to scripts.
pub(crate) fn print_version() -> ExitCode {
    let installation = Installation::detect(&Environment::from_process());
    let all = [
        ("interfaces", cfg!(feature = "interfaces")),
        ("local", cfg!(feature = "local")),
        ("postgres", cfg!(feature = "postgres")),
        ("serve", cfg!(feature = "serve")),
        ("studio", cfg!(feature = "studio")),
        ("telemetry", cfg!(feature = "telemetry")),
    ];
    let features: Vec<&str> = all.iter().filter(|(_, is_built)| *is_built).map(|(name, _)| *name).collect();
    let version = json!({
        "name": "dragoman",
        "version": installation::VERSION,
        "commit": option_env!("DRAGOMAN_COMMIT"),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "libc": if cfg!(target_env = "musl") { Some("musl") } else if cfg!(target_env = "gnu") { Some("gnu") } else { None },
        "features": features,
        "program": installation.program,
        "installedBy": installation.method,
    });
    super::print_bytes(format!("{version:#}\n").as_bytes())
}
