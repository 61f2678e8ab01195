//! Listing, finding and searching, and moving what was found.

use std::os::unix::fs::symlink;

use serde_json::json;
use tools::{Limits, Options};

use crate::kit::Bench;

fn project() -> Bench {
    let mut limits = Limits::default();
    (limits.tree_entries, limits.matches, limits.paths) = (12, 4, 3);
    let bench = Bench::with(Options { limits, ..Options::default() });
    bench.write(".gitignore", "target/\n*.log\n");
    bench.write(".git/config", "needle\n");
    bench.write("target/out.rs", "needle\n");
    bench.write("trace.log", "needle\n");
    bench.write("src/main.rs", "fn main() {\n    needle();\n}\n");
    bench.write("src/deep/er/lib.rs", "// Needle\nfn needle() {}\n");
    bench.write("binary.bin", b"needle\0\x01");
    bench.write("README.md", "no match (here\n");
    let secret = bench.folder.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("key.rs"), "needle\n").unwrap();
    symlink(&secret, bench.root.join("linked")).unwrap();
    bench
}

#[tokio::test]
async fn a_tree() {
    let bench = project();
    let root = bench.root.display();
    let told = bench.good("directory_tree", json!({})).await;
    assert_eq!(
        told,
        format!(
            "{root}\n .gitignore\n README.md\n binary.bin\n linked\n src/\n  deep/\n   er/\n    lib.rs\n  main.rs\n\n\
             3 directories, 6 files"
        )
    );
    let told = bench.good("directory_tree", json!({"path": "src", "max_depth": "1"})).await;
    assert_eq!(told, format!("{root}/src\n deep/\n main.rs\n\n1 directories, 1 files"));
    for number in 0..20 {
        bench.write(&format!("src/deep/{number:02}"), "");
    }
    let told = bench.good("directory_tree", json!({"path": "."})).await;
    assert!(told.contains("\n  deep/\n  main.rs\n[22 or more deeper entries left out"), "{told}");
    assert!(told.ends_with("2 directories, 5 files"), "{told}");
    assert!(bench.bad("directory_tree", json!({"path": "README.md"})).await.contains("not a folder"));
}

#[tokio::test]
async fn finding_files() {
    let bench = project();
    let root = bench.root.display().to_string();
    let rows = [
        (json!({"pattern": "*.rs"}), "src/deep/er/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "src/*.rs"}), "src/main.rs"),
        (json!({"pattern": "**/*.{md,bin}"}), "README.md\nbinary.bin"),
        (json!({"pattern": format!("{root}/src/**/*.rs")}), "src/deep/er/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "*.rs", "path": "src/deep"}), "src/deep/er/lib.rs"),
        (json!({"pattern": "*"}), ".gitignore\nREADME.md\nbinary.bin\n[only the first 3;"),
        (json!({"pattern": "*.nothing"}), "No file matches."),
    ];
    for (input, start) in rows {
        let told = bench.good("glob", input.clone()).await;
        assert!(told.starts_with(start), "{input}: {told}");
    }
    assert!(bench.review("glob", json!({"pattern": "a{"})).unwrap_err().contains("not a pattern"));
    let outside = bench.review("glob", json!({"pattern": "/etc/*.conf"})).unwrap();
    assert!(!outside.harmless && outside.outside.len() == 1);
}

#[tokio::test]
async fn searching_files() {
    let bench = project();
    let rows = [
        (
            json!({"pattern": "needle"}),
            "src/deep/er/lib.rs\n2: fn needle() {}\n\nsrc/main.rs\n2:     needle();",
        ),
        (
            json!({"pattern": "(?i)needle", "path": "src/deep"}),
            "src/deep/er/lib.rs\n1: // Needle\n2: fn needle() {}",
        ),
        (json!({"pattern": "needle", "files_only": true}), "src/deep/er/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "needle", "include": "m*.rs"}), "src/main.rs\n2:     needle();"),
        (
            json!({"pattern": "needle", "include": "m*.rs", "context": 1}),
            "src/main.rs\n1- fn main() {\n2:     needle();\n3- }",
        ),
        (
            json!({"pattern": "match (here"}),
            "[the pattern is no regular expression; searched for as it stands]\nREADME.md\n1: no match (here",
        ),
        (json!({"pattern": "main\\(\\) \\{\\n +needle"}), "src/main.rs\n1: fn main() {\n2:     needle();"),
        (json!({"pattern": "needle", "path": "src/main.rs"}), "src/main.rs\n2:     needle();"),
        (json!({"pattern": "absent"}), "Nothing matches. Mind that what git ignores is left out."),
        (
            json!({"pattern": "README.md"}),
            "Nothing matches. Mind that what git ignores is left out. README.md is a file: read_file shows it.",
        ),
    ];
    for (input, expected) in rows {
        assert_eq!(bench.good("grep", input.clone()).await, expected, "{input}");
    }
    bench.write("many", "x\n".repeat(20));
    let told = bench.good("grep", json!({"pattern": "x", "path": "many"})).await;
    assert!(told.ends_with("4: x\n\n[there may be more; narrow the search or raise max_results]"), "{told}");
    assert!(
        bench.bad("grep", json!({"pattern": "x", "path": "nowhere"})).await.contains("There is no nowhere")
    );
    bench.cancel.cancel();
    assert!(bench.bad("grep", json!({"pattern": "x"})).await.contains("stopped"));
}

/// Several threads search, and the outcome is that of one: in the order of names, cut at the same place.
#[tokio::test]
async fn many_files_are_searched_in_order() {
    let bench = Bench::new();
    for number in 0..700 {
        let size = if number % 50 == 0 { 20_000 } else { 1 };
        let text = format!("{}needle {number}\nneedle again\n", "line\n".repeat(size));
        bench.write(&format!("{}/{number:03}.txt", number % 5), text);
    }
    let told = bench
        .good("grep", json!({"pattern": "needle [0-9]+", "files_only": true, "max_results": 1000}))
        .await;
    let mut expected: Vec<String> =
        (0..700).map(|number| format!("{}/{number:03}.txt", number % 5)).collect();
    expected.sort();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    for most in [1, 2, 3, 63, 64, 65, 128, 129, 501] {
        let told = bench.good("grep", json!({"pattern": "needle", "max_results": most})).await;
        let count = told.lines().filter(|line| line.contains(": needle")).count();
        assert!(told.contains("[there may be more"), "{most}");
        assert_eq!(count, most);
        let files: Vec<&str> = told.lines().filter(|line| line.ends_with(".txt")).collect();
        assert_eq!(files, expected[..most.div_ceil(2)], "{most}");
    }
    let told = bench.good("grep", json!({"pattern": "needle 69[0-9]"})).await;
    assert_eq!(told.lines().filter(|line| line.contains(": needle")).count(), 10);
    assert!(!told.contains("there may be more"), "{told}");
}

#[tokio::test]
async fn moving() {
    let bench = project();
    let go = |from: &str, to: &str| json!({"source": from, "destination": to});
    let review = bench.review("move_file", go("README.md", "docs/readme.md")).unwrap();
    assert_eq!(review.summary, "Moving README.md to docs/readme.md");
    assert!(review.changes && review.locations.len() == 2);
    bench.good("move_file", go("README.md", "docs/readme.md")).await;
    assert!(bench.root.join("docs/readme.md").exists() && !bench.root.join("README.md").exists());
    bench.good("move_file", go("linked", "renamed")).await;
    assert!(bench.root.join("renamed").is_symlink(), "the link moves, not what it leads to");
    assert!(bench.folder.path().join("secret").exists());
    for (from, to, part) in [
        ("src/main.rs", "docs/readme.md", "exists already"),
        ("nothing", "x", "There is no nothing"),
        ("src/main.rs", "../x", "outside"),
        ("src", "src/deep/x", "cannot be moved"),
    ] {
        assert!(bench.bad("move_file", go(from, to)).await.contains(part), "{from} to {to}");
    }
    assert!(
        bench.review("move_file", go("src/main.rs", ".git/hooks/pre-commit")).unwrap().must_ask.is_some()
    );
}

#[tokio::test]
async fn an_ignore_file_that_never_ends_does_not_stop_a_walk() {
    let bench = Bench::new();
    bench.write("ok/needle.txt", "needle");
    bench.write("device/needle.txt", "needle");
    bench.write("pipe/needle.txt", "needle");
    std::os::unix::fs::symlink("/dev/zero", bench.root.join("device/.gitignore")).unwrap();
    let pipe = bench.root.join("pipe/.ignore");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let found = bench.good("grep", json!({"pattern": "needle"})).await;
    assert!(found.contains("ok/needle.txt"), "{found}");
    std::os::unix::fs::symlink("/dev/zero", bench.root.join(".gitignore")).unwrap();
    assert!(bench.good("glob", json!({"pattern": "*.txt"})).await.contains("ok/needle.txt"));
}

#[tokio::test]
async fn a_search_leaves_out_what_no_tool_may_read() {
    let mut bench = Bench::new();
    bench.write(".env", "KEY=needle");
    bench.write("sub/.env", "KEY=needle");
    bench.write("src/a.rs", "needle");
    bench.scope.forbidden_paths = std::sync::Arc::new([r"(.*/)?\.env".to_owned()]);
    for input in [json!({"pattern": "needle"}), json!({"pattern": "needle", "path": "sub"})] {
        let found = bench.good("grep", input).await;
        assert!(!found.contains("KEY"), "{found}");
    }
    assert!(bench.good("grep", json!({"pattern": "needle"})).await.contains("src/a.rs"));
}
