//! Patches as a user notices them: several files at once, all or none, in the forms that models write.

use std::os::unix::fs::PermissionsExt;

use domain::tool_call::Details;
use serde_json::{Value, json};

use crate::kit::Bench;

fn patch(lines: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{lines}\n*** End Patch\n")})
}

fn content(bench: &Bench, path: &str) -> Option<String> {
    std::fs::read_to_string(bench.root.join(path)).ok()
}

#[tokio::test]
async fn one_call_adds_changes_deletes_and_moves() {
    let bench = Bench::new();
    bench.write("src/a.rs", "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n");
    bench.write("old.txt", "x\r\ny\r\n");
    bench.write("gone.txt", "bye\n");
    let input = patch(
        "*** Update File: src/a.rs\n@@ fn two() {\n-    2\n+    22\n*** Add File: new/b.rs\n+pub fn b() {}\n+\n+// end\n\
         *** Update File: old.txt\n*** Move to: moved/new.txt\n@@\n x\n-y\n+z\n*** Delete File: gone.txt",
    );
    let review = bench.review("apply_patch", input.clone()).unwrap();
    assert_eq!(
        review.summary,
        "Editing src/a.rs, Creating new/b.rs, Moving old.txt to moved/new.txt and 1 more"
    );
    let named: Vec<String> = review.locations.iter().map(|it| it.path.display().to_string()).collect();
    assert_eq!(named.len(), 5, "undo must know each: {named:?}");
    assert_eq!(review.counts_as, ["edit_file", "write_file", "move_file"]);
    // The file that moves is named by itself and as what it leads to.
    assert_eq!(review.paths.iter().filter(|(argument, _)| argument == "path").count(), 6);
    let Some(Details::FileChange(change)) = review.details else { panic!("a diff") };
    for part in ["+    22", "+++ b/new/b.rs", "rename to moved/new.txt", "+++ /dev/null"] {
        assert!(change.diff.contains(part), "{part}: {}", change.diff);
    }
    let told = bench.good("apply_patch", input).await;
    assert!(told.contains("Created new/b.rs") && told.contains("Deleted gone.txt"), "{told}");
    assert_eq!(content(&bench, "src/a.rs").unwrap(), "fn one() {\n    1\n}\n\nfn two() {\n    22\n}\n");
    assert_eq!(content(&bench, "new/b.rs").unwrap(), "pub fn b() {}\n\n// end\n");
    assert_eq!(content(&bench, "moved/new.txt").unwrap(), "x\r\nz\r\n");
    assert_eq!((content(&bench, "old.txt"), content(&bench, "gone.txt")), (None, None));
}

#[tokio::test]
async fn what_cannot_be_done_whole_is_not_begun() {
    for (second, reason) in [
        ("*** Update File: b.txt\n@@\n-nothing like it\n+x", "not in the file"),
        ("*** Add File: b.txt\n+x", "exists already"),
        ("*** Delete File: c.txt", "does not exist"),
        ("*** Update File: b.txt\n*** Move to: d.txt", "exists already"),
        ("*** Update File: b.txt\nfree text", "begins with neither"),
    ] {
        let bench = Bench::new();
        bench.write("a.txt", "one\n");
        bench.write("b.txt", "two\n");
        bench.write("d.txt", "taken\n");
        let told =
            bench.bad("apply_patch", patch(&format!("*** Update File: a.txt\n@@\n-one\n+1\n{second}"))).await;
        assert!(told.contains(reason), "{second}: {told}");
        assert_eq!(content(&bench, "a.txt").unwrap(), "one\n", "{second}");
        assert_eq!(content(&bench, "b.txt").unwrap(), "two\n", "{second}");
    }
}

/// The second file cannot be written, though it can be read: what was done to the others is taken back.
#[tokio::test]
async fn a_write_that_fails_takes_the_others_back() {
    let bench = Bench::new();
    bench.write("a.txt", "one\n");
    bench.write("moved.txt", "m\n");
    bench.write("gone.txt", "bye\n");
    let locked = bench.write("locked.txt", "two\n");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o444)).unwrap();
    let input = patch(
        "*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: deep/new.txt\n+n\n*** Delete File: gone.txt\n\
         *** Update File: moved.txt\n*** Move to: to.txt\n@@\n-m\n+mm\n*** Update File: locked.txt\n@@\n-two\n+2",
    );
    let told = bench.bad("apply_patch", input).await;
    assert!(told.contains("read-only") && told.contains("No file was changed"), "{told}");
    let now = ["a.txt", "moved.txt", "gone.txt", "locked.txt"].map(|path| content(&bench, path).unwrap());
    assert_eq!(now, ["one\n", "m\n", "bye\n", "two\n"]);
    assert_eq!((content(&bench, "deep/new.txt"), content(&bench, "to.txt")), (None, None));
}

#[tokio::test]
async fn every_path_of_a_patch_obeys_the_policy() {
    let bench = Bench::new();
    bench.write("a.txt", "one\n");
    std::fs::write(bench.folder.path().join("outside.txt"), "o\n").unwrap();
    let input = patch("*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: ../outside.txt");
    let review = bench.review("apply_patch", input.clone()).unwrap();
    assert_eq!(review.outside.len(), 1, "a person is asked about it");
    let told = bench.bad("apply_patch", input).await;
    assert!(told.contains("outside the workspace"), "{told}");
    assert_eq!(content(&bench, "a.txt").unwrap(), "one\n");
    let hook = bench.review("apply_patch", patch("*** Add File: .git/hooks/pre-commit\n+x")).unwrap();
    assert!(hook.must_ask.is_some() && !hook.run_later.is_empty());
}

/// Two names of one file, and links, would lose a change or leave half of something.
#[tokio::test]
async fn one_file_by_two_names_and_links_are_refused() {
    let bench = Bench::new();
    bench.write("a.txt", "one\ntwo\n");
    std::os::unix::fs::symlink(bench.root.join("a.txt"), bench.root.join("link")).unwrap();
    for (lines, reason) in [
        ("*** Update File: a.txt\n@@\n-one\n+1\n*** Update File: ./a.txt\n@@\n-two\n+2", "more than once"),
        ("*** Update File: a.txt\n*** Move to: b.txt\n*** Add File: b.txt\n+x", "more than once"),
        ("*** Delete File: link", "symbolic link"),
        ("*** Update File: link\n*** Move to: b.txt", "symbolic link"),
    ] {
        let told = bench.bad("apply_patch", patch(lines)).await;
        assert!(told.contains(reason), "{lines}: {told}");
        assert!(bench.review("apply_patch", patch(lines)).is_err(), "{lines}");
        assert_eq!(content(&bench, "a.txt").unwrap(), "one\ntwo\n", "{lines}");
        assert!(bench.root.join("link").is_symlink() && !bench.root.join("b.txt").exists(), "{lines}");
    }
}

/// Where a hunk could be in several places, only an anchor, the order or a number decides.
#[tokio::test]
async fn hunks_stand_where_their_lines_are() {
    let file = "fn a() {\n    step();\n    end();\n}\n\nfn b() {\n    step();\n    end();\n}\n";
    let changed = |which: usize| {
        let parts: Vec<&str> = file.split("step();").collect();
        let names = [0, 1].map(|at| if at == which { "walk();" } else { "step();" });
        format!("{}{}{}{}{}", parts[0], names[0], parts[1], names[1], parts[2])
    };
    for (head, expected) in [
        ("@@ fn b() {", Ok(1)),
        ("@@ fn a()", Ok(0)),
        ("@@", Err("2 times, at lines 2, 7")),
        ("@@ -7,2 +7,2 @@", Ok(1)),
        ("@@ fn gone() {", Err("2 times")),
    ] {
        let bench = Bench::new();
        bench.write("f.rs", file);
        let input = patch(&format!("*** Update File: f.rs\n{head}\n-    step();\n+    walk();\n     end();"));
        match expected {
            Ok(which) => {
                bench.good("apply_patch", input).await;
                assert_eq!(content(&bench, "f.rs").unwrap(), changed(which), "{head}");
            }
            Err(part) => {
                let told = bench.bad("apply_patch", input).await;
                assert!(told.contains(part), "{head}: {told}");
                assert_eq!(content(&bench, "f.rs").unwrap(), file, "{head}");
            }
        }
    }
    // The lines are only in another function than the anchor names.
    let bench = Bench::new();
    bench.write("f.rs", "fn a() {\n    other();\n}\n\nfn b() {\n    step();\n}\n");
    let input = patch("*** Update File: f.rs\n@@ fn a() {\n-    step();\n+    walk();");
    assert!(bench.bad("apply_patch", input).await.contains("not in the file"));
}

#[tokio::test]
async fn other_forms_are_read_too() {
    let file = "one\ntwo\nthree\nfour\n";
    let wanted = "one\n2\nthree\nfour\n";
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -10,3 +10,3 @@\n one\n-two\n+2\n three\n";
    let blocks = "f.txt\n```\n<<<<<<< SEARCH\none\ntwo\n=======\none\n2\n>>>>>>> REPLACE\n```\n";
    let bare = "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE";
    let wrapped =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f.txt\n one\n-two\n+2\n*** End Patch\nEOF";
    for (tool, input) in [
        ("apply_patch", json!({"input": diff})),
        ("apply_patch", json!({"patch": blocks})),
        ("apply_patch", json!({"input": wrapped})),
        ("edit_file", json!({"path": "f.txt", "diff": diff})),
        ("edit_file", json!({"path": "f.txt", "original_content": "", "new_content": bare})),
        ("edit_file", json!({"path": "f.txt", "edits": [{"old_str": "two", "new_str": "2"}]})),
        ("edit_file", json!({"file_path": "f.txt", "old_string": "two", "new_string": "2"})),
        ("edit_file", json!({"path": "f.txt", "edits": "[{\"search\": \"two\", \"replace\": \"2\"}]"})),
    ] {
        let bench = Bench::new();
        bench.write("f.txt", file);
        bench.good(tool, input.clone()).await;
        assert_eq!(content(&bench, "f.txt").unwrap(), wanted, "{input}");
    }
    let bench = Bench::new();
    bench.write("f.txt", file);
    for (input, reason) in [
        (json!({"input": "*** Begin Patch\n*** Update File: f.txt\n-two\n+2\n"}), "cut"),
        (json!({"input": "please change two"}), "not understood"),
        (json!({"input": "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE"}), "names no file"),
    ] {
        let told = bench.bad("apply_patch", input).await;
        assert!(told.contains(reason), "{told}");
    }
    for name in ["g.txt", "xt"] {
        let other = json!({"path": "f.txt", "patch": diff.replace("f.txt", name)});
        assert!(bench.bad("edit_file", other).await.contains("Use apply_patch"), "{name}");
    }
}

#[tokio::test]
async fn several_edits_of_a_file_are_made_or_none() {
    let bench = Bench::new();
    bench.write("f", "a\nb\nc\n");
    let edits = json!([{"original_content": "a", "new_content": "x"}, {"original_content": "x\nb", "new_content": "y"}]);
    let told = bench.good("edit_file", json!({"path": "f", "edits": edits})).await;
    assert!(told.contains("2 places"), "{told}");
    assert_eq!(bench.read("f"), b"y\nc\n");
    let edits = json!([{"old_str": "y", "new_str": "z"}, {"old_str": "gone", "new_str": "x"}]);
    let told = bench.bad("edit_file", json!({"path": "f", "edits": edits})).await;
    assert!(told.contains("Edit 2 of 2") && told.contains("No edit was made"), "{told}");
    assert_eq!(bench.read("f"), b"y\nc\n");
}

#[tokio::test]
async fn the_end_of_a_file_stays_as_it_is_or_becomes_what_the_patch_says() {
    for (before, lines, after) in [
        ("a\nb", "*** Update File: f\n@@\n a\n-b\n+c", "a\nc"),
        ("a\nb", "*** Update File: f\n@@\n a\n b\n+c", "a\nb\nc"),
        ("a\nb\n", "*** Update File: f\n@@\n+c", "a\nb\nc\n"),
        ("a\n\nb\na\n\nb\n", "*** Update File: f\n@@\n a\n \n-b\n+c\n*** End of File", "a\n\nb\na\n\nc\n"),
        ("\u{feff}a\r\nb\r\n", "*** Update File: f\n@@\n a\n-b\n+c\n+d", "\u{feff}a\r\nc\r\nd\r\n"),
    ] {
        let bench = Bench::new();
        bench.write("f", before);
        bench.good("apply_patch", patch(lines)).await;
        assert_eq!(content(&bench, "f").unwrap(), after, "{lines}");
    }
    for (before, diff, after) in [
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "a\nb\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "a\nc"),
    ] {
        let bench = Bench::new();
        bench.write("f", before);
        bench.good("edit_file", json!({"path": "f", "diff": diff})).await;
        assert_eq!(content(&bench, "f").unwrap(), after, "{diff}");
    }
}
