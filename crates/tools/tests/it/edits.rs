//! Edits as a user notices them: what is replaced, what is refused, what survives.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use domain::tool_call::Details;
use serde_json::{Value, json};

use crate::kit::{Bench, text};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "original_content": old, "new_content": new})
}

#[tokio::test]
async fn what_is_found_and_replaced() {
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str, Result<&'a str, &'a str>);
    let rows: &[Row<'_>] = &[
        ("exact", "a\nb\nc\n", "b", "x", Ok("a\nx\nc\n")),
        ("part of a line", "let a = 1;", "1", "2", Ok("let a = 2;")),
        ("several lines", "a\nb\nc\n", "a\nb\n", "z\n", Ok("z\nc\n")),
        ("ambiguous", "a\nb\na\n", "a", "x", Err("2 times, at lines 1, 3")),
        ("overlapping is ambiguous", "aaa", "aa", "x", Err("2 times")),
        ("absent", "a\n", "zzz", "x", Err("not in the file")),
        (
            "the answer names the nearest",
            "fn one() {}\nfn two(a: u8) {}\n",
            "fn two(b: u16) -> x {}",
            "x",
            Err("2\tfn two(a: u8)"),
        ),
        ("empty", "a\n", "", "x", Err("empty")),
        ("no change", "a\n", "a", "a", Err("same")),
        ("trailing blanks of the file", "a  \nb\n", "a\nb\n", "a\nx\n", Ok("a  \nx\n")),
        ("trailing blanks of the model", "a\nb\n", "a \nb", "a \nx", Ok("a\nx\n")),
        (
            "indented less",
            "  if x {\n    y();\n  }\n",
            "if x {\n  y();\n}",
            "if x {\n  z();\n}",
            Ok("  if x {\n    z();\n  }\n"),
        ),
        (
            "indented more",
            "if x {\n  y();\n}\n",
            "    if x {\n      y();\n    }",
            "    if x {\n      y();\n      z();\n    }",
            Ok("if x {\n  y();\n  z();\n}\n"),
        ),
        (
            "tabs for spaces",
            "f() {\n\ty();\n\tz();\n}\n",
            "f() {\n    y();\n    z();\n}",
            "f() {\n    y();\n    if a {\n        z();\n    }\n}",
            Ok("f() {\n\ty();\n\tif a {\n\t\tz();\n\t}\n}\n"),
        ),
        (
            "spaces for tabs",
            "f() {\n  y();\n}\n",
            "f() {\n\ty();\n}",
            "f() {\n\ty();\n\tx();\n}",
            Ok("f() {\n  y();\n  x();\n}\n"),
        ),
        ("inner blanks", "a  =  1\nb = 2\n", "a = 1\nb = 2", "a = 1\nb = 3", Ok("a  =  1\nb = 3\n")),
        ("forgiven but ambiguous", " a\nb\n  a\nb\n", "\ta\nb", "x", Err("2 times, at lines 1, 3")),
        ("no final newline stays", "a\nb", "b\n", "c\n", Ok("a\nc")),
        ("blank lines around", "a\n", "\n\na\n\n", "\n\nb\n\n", Ok("b\n")),
        ("deletes lines", "  a\n  b\nc\n", "1\ta\n2\tb\n", "", Ok("c\n")),
        ("crlf in old", "a\r\nb\r\n", "a\nb\n", "a\nc\n", Ok("a\r\nc\r\n")),
        ("crlf from the model", "a\nb\n", "a\r\nb", "a\r\nc", Ok("a\nc\n")),
        (
            "typographic quotes of the model",
            "say \"a\"\n",
            "say \u{201c}a\u{201d}",
            "say \u{201c}b\u{201d}",
            Ok("say \"b\"\n"),
        ),
        (
            "typographic quotes of the file",
            "say \u{201c}a\u{201d}\n",
            "say \"a\"",
            "say \"b\"",
            Ok("say \u{201c}b\u{201d}\n"),
        ),
        ("a dash of the file", "a \u{2014} b\n", "a - b", "a - c", Ok("a \u{2014} c\n")),
        (
            "a new quote is in doubt",
            "say \u{201c}a\u{201d}\n",
            "say \"a\"",
            "say \"a\" \"b\"",
            Err("in doubt"),
        ),
        ("a literal line end", "a\n  b\nc\n", "a\\n  b", "a\\n  x", Ok("a\n  x\nc\n")),
        ("a literal line end that may be one", "a\nb\n", "a\\nb", "a\\np(\"x\\n\")", Err("real line ends")),
        ("a literal line end of the file", "p(\"a\\n\")\n", "a\\n", "b\\n", Ok("p(\"b\\n\")\n")),
        ("line numbers", "a\nb\nc\n", "2\tb\n3\tc", "2\tb\n3\tx", Ok("a\nb\nx\n")),
        ("numbers that are data", "7\tpear\n8\tapple\n", "7\tapple", "7\tplum", Err("not in the file")),
        (
            "the nearest lines have numbers",
            "x\nlet a = b(c);\ny\n",
            "let a = b(d);\nz",
            "q",
            Err("2\tlet a = b(c);"),
        ),
        ("mixed stay mixed", "a\r\nb\nc\r\nd\n", "b\nc\nd", "b\nx\ny\nd", Ok("a\r\nb\nx\r\ny\r\nd\n")),
    ];
    for (name, before, old, new, expected) in rows {
        let bench = Bench::new();
        bench.write("f", before);
        let reviewed = bench.review("edit_file", edit("f", old, new));
        assert_eq!(reviewed.is_ok(), expected.is_ok(), "{name}: {reviewed:?}");
        match expected {
            Ok(after) => {
                bench.good("edit_file", edit("f", old, new)).await;
                assert_eq!(String::from_utf8(bench.read("f")).unwrap(), *after, "{name}");
            }
            Err(part) => {
                let told = bench.bad("edit_file", edit("f", old, new)).await;
                assert!(told.contains(part), "{name}: {told}");
                assert_eq!(bench.read("f"), before.as_bytes(), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn all_occurrences_are_replaced() {
    let bench = Bench::new();
    bench.write("f", "a b a\r\na\n");
    let mut input = edit("f", "a", "xx");
    input["all_occurrences"] = json!("true");
    assert!(bench.good("edit_file", input).await.contains("3 places"));
    assert_eq!(bench.read("f"), b"xx b xx\r\nxx\n");
}

#[tokio::test]
async fn a_change_is_told_as_a_diff() {
    let bench = Bench::new();
    let path = bench.write("src/f.rs", "one\ntwo\nthree\n");
    let review = bench.review("edit_file", edit("src/f.rs", "two", "2\n2b")).unwrap();
    assert_eq!(review.summary, "Editing src/f.rs");
    assert!(review.changes && !review.harmless && review.outside.is_empty());
    let result = bench.run("edit_file", edit("src/f.rs", "two", "2\n2b")).await;
    assert_eq!(result.locations[0].path, path);
    for details in [review.details, result.details] {
        let Some(Details::FileChange(change)) = details else { panic!("{details:?}") };
        assert_eq!((change.lines_added, change.lines_removed), (2, 1));
        assert_eq!(
            change.diff,
            "--- a/src/f.rs\n+++ b/src/f.rs\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
        );
        assert_eq!(change.old_text.as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!(change.new_text.as_deref(), Some("one\n2\n2b\nthree\n"));
    }
}

#[tokio::test]
async fn a_file_changed_since_it_was_read_is_refused_with_its_content() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\n");
    bench.good("read_file", json!({"path": "f"})).await;
    bench.write("f", "one\ntwo\nthree\n");
    for told in [
        bench.review("edit_file", edit("f", "two", "2")).unwrap_err(),
        // The content was offered, so the next change is of what the model knows.
        bench.write("f", "ONE\ntwo\n").display().to_string()
            + &bench.bad("edit_file", edit("f", "two", "2")).await,
    ] {
        assert!(
            told.contains("changed since you read it") && told.to_lowercase().contains("one\ntwo\n"),
            "{told}"
        );
    }
    assert_eq!(bench.read("f"), b"ONE\ntwo\n");
    bench.good("edit_file", edit("f", "two", "2")).await;
    bench.good("edit_file", edit("f", "2", "3")).await;
    assert_eq!(bench.read("f"), b"ONE\n3\n");
    // Another session has not read it.
    let mut other = bench;
    other.scope.session = domain::SessionId::new("other");
    other.write("f", "x\n");
    other.good("edit_file", edit("f", "x", "y")).await;
}

#[tokio::test]
async fn a_file_changed_while_its_change_was_approved_is_refused() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    let input = json!({"path": "f", "content": "two\n"});
    bench.review("write_file", input.clone()).unwrap();
    bench.write("f", "precious\n");
    assert!(bench.bad("write_file", input.clone()).await.contains("precious"));
    assert_eq!(bench.read("f"), b"precious\n");
    bench.review("write_file", input.clone()).unwrap();
    bench.good("write_file", input).await;
}

#[tokio::test]
async fn mode_links_and_symlinks_survive() {
    let bench = Bench::new();
    let path = bench.write("script", "#!/bin/sh\necho a\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    symlink("script", bench.root.join("link")).unwrap();
    bench.good("edit_file", edit("link", "echo a", "echo b")).await;
    assert!(bench.root.join("link").is_symlink());
    assert_eq!(bench.read("script"), b"#!/bin/sh\necho b\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);

    std::fs::hard_link(&path, bench.root.join("twin")).unwrap();
    let told = bench.good("edit_file", edit("script", "echo b", "echo c")).await;
    assert!(told.contains("hard links"), "{told}");
    assert_eq!(bench.read("script"), b"#!/bin/sh\necho c\n");
    assert_eq!(bench.read("twin"), b"#!/bin/sh\necho b\n", "nothing is written through to another name");
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o751);

    symlink("made-later", bench.root.join("dangling")).unwrap();
    bench.good("write_file", json!({"path": "dangling", "content": "x"})).await;
    assert_eq!(bench.read("made-later"), b"x");
    let names: Vec<_> =
        std::fs::read_dir(&bench.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "no temporary file is left: {names:?}");
}

#[tokio::test]
async fn writing_whole_files() {
    let bench = Bench::new();
    assert!(
        bench.good("write_file", json!({"path": "a/b/c.txt", "content": "x\n"})).await.contains("Created")
    );
    let rows: &[(&str, &[u8], &str, &[u8])] = &[
        ("crlf stays", b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        ("mixed stays where lines stay", b"a\r\nb\nc\r\n", "a\nb\nc\nd\n", b"a\r\nb\nc\r\nd\r\n"),
        ("crlf of the model's own", b"a\nb\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
        ("mark stays", b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("mark is not doubled", b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n"),
        ("latin-1 stays", b"caf\xe9\nx\n", "caf\u{e9}\ny\n", b"caf\xe9\ny\n"),
        ("utf-16 stays", b"\xff\xfea\0\n\0", "b\n", b"\xff\xfeb\0\n\0"),
        ("emptied", b"a\n", "", b""),
    ];
    for (name, before, content, after) in rows {
        bench.write("f", before);
        let fresh = Bench { scope: bench.scope.clone(), ..Bench::new() };
        fresh.good("write_file", json!({"path": bench.root.join("f"), "content": content})).await;
        assert_eq!(bench.read("f"), *after, "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_refused() {
    let bench = Bench::new();
    bench.write("latin", b"caf\xe9\n");
    bench.write("binary", b"a\0b\xff");
    bench.write("stray", "h\u{e9}llo w\u{f6}rld\n".bytes().chain(*b"\xff\n").collect::<Vec<_>>());
    let locked = bench.write("locked", "a\n");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o444)).unwrap();
    std::fs::create_dir(bench.root.join("folder")).unwrap();
    let rows = [
        ("edit_file", edit("latin", "caf\u{e9}", "\u{20ac}"), "Latin-1"),
        ("edit_file", edit("binary", "a", "b"), "not a text file"),
        ("edit_file", edit("locked", "a", "b"), "read-only"),
        ("edit_file", edit("folder", "a", "b"), "folder"),
        ("edit_file", edit("missing", "a", "b"), "does not exist"),
        ("write_file", json!({"path": "stray", "content": "h\u{e9}\u{fffd}"}), "not UTF-8"),
        ("write_file", json!({"path": "folder", "content": "x"}), "folder"),
        ("write_file", json!({"path": "/proc/dragoman", "content": "x"}), "outside"),
        ("edit_file", json!({"path": "latin"}), "original_content"),
    ];
    for (tool, input, part) in rows {
        let told = bench.bad(tool, input.clone()).await;
        assert!(told.contains(part), "{input}: {told}");
    }
    bench.good("edit_file", edit("stray", "w\u{f6}rld", "x")).await;
    assert_eq!(bench.read("stray"), "h\u{e9}llo x\n".bytes().chain(*b"\xff\n").collect::<Vec<_>>());
}

#[tokio::test]
async fn a_preview_changes_nothing() {
    let bench = Bench::new();
    bench.write("f", "a\n");
    for input in [edit("f", "a", "b"), edit("new", "", "b")] {
        let review = bench.review("preview_file_change", input.clone()).unwrap();
        assert!(review.harmless && !review.changes, "{review:?}");
        let result = bench.run("preview_file_change", input).await;
        assert!(!result.error && matches!(result.details, Some(Details::FileChange(_))), "{}", text(&result));
    }
    assert_eq!(bench.read("f"), b"a\n");
    assert!(!bench.root.join("new").exists());
}

#[tokio::test]
async fn through_the_client() {
    let bench = Bench::new();
    bench.port.can(|abilities| (abilities.read_text, abilities.write_text) = (true, true));
    let path = bench.write("f", "saved\n");
    bench.port.buffer(&path, "unsaved\n");
    assert_eq!(bench.good("read_file", json!({"path": "f"})).await, "1\tunsaved\n");
    bench.review("edit_file", edit("f", "unsaved", "new")).unwrap();
    bench.good("edit_file", edit("f", "unsaved", "new")).await;
    assert_eq!(bench.read("f"), b"new\n");

    *bench.port.formatter.lock().unwrap() = Some(|text| text.replace("new", "NEW"));
    let told = bench.bad("edit_file", edit("f", "new", "new new")).await;
    assert!(told.contains("formatter") && told.contains("+NEW NEW"), "{told}");
    *bench.port.formatter.lock().unwrap() = None;

    // Bytes that a client's text cannot stand for go by disk, and only when the client has nothing else.
    let marked = bench.write("marked", b"\xef\xbb\xbfa\r\nb\r\n");
    bench.port.buffer(&marked, "a\nb\n");
    bench.good("edit_file", edit("marked", "b", "c")).await;
    assert_eq!(bench.read("marked"), b"\xef\xbb\xbfa\r\nc\r\n");
    bench.port.buffer(&marked, "a\nunsaved\n");
    let told = bench.bad("edit_file", edit("marked", "c", "d")).await;
    assert!(told.contains("unsaved changes"), "{told}");
    assert_eq!(bench.read("marked"), b"\xef\xbb\xbfa\r\nc\r\n");

    let carriage = bench.write("carriage", "a\r\nb\r\n");
    bench.port.buffer(&carriage, "a\nb\n");
    bench.good("edit_file", edit("carriage", "b", "c")).await;
    assert_eq!(bench.read("carriage"), b"a\r\nc\r\n");

    bench.good("write_file", json!({"path": "made", "content": "x\n"})).await;
    assert_eq!(bench.read("made"), b"x\n");
}

#[tokio::test]
async fn reading() {
    let bench = Bench::new();
    let long: String = (1..=3000).map(|number| format!("line {number}\n")).collect();
    bench.write("long", &long);
    bench.write("empty", "");
    bench.write("wide", "x".repeat(5000) + "\ny\n");
    bench.write("carriage", "a\r\nb\r\n");
    bench.write("utf16", b"\xff\xfea\0\xe9\0");
    bench.write("image.dat", b"\x89PNG\r\n\x1a\nxxxxxxxx");
    bench.write("binary", b"\0\x01\x02");
    let rows = [
        (
            json!({"path": "long"}),
            "1\tline 1\n2\tline 2\n",
            "\n2000\tline 2000\n[lines 1-2000 of 3000; read on with line_offset 2000]",
        ),
        (json!({"path": "long", "line_offset": 2999}), "3000\tline 3000\n", "line 3000\n"),
        (
            json!({"path": "long", "line_offset": "10", "limit": 2.0}),
            "11\tline 11\n12\tline 12\n",
            "line_offset 12]",
        ),
        (json!({"path": "long", "line_offset": 3000}), "(The file has only 3000 lines.)", ""),
        (json!({"path": "empty"}), "(The file is empty.)", ""),
        (json!({"path": "wide"}), "1\txxx", "… [3001 more bytes in this line]\n2\ty\n"),
        (json!({"path": "carriage"}), "1\ta\n2\tb\n", ""),
        (json!({"path": "utf16"}), "1\ta\u{e9}", ""),
        (json!({"path": "image.dat"}), "image/png", ""),
    ];
    for (input, start, end) in rows {
        let told = bench.good("read_file", input.clone()).await;
        assert!(told.starts_with(start) && told.ends_with(end), "{input}: {told}");
    }
    for (path, part) in [("binary", "binary"), (".", "folder"), ("missing", "glob"), ("/dev/zero", "outside")]
    {
        let told = bench.bad("read_file", json!({"path": path})).await;
        assert!(told.contains(part), "{path}: {told}");
    }
    let mut bench = bench;
    bench.outside_allowed = true;
    assert!(bench.bad("read_file", json!({"path": "/dev/zero"})).await.contains("not a regular file"));
}

#[test]
fn a_file_that_runs_later_is_asked_about() {
    let bench = Bench::new();
    bench.write("package.json", r#"{"name": "a", "scripts": {"test": "jest"}}"#);
    let asks = |path: &str, content: &str| {
        let review = bench.review("write_file", json!({"path": path, "content": content})).unwrap();
        assert_eq!(review.must_ask.is_some(), !review.outside.is_empty(), "{path}");
        review.must_ask.is_some()
    };
    for path in [
        ".vscode/tasks.json",
        ".envrc",
        ".husky/pre-commit",
        ".github/workflows/ci.yml",
        ".dragoman/config.json",
        ".bashrc",
        "sub/.ENVRC",
    ] {
        assert!(asks(path, "x"), "{path}");
    }
    for path in ["Makefile", "Cargo.toml", "build.rs", "src/a.rs", ".gitignore"] {
        assert!(!asks(path, "x"), "{path}");
    }
    assert!(!asks("package.json", r#"{"name": "b", "scripts": {"test": "jest"}}"#));
    assert!(asks("package.json", r#"{"name": "a", "scripts": {"test": "jest", "postinstall": "x"}}"#));
    assert!(asks("new/package.json", r#"{"scripts": {"postinstall": "x"}}"#));
    symlink(".github", bench.root.join("innocent")).unwrap();
    assert!(asks("innocent/workflows/x.yml", "x"), "a path is what it leads to");
    let moved =
        bench.review("move_file", json!({"source": "package.json", "destination": ".envrc"})).unwrap();
    assert!(moved.must_ask.is_some());
}
