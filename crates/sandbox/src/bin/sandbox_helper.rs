//! The helper as a program of its own, for tests and benchmarks. Users have it inside `dragoman`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == sandbox::HELPER_ARGUMENT).is_none() {
        return ExitCode::FAILURE;
    }
    sandbox::run_helper(arguments)
}
