//! How the throughput of workers grows with their number, in one run: tasks of one repository, each with two requests to a
//! model that takes its time. `cargo bench -p dragoman --bench workers`; `BENCH_TASKS`, `BENCH_MODEL_MILLIS` and `BENCH_WORKERS`
//! (as `1,2,4,8`) change it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its table and has no caller"
)]
#![allow(clippy::disallowed_methods, reason = "it starts programs and reads its scale from the environment")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Answer, FakeModel, PostgresServer};

fn main() {
    let Some(server) = PostgresServer::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let tasks = number("BENCH_TASKS", 24);
    let pause = Duration::from_millis(number("BENCH_MODEL_MILLIS", 1_000) as u64);
    let fake = runtime.block_on(FakeModel::start());
    fake.respond_with(move |request| {
        if request.tool_results().is_empty() {
            let line = json!({"command": "echo line >> work.txt"});
            Answer::new().delay(pause).call("call", "eca__shell_command", line)
        } else {
            Answer::new().delay(pause).say("It is done.")
        }
    });
    let home = tempfile::tempdir().unwrap();
    let repository = home.path().join("shop");
    make_repository(&repository);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{tasks} tasks, two requests of {} ms each, {cores} cores", pause.as_millis());
    println!("{:>8} {:>10} {:>8} {:>8}", "workers", "seconds", "tasks/s", "ratio");
    let mut first = None;
    let numbers = std::env::var("BENCH_WORKERS").unwrap_or_else(|_| "1,2,4,8".to_owned());
    for workers in numbers.split(',').filter_map(|number| number.parse::<usize>().ok()) {
        let database = format!("bench{workers}");
        let config = json!({
            "defaultModel": "fake/m1",
            "providers": {"fake": {"api": "openai-chat", "url": fake.url(), "key": "k", "models": {"m1": {}}}},
            "chat": {"title": false},
            "store": server.database(&database),
            "worker": {"repositories": [home.path()]},
        });
        let program = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_dragoman"));
            command.args(arguments).env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
            command
                .env("HOME", home.path())
                .env("DRAGOMAN_CONFIG", config.to_string())
                .current_dir(home.path());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        for _ in 0..tasks {
            let submitted =
                program(&["submit", "Write a line", "--repo", repository.to_str().unwrap()]).status();
            assert!(submitted.unwrap().success());
        }
        let began = Instant::now();
        let running: Vec<_> =
            (0..workers).map(|_| program(&["worker", "--drain"]).spawn().unwrap()).collect();
        for mut worker in running {
            assert!(worker.wait().unwrap().success());
        }
        let seconds = began.elapsed().as_secs_f64();
        let done = "SELECT count(*) FROM dragoman.tasks WHERE state = 'done'";
        let others = "SELECT string_agg(outcome, ' ') FROM dragoman.tasks WHERE state <> 'done'";
        assert_eq!(server.query(&database, done), tasks.to_string(), "{}", server.query(&database, others));
        let rate = tasks as f64 / seconds;
        let ratio = rate / *first.get_or_insert(rate);
        println!("{workers:>8} {seconds:>10.1} {rate:>8.2} {ratio:>8.2}");
    }
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn make_repository(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    std::fs::write(folder.join("README.md"), "# Shop\n").unwrap();
    for line in ["init --quiet", "add .", "-c user.name=a -c user.email=a@b commit --quiet -m first"] {
        let done = Command::new("git").args(line.split(' ')).current_dir(folder).status();
        assert!(done.unwrap().success());
    }
}
