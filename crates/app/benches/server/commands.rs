//! What the sandbox, the look for leftovers and undo add to one command, in workspaces of 5,000 and of 50,000 files that are
//! git repositories: the same calls with and without the sandbox, in turn.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use testkit::FakeModel;

use crate::program::{Home, Server, config, dragoman};
use crate::table::Table;
use crate::{at, is_finished};

const CALLS: usize = 100;
const FILES_PER_FOLDER: usize = 50;

/// The commands by their name in a prompt: one that changes nothing, one that changes a file, one that commits.
pub(crate) fn line(name: &str, number: usize) -> String {
    match name {
        "write" => format!("echo {number} > notes.txt"),
        // Not a command: the tool that writes.
        "write-file" => String::new(),
        "commit" => format!("git commit -q --allow-empty -m {number}"),
        _ => "true".to_owned(),
    }
}

pub(crate) fn rows(table: &mut Table, fake: &FakeModel) {
    for (files, target) in [(5_000, 10.0), (50_000, f64::INFINITY)] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a workspace");
        make(folder.path(), files);
        for name in ["look", "write", "commit"] {
            let mut added = measure(fake, folder.path(), name);
            added.sort_by(f64::total_cmp);
            for (part, percent) in [(0.5, "p50"), (0.95, "p95")] {
                let what = format!("a command ({name}), {files} files: added, {percent}");
                let target = if percent == "p95" && name == "look" { target } else { f64::INFINITY };
                table.row(&what, "ms", at(&added, part), target);
            }
        }
    }
}

/// The time of each contained call beyond the same call without a sandbox. A prompt is one call, so that both servers meet the
/// same machine.
fn measure(fake: &FakeModel, workspace: &Path, name: &str) -> Vec<f64> {
    let (home, open_home) = (Home::new(), Home::new());
    let mut contained = start(fake, &home, workspace, "on");
    let mut open = start(fake, &open_home, workspace, "off");
    let mut added = Vec::new();
    for number in 0..CALLS {
        let with = call(&mut contained, name, number);
        let without = call(&mut open, name, number + CALLS);
        // The first calls read the workspace for the first time.
        if number >= 5 {
            added.push(with - without);
        }
    }
    added
}

fn start(fake: &FakeModel, home: &Home, workspace: &Path, sandbox: &str) -> Server {
    let mut settings = config(fake);
    settings["sandbox"] = json!(sandbox);
    settings["toolCall"] = json!({"approval": {"byDefault": "allow"}});
    let mut server = Server::start_with(&dragoman(), home, fake, &settings);
    server.initialize_in(workspace);
    server
}

pub(crate) fn call(server: &mut Server, name: &str, number: usize) -> f64 {
    let since = Instant::now();
    server.prompt(&format!("chat-{number}"), &format!("command {name} {number}"));
    let mut result = Value::Null;
    loop {
        let (_, message) = server.next();
        if message["params"]["content"]["type"] == "toolCalled" {
            result = message["params"]["content"].clone();
        }
        if is_finished(&message) {
            break;
        }
    }
    assert_eq!(result["error"], false, "{result}");
    since.elapsed().as_secs_f64() * 1000.0
}

pub(crate) fn make(root: &Path, files: usize) {
    for number in 0..files.div_ceil(FILES_PER_FOLDER) {
        let folder = root.join(format!("module_{}/part_{number}", number % 20));
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in 0..FILES_PER_FOLDER {
            std::fs::write(folder.join(format!("file_{file}.rs")), format!("fn f{file}() {{}}\n"))
                .expect("a file");
        }
    }
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    for arguments in [vec!["init", "-q"], vec!["add", "-A"], vec!["commit", "-qm", "first"]] {
        let status = Command::new("git").args(identity).args(arguments).current_dir(root).status();
        assert!(status.expect("git").success());
    }
    for (key, value) in [("user.name", "a"), ("user.email", "a@example.org")] {
        let status = Command::new("git").args(["config", key, value]).current_dir(root).status();
        assert!(status.expect("git").success());
    }
}
