//! What the user adds to a prompt, and plain reads of the workspace.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use domain::Part;
use domain::command::{Context, ContextQuery};
use domain::host::Position;
use serde_json::json;
use tools::{Limits, Options};

use crate::kit::Bench;

async fn expand(bench: &Bench, context: Context) -> Result<String, String> {
    let parts = bench.source.files().expand(&context, &bench.scope, bench.port.clone()).await;
    let texts = parts.map_err(|failure| failure.to_string())?.into_iter().map(|part| match part {
        Part::Text { text } => text,
        Part::Image { mime, .. } => mime,
    });
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn project() -> Bench {
    let bench = Bench::new();
    bench.write(".gitignore", "ignored\n");
    bench.write("src/main.rs", "one\ntwo\nthree\nfour\n");
    bench.write("src/lib.rs", "lib\r\n");
    bench.write("src/logo.png", b"\x89PNG\r\n\x1a\nxxxxxxxx");
    bench.write("ignored/x.rs", "x");
    bench
}

#[tokio::test]
async fn contexts_become_parts() {
    let bench = project();
    let root = bench.root.display();
    let file = |path: &str, lines| Context::File { path: bench.root.join(path), lines };
    let position = |line, character| Position { line, character };
    let rows = [
        (
            file("src/main.rs", None),
            format!("<file path=\"{root}/src/main.rs\">\none\ntwo\nthree\nfour\n</file>"),
        ),
        (
            file("src/main.rs", Some((2, 3))),
            format!("<file path=\"{root}/src/main.rs\" lines=\"2-3\">\ntwo\nthree\n</file>"),
        ),
        (file("src/lib.rs", None), format!("<file path=\"{root}/src/lib.rs\">\nlib\n</file>")),
        (file("src/logo.png", None), "The image src/logo.png:\nimage/png".to_owned()),
        (
            Context::Cursor { path: "/x/a.rs".into(), start: position(3, 4), end: position(3, 4) },
            "<cursor path=\"/x/a.rs\" line=\"3\" character=\"4\"/>".to_owned(),
        ),
        (
            Context::Cursor { path: "/x/a.rs".into(), start: position(3, 4), end: position(5, 1) },
            "<cursor path=\"/x/a.rs\" selection=\"3:4-5:1\"/>".to_owned(),
        ),
        (
            Context::Text { name: "note".into(), text: "hello".into() },
            "<text name=\"note\">\nhello\n</text>".to_owned(),
        ),
        (
            Context::Code {
                content: "x = 1\n".into(),
                language: "py".into(),
                description: Some("it".into()),
            },
            "<code about=\"it\">\n```py\nx = 1\n```\n</code>".to_owned(),
        ),
        (Context::Image { mime: "image/gif".into(), data: "AA==".into() }, "image/gif".to_owned()),
    ];
    for (context, expected) in rows {
        assert_eq!(expand(&bench, context.clone()).await.unwrap(), expected, "{context:?}");
    }
    let folder = expand(&bench, Context::Directory { path: bench.root.join("src") }).await.unwrap();
    assert!(folder.contains("\n lib.rs\n logo.png\n main.rs\n"), "{folder}");
    assert!(folder.contains("<file path=\"src/main.rs\">\none\ntwo"), "{folder}");
    let map = expand(&bench, Context::RepoMap).await.unwrap();
    assert!(map.contains("  main.rs") && !map.contains("ignored/"), "{map}");
}

#[tokio::test]
async fn the_map_of_a_large_workspace_is_cut_as_the_settings_say() {
    let map_of = async |limits: Limits| {
        let bench = Bench::with(Options { limits, ..Options::default() });
        for folder in ["a", "b"] {
            for file in 0..30 {
                bench.write(&format!("{folder}/inner/{file:02}.rs"), "x");
            }
        }
        let map = expand(&bench, Context::RepoMap).await.unwrap();
        let folder = expand(&bench, Context::Directory { path: bench.root.clone() }).await.unwrap();
        (map.matches(".rs\n").count(), map, folder)
    };
    let (files, map, _) = map_of(Limits::default()).await;
    assert_eq!(files, 60, "{map}");
    // More than fits: the deepest level is left out, and a line says so.
    let few = Limits { map_entries: 20, tree_entries: 20, ..Limits::default() };
    let (files, map, folder) = map_of(few).await;
    assert!(files == 0 && map.contains("inner/") && map.contains("60 or more deeper entries"), "{map}");
    assert!(folder.contains("inner/") && folder.contains("60 or more deeper entries"), "{folder}");
    let (files, map, _) = map_of(Limits { map_entries_per_folder: 4, ..Limits::default() }).await;
    assert!(files == 8 && map.contains("03.rs") && !map.contains("04.rs"), "{map}");
    assert!(map.contains("52 or more deeper entries"), "{map}");
}

#[tokio::test]
async fn what_is_outside_or_missing_is_refused() {
    let bench = project();
    symlink("/etc/passwd", bench.root.join("link")).unwrap();
    for path in [PathBuf::from("/etc/passwd"), bench.root.join("link"), bench.root.join("../x")] {
        let told = expand(&bench, Context::File { path: path.clone(), lines: None }).await.unwrap_err();
        assert!(told.contains("outside"), "{told}");
        let files = bench.source.files();
        assert!(files.read(&bench.scope.roots, path.clone()).await.is_err());
        assert!(files.stat(&bench.scope.roots, path).await.is_err());
    }
    let missing = Context::File { path: bench.root.join("nothing"), lines: None };
    assert!(expand(&bench, missing).await.unwrap_err().contains("There is no"));
}

#[tokio::test]
async fn a_file_that_was_added_counts_as_read() {
    let bench = project();
    expand(&bench, Context::File { path: bench.root.join("src/lib.rs"), lines: None }).await.unwrap();
    bench.write("src/lib.rs", "changed\n");
    let input = json!({"path": "src/lib.rs", "original_content": "changed", "new_content": "x"});
    assert!(bench.bad("edit_file", input).await.contains("changed since you read it"));
}

#[tokio::test]
async fn unsaved_text_is_what_counts() {
    let bench = project();
    bench.port.can(|abilities| abilities.read_text = true);
    bench.port.buffer(&bench.root.join("src/main.rs"), "unsaved\n");
    let told =
        expand(&bench, Context::File { path: bench.root.join("src/main.rs"), lines: None }).await.unwrap();
    assert!(told.contains("unsaved"), "{told}");
}

#[tokio::test]
async fn queries() {
    let bench = project();
    let files = bench.source.files();
    files.warm(&bench.scope.roots);
    let query = async |text: &str, kind| {
        let found = files.query(&bench.scope.roots, text, kind).await;
        let names = found.into_iter().map(|context| match context {
            Context::File { path, .. } => path.strip_prefix(&bench.root).unwrap().display().to_string(),
            Context::Directory { path } => format!("{}/", path.strip_prefix(&bench.root).unwrap().display()),
            Context::RepoMap => "repoMap".to_owned(),
            Context::Cursor { .. } => "cursor".to_owned(),
            Context::Web { url } => url,
            other => format!("{other:?}"),
        });
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(query("main", ContextQuery::All).await, "src/main.rs");
    assert_eq!(query("src", ContextQuery::Files).await, "src/lib.rs src/main.rs src/logo.png");
    assert_eq!(query("repo", ContextQuery::All).await, "repoMap");
    assert_eq!(query("https://x.y/z", ContextQuery::All).await, "https://x.y/z");
    let all = query("", ContextQuery::All).await;
    assert!(all.starts_with("repoMap cursor .gitignore src/ src/lib.rs"), "{all}");
    assert!(!all.contains("ignored/"), "{all}");
}

#[tokio::test]
async fn plain_reads() {
    let bench = project();
    let files = bench.source.files();
    let roots = &bench.scope.roots;
    let one = files.read(roots, bench.root.join("src/lib.rs")).await.unwrap();
    assert_eq!(one.bytes, b"lib\r\n");
    assert!(one.version < 1 << 53);
    bench.write("src/lib.rs", "other");
    assert_ne!(files.read(roots, "src/lib.rs".into()).await.unwrap().version, one.version);
    let stat = files.stat(roots, "src".into()).await.unwrap();
    assert!(stat.exists && stat.directory);
    assert!(!files.stat(roots, "nothing".into()).await.unwrap().exists);
    let found = files.glob(roots, "*.rs".to_owned()).await.unwrap();
    assert_eq!(found, [bench.root.join("src/lib.rs"), bench.root.join("src/main.rs")]);
}

/// Notebooks and PDF files are read as text: as contexts of the user and by the tool, by lines too.
#[tokio::test]
async fn notebooks_and_pdf_files_are_read_as_text() {
    let bench = Bench::new();
    let cell = json!({"cell_type": "code", "source": ["print(1)\n"], "outputs": [{"output_type": "stream", "text": "1\n"}]});
    bench.write("a.ipynb", json!({"cells": [cell], "nbformat": 4}).to_string());
    let content = "BT /F1 12 Tf 72 700 Td (Hello PDF) Tj 0 -20 Td (below) Tj ET";
    let pdf = format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]>>\nendobj\n3 0 obj\n\
         <</Type/Page/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>\nendobj\n4 0 obj\n<</Length {}>>\nstream\n{content}\n\
         endstream\nendobj\n5 0 obj\n<</Type/Font/Subtype/Type1>>\nendobj\n",
        content.len()
    );
    bench.write("b.pdf", pdf);
    bench.write("broken.ipynb", "{\"cells\": ");
    let notebook = "Notebook with 1 cells.\n\n## Cell 1 (code)\n```python\nprint(1)\n```\nOutput:\n1\n";
    let page = "PDF with 1 pages.\n\n## Page 1\nHello PDF\nbelow\n";
    for (path, text) in [("a.ipynb", notebook), ("b.pdf", page), ("broken.ipynb", "{\"cells\": ")] {
        let read = bench.good("read_file", json!({"path": path})).await;
        // A notebook that is none is read as any other text, with numbers.
        assert_eq!(read.strip_prefix("1\t").unwrap_or(&read), text, "{path}");
        let shown = expand(&bench, Context::File { path: bench.root.join(path), lines: None }).await.unwrap();
        assert!(shown.contains(text.trim_end()), "{shown}");
    }
    let part = bench.good("read_file", json!({"path": "b.pdf", "line_offset": 3, "limit": 1})).await;
    assert!(part.starts_with("Hello PDF\n"), "{part}");
    // It is edited as the JSON that it is.
    let edit = json!({"path": "a.ipynb", "original_content": "print(1)", "new_content": "print(2)"});
    bench.good("edit_file", edit).await;
    assert!(bench.good("read_file", json!({"path": "a.ipynb"})).await.contains("print(2)"));
    bench.write("c.pdf", "%PDF-1.4\n");
    let told = bench.bad("read_file", json!({"path": "c.pdf"})).await;
    assert!(told.contains("has no text"), "{told}");
}
