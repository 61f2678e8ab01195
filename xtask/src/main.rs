//! Chores of the repository: `cargo run -p dragoman-xtask -- tidy` or `catalog`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let problems = xtask::tidy::problems();
            for problem in &problems {
                println!("{problem}");
            }
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Some("catalog") => match xtask::catalog::make(std::env::args().nth(2).as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!(
                "usage: cargo run -p dragoman-xtask -- tidy\n       cargo run -p dragoman-xtask -- catalog [PUBLIC-DATA.json]"
            );
            ExitCode::from(2)
        }
    }
}
