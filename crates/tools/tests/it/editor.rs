//! What an editor does in place of our disk and shell, and what happens where it cannot.

use std::time::Duration;

use domain::{HostCall, HostReply, Part};
use serde_json::json;
use tools::Options;

use crate::kit::{Bench, text};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nxxxxxxxx";

#[tokio::test]
async fn names_of_files_come_from_the_editor() {
    let bench = Bench::new();
    bench.write("on_disk.rs", "");
    bench.port.can(|abilities| abilities.glob = true);
    let glob = |input: serde_json::Value| async { bench.good("glob", input).await };
    let reply = |paths: &[&str]| {
        let paths = paths.iter().map(std::path::PathBuf::from).collect();
        bench.port.replies.lock().unwrap().push(HostReply::Paths(paths));
    };
    // Whatever it says, nothing outside the workspace and nothing that does not match is shown.
    let absolute = bench.root.join("src/b.rs");
    reply(&["z.rs", "/etc/passwd.rs", "../up.rs", "notes.txt", absolute.to_str().unwrap(), "z.rs"]);
    assert_eq!(glob(json!({"pattern": "*.rs"})).await, "src/b.rs\nz.rs");
    reply(&["src/deep/c.rs"]);
    assert_eq!(glob(json!({"pattern": "*.rs", "path": "src"})).await, "src/deep/c.rs");
    assert_eq!(
        *bench.port.called.lock().unwrap(),
        ["**/*.rs", "src/**/*.rs"].map(|pattern| HostCall::Glob { pattern: pattern.into() })
    );
    // It cannot tell: the disk is looked at.
    assert_eq!(glob(json!({"pattern": "*.rs"})).await, "on_disk.rs");
    std::os::unix::fs::symlink("/etc", bench.root.join("link")).unwrap();
    reply(&["link/passwd"]);
    assert!(glob(json!({"pattern": "passwd"})).await.contains("No file"), "a link out of the workspace");
}

#[tokio::test]
async fn bytes_and_metadata_come_from_the_editor() {
    let bench = Bench::new();
    bench.write("a.png", "not an image on the disk");
    bench.write("b.txt", "text");
    bench.port.can(|abilities| (abilities.stat, abilities.read_bytes) = (true, true));
    let there = HostReply::Stat { exists: true, directory: false };
    *bench.port.replies.lock().unwrap() = vec![HostReply::Bytes(PNG.to_vec()), there.clone()];
    let result = bench.run("read_file", json!({"path": "a.png"})).await;
    assert!(matches!(&result.parts[..], [Part::Image { mime, .. }] if mime == "image/png"), "{result:?}");
    let path = bench.root.join("a.png");
    assert_eq!(
        *bench.port.called.lock().unwrap(),
        [HostCall::Stat { path: path.clone() }, HostCall::ReadBytes { path }]
    );
    for (exists, directory, word) in [(false, false, "There is no"), (true, true, "is a folder")] {
        bench.port.replies.lock().unwrap().push(HostReply::Stat { exists, directory });
        let told = bench.bad("read_file", json!({"path": "b.txt"})).await;
        assert!(told.contains(word), "{told}");
    }
    // It cannot tell: the disk is looked at.
    assert_eq!(bench.good("read_file", json!({"path": "b.txt"})).await, "1\ttext");
    assert_eq!(bench.good("read_file", json!({"path": "a.png"})).await, "1\tnot an image on the disk");
}

/// A part of a file is asked for as a part, with one line more, which tells whether there are others.
#[tokio::test]
async fn lines_come_from_the_editor() {
    let bench = Bench::new();
    bench.write("a.txt", "on the disk\n");
    bench.port.can(|abilities| abilities.read_lines = true);
    let path = bench.root.join("a.txt");
    for (reply, expected) in [
        ("three\nfour\nfive\n", "3\tthree\n4\tfour\n[lines 3-4; read on with line_offset 4]"),
        ("three\n", "3\tthree\n"),
        ("", "(The file has fewer lines.)"),
    ] {
        bench.port.replies.lock().unwrap().push(HostReply::Text(reply.into()));
        let input = json!({"path": "a.txt", "line_offset": 2, "limit": 2});
        assert_eq!(bench.good("read_file", input).await, expected);
        let asked = bench.port.called.lock().unwrap().pop();
        assert_eq!(asked, Some(HostCall::ReadLines { path: path.clone(), skip: 2, limit: 3 }));
    }
    // It cannot tell, or the whole file is read: the disk is looked at.
    for input in [json!({"path": "a.txt", "limit": 1}), json!({"path": "a.txt"})] {
        assert_eq!(bench.good("read_file", input).await, "1\ton the disk\n");
    }
}

#[tokio::test]
async fn commands_run_in_a_terminal_of_the_editor() {
    let withheld_environment = vec!["SECRET_KEY".to_owned()];
    let bench = Bench::with(Options { withheld_environment, ..Options::default() });
    bench.port.can(|abilities| abilities.terminal = true);
    let end = |output: &str, truncated, exit_code| HostReply::Terminal {
        output: output.to_owned(),
        truncated,
        exit_code,
    };
    for (reply, error, expected) in [
        (end("built\n", false, Some(0)), false, "built"),
        (end("", true, Some(0)), false, "[the beginning was left out]\n(no output)"),
        (end("no rule\n", false, Some(2)), true, "no rule\n[exit code 2]"),
        (end("", false, None), true, "(no output)\n[ended by a signal or after 7000 ms"),
    ] {
        bench.port.replies.lock().unwrap().push(reply);
        let result = bench.run("shell_command", json!({"command": "make -j", "timeout": 7000})).await;
        assert_eq!(result.error, error);
        assert!(text(&result).starts_with(expected), "{}", text(&result));
    }
    let told = bench.bad("shell_command", json!({"command": "touch made"})).await;
    assert!(told.contains("terminal of the editor"), "{told}");
    assert!(!bench.root.join("made").exists(), "it is not run a second time elsewhere");
    let called = bench.port.called.lock().unwrap();
    let HostCall::Terminal(terminal) = &called[0] else { panic!("{called:?}") };
    assert_eq!(
        (terminal.command.as_str(), terminal.arguments.as_slice()),
        ("bash", &["-c".to_owned(), "make -j".to_owned()][..])
    );
    assert_eq!((&terminal.cwd, terminal.time), (&bench.root, Duration::from_secs(7)));
    for (name, value) in [("SECRET_KEY", ""), ("CDPATH", ""), ("GIT_PAGER", "cat")] {
        assert!(terminal.environment.contains(&(name.to_owned(), value.to_owned())), "{name}");
    }
}

#[tokio::test]
async fn a_stopped_call_leaves_the_editor() {
    let bench = Bench::new();
    bench.port.can(|abilities| abilities.terminal = true);
    bench.cancel.cancel();
    assert!(bench.bad("shell_command", json!({"command": "sleep 9"})).await.contains("stopped"));
}

/// An error for each line with BUG.
fn find_bugs(path: &std::path::Path) -> Vec<domain::host::Diagnostic> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let bugs = text.lines().zip(1..).filter(|(line, _)| line.contains("BUG"));
    bugs.map(|(line, number)| {
        let start = domain::host::Position { line: number, character: 1 };
        domain::host::Diagnostic {
            path: path.to_owned(),
            severity: "error".to_owned(),
            source: "test".to_owned(),
            start,
            end: start,
            code: None,
            message: line.trim().to_owned(),
        }
    })
    .collect()
}

#[tokio::test]
async fn new_diagnostics_come_with_the_result_of_a_change_or_not_at_all() {
    let bench = Bench::new();
    bench.write("a.txt", "one\nBUG old\nthree\n");
    *bench.port.finds.lock().unwrap() = Some(find_bugs);
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "original_content": old, "new_content": new});
    // Nobody can tell.
    assert!(!bench.good("edit_file", edit("one", "BUG zero\none")).await.contains("New since"));
    bench.port.can(|abilities| abilities.diagnostics = true);
    // Those that a change only moves are not new.
    let told = bench.good("edit_file", edit("one", "1\nBUG first")).await;
    assert!(told.ends_with("New since this change:\na.txt:3:1 error: BUG first"), "{told}");
    let told = bench.good("edit_file", edit("BUG first", "fixed")).await;
    assert!(!told.contains("New since"), "{told}");
    let told = bench.good("write_file", json!({"path": "b.txt", "content": "BUG second\n"})).await;
    assert!(told.contains("b.txt:1:1 error: BUG second"), "{told}");
    // An editor that does not answer is not waited for.
    bench.port.stalls.store(true, std::sync::atomic::Ordering::Relaxed);
    let since = std::time::Instant::now();
    assert!(!bench.good("edit_file", edit("fixed", "BUG third")).await.contains("New since"));
    assert!(since.elapsed() < std::time::Duration::from_secs(2), "{:?}", since.elapsed());
}
