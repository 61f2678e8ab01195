//! `dragoman trust`: which folders' own configuration takes full effect.

use std::path::PathBuf;
use std::process::ExitCode;

use config::{Environment, trust};

use super::failed;

pub fn run(folder: Option<PathBuf>, revoke: bool, list: bool) -> ExitCode {
    let environment = Environment::from_process();
    if list {
        return match trust::list(&environment) {
            Ok(folders) => {
                for folder in folders {
                    println!("{}", folder.display());
                }
                ExitCode::SUCCESS
            }
            Err(failure) => failed(&failure),
        };
    }
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    if revoke {
        return match trust::revoke(&environment, &folder) {
            Ok(true) => {
                println!("{} is no longer trusted.", folder.display());
                ExitCode::SUCCESS
            }
            Ok(false) => {
                println!("{} was not trusted.", folder.display());
                ExitCode::SUCCESS
            }
            Err(failure) => failed(&failure),
        };
    }
    match trust::grant(&environment, &folder) {
        Ok(settings) if settings.is_empty() => {
            println!("{} is trusted. It sets nothing that needed it.", folder.display());
            ExitCode::SUCCESS
        }
        Ok(settings) => {
            println!("{} is trusted. These settings of it now take effect:", folder.display());
            for setting in settings {
                println!("  {setting}");
            }
            println!("If one of them changes, you will be asked again.");
            ExitCode::SUCCESS
        }
        Err(failure) => failed(&failure),
    }
}
