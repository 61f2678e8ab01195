//! Shell commands as they run: output, time, stopping, jobs, the plan behavior, and paths outside.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use domain::tool_call::Details;
use serde_json::json;
use tools::Options;

use crate::kit::{Bench, text};

#[tokio::test]
async fn output_and_exit_codes() {
    let bench = Bench::new();
    bench.write("sub/a.txt", "");
    let rows = [
        (json!({"command": "echo out; echo err >&2"}), false, "out\nerr"),
        (json!({"command": "true"}), false, "(no output)"),
        (json!({"command": "echo no; exit 3"}), true, "no\n[exit code 3]"),
        (json!({"command": "ls", "working_directory": "sub"}), false, "a.txt"),
        (json!({"command": "kill -9 $$"}), true, "(no output)\n[ended by signal 9]"),
        (json!({"command": "cat"}), false, "(no output)"),
        (json!({"command": "echo $GIT_PAGER $GIT_TERMINAL_PROMPT"}), false, "cat 0"),
        (json!({"command": "x", "working_directory": "nowhere"}), true, "The working directory"),
    ];
    for (input, error, expected) in rows {
        let result = bench.run("shell_command", input.clone()).await;
        assert!(text(&result).starts_with(expected), "{input}: {}", text(&result));
        assert_eq!(result.error, error, "{input}");
    }
    assert!(bench.port.output.lock().unwrap().contains("out\nerr\n"), "output is shown while it runs");
}

#[tokio::test]
async fn long_output_keeps_both_ends() {
    let bench = Bench::new();
    let told = bench.good("shell_command", json!({"command": "echo first; seq 100000; echo last"})).await;
    assert!(told.starts_with("first\n1\n") && told.ends_with("100000\nlast"), "{}", &told[..40]);
    assert!(told.contains("bytes left out") && told.len() < 60_000, "{}", told.len());
}

#[tokio::test]
async fn a_call_can_be_stopped() {
    let bench = Bench::new();
    let cancel = bench.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let told = bench.bad("shell_command", json!({"command": "echo begun; sleep 3600"})).await;
    assert!(told.contains("begun") && told.contains("stopped"), "{told}");
}

#[tokio::test]
async fn what_a_line_needs() {
    let mut bench = Bench::new();
    bench.scope.remembered = Arc::new(["cargo test …".to_owned()]);
    bench.write("a.txt", "");
    bench.write("sub/b.txt", "");
    let base = bench.folder.path().canonicalize().unwrap();
    std::fs::write(base.join("secret"), "").unwrap();
    symlink(base.join("secret"), bench.root.join("link")).unwrap();
    symlink(&base, bench.root.join("up")).unwrap();
    // line, harmless, changes, must be asked, names something outside
    let rows = [
        ("cat a.txt", true, false, false, false),
        ("git status", true, false, false, false),
        ("cargo test", true, true, false, false),
        ("cargo test | tail -5", true, true, false, false),
        ("cargo build", false, true, false, false),
        ("cargo test && cargo build", false, true, false, false),
        ("cargo test > out", false, true, true, false),
        ("cargo test $(cat a.txt)", false, true, true, false),
        ("cat /etc/passwd", false, true, false, true),
        ("cat ../secret", false, true, false, true),
        ("cat sub/../../secret", false, true, false, true),
        ("cat link", false, true, false, true),
        ("cat up/secret", false, true, false, true),
        ("cat < ../secret", false, true, false, true),
        ("cd .. && cat secret", false, true, false, true),
        ("cd up && cat secret", false, true, false, true),
        ("cd sub && cat b.txt", true, false, false, false),
        ("cd sub && cat ../a.txt", false, true, false, true),
        ("cd nowhere; cat ../secret", false, true, false, true),
        ("cd sub && ./run.sh", false, true, true, false),
        ("cd", false, true, true, false),
        ("cd -", false, true, true, false),
        ("cp a.txt .git/hooks/pre-commit", false, true, true, false),
        ("cd .git && cp x hooks", false, true, true, false),
        ("cat .git/config", true, false, false, false),
        ("cat ~/.ssh/id", false, true, true, false),
        ("git -C /etc status", false, true, false, true),
        ("grep -r --include=/etc/passwd x .", false, true, false, true),
        ("cp a.txt /tmp/x", false, true, false, true),
        ("make --directory=../x", false, true, true, true),
        ("gcc -I/usr/include a.c", false, true, false, true),
        ("ls /dev/null", true, false, false, false),
        ("git diff main..HEAD", true, false, false, false),
        ("curl https://example.com/x", false, true, false, false),
    ];
    for (line, harmless, changes, asked, outside) in rows {
        let review = bench.review("shell_command", json!({"command": line})).unwrap();
        let found = (review.harmless, review.changes, review.must_ask.is_some(), !review.outside.is_empty());
        assert_eq!(found, (harmless, changes, asked, outside), "{line}: {review:?}");
    }
    let review = bench.review("shell_command", json!({"command": "cargo test && git push"})).unwrap();
    assert_eq!(review.keys, ["cargo test …", "git push"]);
    let Some(Details::Shell { commands }) = review.details else { panic!() };
    assert_eq!(commands.iter().map(|part| part.remembered).collect::<Vec<_>>(), [true, false]);
    let review = bench.review("shell_command", json!({"command": "ls", "working_directory": ".."})).unwrap();
    assert_eq!(review.outside, [base]);
}

#[tokio::test]
async fn planning_runs_only_what_reads() {
    let mut bench = Bench::new();
    bench.write("a.txt", "text\n");
    bench.scope.read_only = true;
    assert_eq!(bench.good("shell_command", json!({"command": "cat a.txt"})).await, "text");
    for line in ["touch b", "cat a.txt > b", "cat $(ls)", "sh -c 'cat a.txt'", "cat /etc/passwd"] {
        bench.bad("shell_command", json!({"command": line})).await;
    }
    assert!(!bench.root.join("b").exists());
}

#[tokio::test]
async fn outside_is_checked_again_when_it_runs() {
    let bench = Bench::new();
    bench.write("a.txt", "");
    let input = json!({"command": "cat a.txt"});
    assert!(bench.review("shell_command", input.clone()).unwrap().harmless);
    std::fs::remove_file(bench.root.join("a.txt")).unwrap();
    symlink("/etc/passwd", bench.root.join("a.txt")).unwrap();
    assert!(bench.bad("shell_command", input).await.contains("outside the workspace"));
}

#[tokio::test]
async fn a_repository_cannot_make_git_status_run_its_programs() {
    let bench = Bench::new();
    let mark = bench.root.join("ran");
    let hook = bench.write("hook.sh", format!("#!/bin/sh\ntouch {}\n", mark.display()));
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let set = format!("git init -q . && git config core.fsmonitor {} && git status", hook.display());
    bench.run("shell_command", json!({"command": set})).await;
    assert!(mark.exists(), "git honors core.fsmonitor, else this test shows nothing");
    std::fs::remove_file(&mark).unwrap();
    bench.good("shell_command", json!({"command": "git status"})).await;
    assert!(!mark.exists());
}

#[tokio::test]
async fn an_approved_line_goes_only_where_it_led_when_it_was_approved() {
    let mut bench = Bench::new();
    bench.outside_allowed = true;
    symlink("/etc/hosts", bench.root.join("link")).unwrap();
    let input = json!({"command": "cat link"});
    assert!(!bench.review("shell_command", input.clone()).unwrap().outside.is_empty());
    std::fs::remove_file(bench.root.join("link")).unwrap();
    symlink("/etc/passwd", bench.root.join("link")).unwrap();
    assert!(bench.bad("shell_command", input.clone()).await.contains("/etc/passwd is outside"));
    bench.review("shell_command", input.clone()).unwrap();
    bench.good("shell_command", input).await;
}

#[tokio::test]
async fn no_spelling_reads_a_file_outside_unasked() {
    let mut bench = Bench::new();
    let base = bench.folder.path().canonicalize().unwrap();
    std::fs::write(base.join("secret"), "CANARY\n").unwrap();
    std::fs::create_dir_all(base.join("far/deep")).unwrap();
    std::fs::write(base.join("far/e"), "CANARY\n").unwrap();
    for folder in ["a", "http:", "one", "two", "g"] {
        std::fs::create_dir(bench.root.join(folder)).unwrap();
    }
    for (link, target) in [
        ("-e", "../secret"),
        ("--", "../secret"),
        ("a/k", "../../secret"),
        ("a/x", "../../far/deep"),
        ("a/e", "../../far/e"),
        ("http:/k", "../../secret"),
        ("LINK", "../secret"),
        ("k=v", "../secret"),
        ("one/f", "../../secret"),
        ("a:b", "../secret"),
        ("g/h", "../../secret"),
    ] {
        symlink(target, bench.root.join(link)).unwrap();
    }
    bench.write("two/f", "mine\n");
    let lines = [
        "cat -- -e",
        "cat -e",
        "head -n 1 -- -e",
        "cat -- --",
        "cd a && cat < k",
        "cat < a/k",
        "(cd a; cat < k)",
        "cd a/x/.. && cat e",
        "cd a/x && cd .. && cat e",
        "cat http://k",
        "cat http:/k",
        "cat ./http://k",
        "rg -f LINK .",
        "rg -fLINK .",
        "rg -nfLINK .",
        "grep -rn . LINK",
        "cat k=v",
        "cat a:b",
        "diff one two",
        "diff -u one two",
        "git -C g diff --no-index h /dev/null",
        "cd g && git diff --no-index -- h /dev/null",
        "git grep -fLINK",
        "sed -n 1p LINK",
        "awk 1 LINK",
        "wc -l LINK",
        "ls -LR a",
        "cd ./a && sort < ./k",
    ];
    for line in lines {
        for read_only in [false, true] {
            bench.scope.read_only = read_only;
            let input = json!({"command": line});
            let review = bench.review("shell_command", input.clone()).unwrap();
            assert!(!review.harmless, "{line}: {review:?}");
            if read_only {
                let result = bench.run("shell_command", input).await;
                let text = crate::kit::text(&result);
                assert!(!text.contains("CANARY"), "{line}: {text}");
            }
        }
    }
    println!("figure: {} hostile lines that lead out of the workspace, 0 run unasked", lines.len());
}

#[tokio::test]
async fn another_shell_and_withheld_variables() {
    let options = Options {
        shell: Some(vec!["sh".to_owned(), "-c".to_owned()]),
        withheld_environment: vec!["HOME".to_owned()],
        ..Options::default()
    };
    let bench = Bench::with(options);
    assert!(bench.review("shell_command", json!({"command": "ls"})).unwrap().must_ask.is_some());
    assert_eq!(bench.good("shell_command", json!({"command": "echo \"[$HOME]\""})).await, "[]");
}
