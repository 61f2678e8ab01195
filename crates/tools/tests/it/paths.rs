//! Where a path leads: `..`, symlinks, `~`, and what happens when one changes between the question and the use.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::kit::Bench;

#[test]
fn paths_outside_are_told() {
    let bench = Bench::new();
    let outside = bench.folder.path().canonicalize().unwrap().join("secret");
    std::fs::write(&outside, "s").unwrap();
    bench.write("a/b.txt", "b");
    symlink("../../secret", bench.root.join("a/link")).unwrap();
    symlink(&outside, bench.root.join("absolute")).unwrap();
    symlink("..", bench.root.join("up")).unwrap();
    symlink("dangling-target", bench.root.join("dangling")).unwrap();
    symlink("loop", bench.root.join("loop")).unwrap();
    let root = bench.root.display();
    let rows = [
        ("a/b.txt", Some(false)),
        ("./a/../a/b.txt", Some(false)),
        ("new/file", Some(false)),
        ("dangling", Some(false)),
        ("up/work/a/b.txt", Some(false)),
        ("../secret", Some(true)),
        ("a/../../secret", Some(true)),
        ("a/link", Some(true)),
        ("absolute", Some(true)),
        ("up/secret", Some(true)),
        ("up/work/../secret", Some(true)),
        ("/etc/passwd", Some(true)),
        ("new/../../secret", Some(true)),
        ("loop", None),
        ("", None),
        ("a\0b", None),
        ("~/x", None),
        (&format!("{root}/a"), Some(false)),
        (&format!("{root}-other/a"), Some(true)),
        (&format!("{root}/../secret"), Some(true)),
    ];
    for (path, outside) in rows {
        let review = bench.review("read_file", json!({"path": path}));
        let found = review.as_ref().ok().map(|review| !review.outside.is_empty());
        assert_eq!(found, outside, "{path:?}: {review:?}");
        if let Ok(review) = review {
            assert_eq!(review.harmless, review.outside.is_empty(), "{path}");
        }
    }
}

#[tokio::test]
async fn an_approval_holds_for_where_the_path_led() {
    let mut bench = Bench::new();
    let base = bench.folder.path().canonicalize().unwrap();
    std::fs::write(base.join("one"), "one").unwrap();
    std::fs::write(base.join("two"), "two").unwrap();
    symlink(base.join("one"), bench.root.join("link")).unwrap();
    let input = json!({"path": "link"});
    assert_eq!(bench.review("read_file", input.clone()).unwrap().outside, [base.join("one")]);
    assert!(bench.bad("read_file", input.clone()).await.contains("outside the workspace"));
    bench.outside_allowed = true;
    assert_eq!(bench.good("read_file", input.clone()).await, "1\tone");
    std::fs::remove_file(bench.root.join("link")).unwrap();
    symlink(base.join("two"), bench.root.join("link")).unwrap();
    assert!(bench.bad("read_file", input).await.contains("leads to"));
}

#[test]
fn a_resolved_path_is_not_opened_through_a_new_link() {
    let bench = Bench::new();
    bench.write("folder/file", "mine");
    std::fs::write(bench.folder.path().join("file"), "other").unwrap();
    let paths = tools::paths::Paths::default();
    let resolved = paths.resolve("folder/file", &bench.scope).unwrap();
    assert!(resolved.open().is_ok());
    std::fs::rename(bench.root.join("folder"), bench.root.join("gone")).unwrap();
    symlink("..", bench.root.join("folder")).unwrap();
    assert!(resolved.open().is_err());
    assert!(resolved.folder().is_err());
    assert!(resolved.create_folders().is_err());
    assert!(tools::edit::disk::replace(&resolved, Some(b"mine"), b"new").is_err());
    assert_eq!(std::fs::read(bench.folder.path().join("file")).unwrap(), b"other");
}
