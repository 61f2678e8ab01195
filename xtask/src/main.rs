//! Chores of the repository: `cargo run -p dragoman-xtask -- tidy`, `circles`, `catalog`, `notices` or `site`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who runs it")]

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            for (name, numbers) in xtask::circles::table(&xtask::tidy::root()) {
                println!("import circles of {name}: {numbers}");
            }
            let problems = xtask::tidy::problems();
            for problem in &problems {
                println!("{problem}");
            }
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Some("circles") => {
            print!("{}", xtask::circles::describe(&xtask::tidy::root()));
            ExitCode::SUCCESS
        }
        Some("catalog") => exit_code(xtask::catalog::make(std::env::args().nth(2).as_deref())),
        Some("notices") => match (std::env::args().nth(2), std::env::args().nth(3)) {
            (Some(target), Some(folder)) => exit_code(xtask::notices::write(&target, folder.as_ref())),
            _ => usage(),
        },
        Some("build-cost") => build_cost(std::env::args().nth(2).as_deref()),
        Some("site") => {
            let folder = std::env::args().nth(2).unwrap_or_else(|| "target/site".to_owned());
            let written = xtask::site::write(&xtask::tidy::root(), folder.as_ref());
            exit_code(written.map(|count| println!("{count} pages: {folder}/index.html")))
        }
        _ => usage(),
    }
}

/// Prints what `scripts/build-cost` measured, with budgets and contributors.
fn build_cost(folder: Option<&str>) -> ExitCode {
    let Some(folder) = folder.map(std::path::Path::new) else { return usage() };
    let root = xtask::tidy::root();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut figures = read(folder.join("figures.txt"));
    match xtask::budgets::count_crates(&root) {
        Ok(counts) => {
            for (feature, names) in counts {
                figures.push_str(&format!("{feature} crates {}\n", names.len()));
            }
        }
        Err(error) => return exit_code(Err(error)),
    }
    let (table, is_kept) = xtask::budgets::compare(&read(root.join("xtask/budgets.txt")), &figures);
    println!("{table}");
    for (name, bytes) in xtask::budgets::largest(&read(folder.join("symbols.txt")), 15) {
        println!("{:>8} kB  {name}", bytes / 1000);
    }
    for (name, tenths) in xtask::budgets::slowest(&read(folder.join("timings.html")), 15) {
        println!("{:>8} s   {name}", tenths as f64 / 10.0);
    }
    if is_kept { ExitCode::SUCCESS } else { exit_code(Err("A budget is broken.".to_owned())) }
}

fn exit_code(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: cargo run -p dragoman-xtask -- tidy\n       cargo run -p dragoman-xtask -- circles\n       cargo run -p dragoman-xtask -- catalog [PUBLIC-DATA.json]\n       cargo run -p dragoman-xtask -- notices TARGET FOLDER\n       cargo run -p dragoman-xtask -- site [FOLDER]\n       cargo run -p dragoman-xtask -- build-cost FOLDER"
    );
    ExitCode::from(2)
}
