//! `dragoman generate` and `dragoman spec check` from outside: files, stdin and addresses in; projects, modules and
//! pages out; and what is there is never written over.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use apiui::check::check;
use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use super::copilot_host::{specification, two_tables};
use crate::client::{Home, fake_provider};

/// Exit code, stdout and stderr.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn run_with(home: &Home, arguments: &[&str], input: &str) -> Ended {
    let pipes = &mut home.command(arguments);
    let pipes = pipes.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_owned();
    // A program that does not read its stdin closes it early.
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("the program ends");
    writing.join().expect("written");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ended { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

fn run(home: &Home, arguments: &[&str]) -> Ended {
    run_with(home, arguments, "")
}

fn with_bookshop() -> Home {
    let home = Home::new();
    home.write("work/bookshop.yaml", &specification("bookshop.yaml"));
    home
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).expect("inside").display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_project_is_ready_to_install() {
    let home = with_bookshop();
    let told = run(&home, &["generate", "bookshop.yaml"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.is_empty(), "{}", told.out);
    assert!(told.err.contains("cd bookshop-ui") && told.err.contains("npm install"), "{}", told.err);
    let files = files_below(&home.workspace().join("bookshop-ui"));
    for wanted in [
        ".prettierrc.json",
        "README.md",
        "dragoman.json",
        "eslint.config.js",
        "index.html",
        "playwright.config.ts",
        "src/generated/api/Books.ts",
        "src/generated/api/types.ts",
        "src/generated/plan/Books.ts",
        "src/generated/resources/Books.tsx",
        "src/generated/runtime/App.tsx",
        "src/main.tsx",
        "src/theme.css",
        "tests/browser/interface.spec.ts",
        "tests/interface.test.tsx",
        "tsconfig.json",
        "vite.config.ts",
    ] {
        assert!(files.iter().any(|file| file == wanted), "{wanted}: {files:#?}");
    }
    assert!(!files.iter().any(|file| file.ends_with(".jsx")), "everything has types: {files:#?}");
    for file in files.iter().filter(|file| file.ends_with(".tsx")) {
        let lines = read(&home, &format!("bookshop-ui/{file}")).lines().count();
        assert!(lines <= 400, "{file} has {lines} lines");
    }
    let package: Value = serde_json::from_str(&read(&home, "bookshop-ui/package.json")).expect("JSON");
    assert_eq!(package["name"], "bookshop-ui");
    for script in ["dev", "build", "typecheck", "lint", "test", "test:browser"] {
        assert!(package["scripts"][script].is_string(), "{package}");
    }
    let types = read(&home, "bookshop-ui/src/generated/api/types.ts");
    assert!(types.contains("export interface Book {"), "{types}");
}

#[test]
fn a_project_keeps_edits_and_wishes_when_it_is_generated_again() {
    let home = with_bookshop();
    let ask = [
        "generate",
        "bookshop.yaml",
        "-o",
        "ui",
        "--ask",
        "Hide the price column of books",
        "--ask",
        "Use the dark theme",
    ];
    let told = run(&home, &ask);
    assert_eq!(told.code, 0, "{}", told.err);
    home.write("work/ui/src/theme.css", "/* mine */\n");
    home.write("work/ui/src/Own.tsx", "export const own = 1;\n");
    // The price is not in the specification any more: its wish is lost and named, the other one holds.
    let text = specification("bookshop.yaml")
        .replace("price", "cost")
        .replace("title: Bookshop", "title: Bookstore");
    home.write("work/bookshop.yaml", &text);
    let told = run(&home, &["generate", "bookshop.yaml", "-o", "ui"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.err.contains("The change “Hide the price column of books” was not made"), "{}", told.err);
    assert!(!told.err.contains("dark theme"), "{}", told.err);
    let about = read(&home, "ui/src/generated/plan/about.ts");
    assert!(about.contains("theme: \"dark\"") && about.contains("title: \"Bookstore\""), "{about}");
    assert_eq!(read(&home, "ui/src/theme.css"), "/* mine */\n");
    assert_eq!(read(&home, "ui/src/Own.tsx"), "export const own = 1;\n");
    // A generated file that somebody changed is not replaced, unless that is asked for.
    home.write("work/ui/src/generated/plan/about.ts", "// mine\n");
    let told = run(&home, &["generate", "bookshop.yaml", "-o", "ui"]);
    assert_eq!(told.code, 1, "{}", told.err);
    assert!(
        told.err.contains("src/generated/plan/about.ts") && told.err.contains("--overwrite"),
        "{}",
        told.err
    );
    assert_eq!(read(&home, "ui/src/generated/plan/about.ts"), "// mine\n");
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "ui", "--overwrite"]).code, 0);
    assert_eq!(read(&home, "ui/src/generated/plan/about.ts"), about);
    // A list of files from somebody else removes nothing outside of the generated folder.
    home.write(
        "work/ui/dragoman.json",
        r#"{"wishes": [], "files": {"src/generated/../Own.tsx": "", "src/Own.tsx": ""}}"#,
    );
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "ui"]).code, 0);
    assert_eq!(read(&home, "ui/src/Own.tsx"), "export const own = 1;\n");
}

#[test]
fn a_wish_that_is_not_understood_writes_nothing() {
    let home = with_bookshop();
    let told =
        run(&home, &["generate", "bookshop.yaml", "-o", "ui", "--ask", "Hide the weather column of books"]);
    assert_eq!(told.code, 1, "{}", told.err);
    assert!(told.err.contains("weather") && told.err.contains("Nothing was written"), "{}", told.err);
    assert!(!home.workspace().join("ui").exists());
    let told = run(&home, &["generate", "bookshop.yaml", "--single-file", "--ask", "Use the dark theme"]);
    assert!(told.out.contains("\"theme\": \"dark\""), "{}", told.err);
}

#[test]
fn server_title_and_headers_are_chosen_on_the_command_line() {
    let home = with_bookshop();
    let mut arguments =
        vec!["generate", "bookshop.yaml", "--single-file", "--server", "http://localhost:8080/v2/"];
    arguments.extend(["--title", "Back office", "--header", "X-Tenant: 7"]);
    let code = run(&home, &arguments).out;
    assert!(code.contains("const SERVERS = [\"http://localhost:8080/v2\""), "the server comes first");
    assert!(code.contains("\"title\": \"Back office\""));
    assert!(code.contains("{\"name\":\"X-Tenant\",\"text\":\"7\"}"));
    check(&code).unwrap_or_else(|refusals| panic!("{}", refusals[0]));
    for wrong in [["--server", "javascript:alert(1)"], ["--server", "api"], ["--header", "no colon"]] {
        let told = run(&home, &["generate", "bookshop.yaml", "--single-file", wrong[0], wrong[1]]);
        assert_eq!(told.code, 1, "{wrong:?}: {}", told.err);
        assert!(told.err.contains(wrong[1]) && told.err.contains(wrong[0]), "{}", told.err);
    }
}

#[test]
fn a_title_from_the_specification_is_only_text() {
    let home = Home::new();
    let mut spec = two_tables();
    spec["info"]["title"] = json!("../../<script>alert(1)</script> & \"{{name}}\" `x`");
    home.write("work/api.json", &spec.to_string());
    assert_eq!(run(&home, &["generate", "api.json", "-o", "ui"]).code, 0);
    let about = read(&home, "ui/src/generated/plan/about.ts");
    let title = r#"title: '../../<script>alert(1)</script> & "{{name}}" `x`',"#;
    assert!(about.contains(title), "{about}");
    let package: Value = serde_json::from_str(&read(&home, "ui/package.json")).expect("JSON");
    assert_eq!(package["name"], "script-alert-1-script-name-x-ui");
    assert_eq!(run(&home, &["generate", "api.json"]).code, 0);
    assert!(home.workspace().join("script-alert-1-script-name-x-ui/src/main.tsx").is_file());
}

#[test]
fn options_are_honored() {
    let home = with_bookshop();
    let flags = ["--theme", "dark", "--layout", "cards", "--no-auth", "--no-pagination", "--single-file"];
    let told = run(&home, &[&["generate", "bookshop.yaml"][..], &flags].concat());
    let plan = apiui::print::plan_of(&told.out).unwrap_or_else(|reason| panic!("{reason}: {}", told.err));
    assert_eq!(plan.theme, apiui::plan::Theme::Dark);
    assert_eq!(plan.layout, apiui::plan::Layout::Cards);
    assert!(!plan.auth && !plan.pagination);
    for wrong in [["--theme", "pink"], ["--layout", "spiral"]] {
        assert_eq!(run(&home, &["generate", "bookshop.yaml", wrong[0], wrong[1]]).code, 2);
    }
}

#[test]
fn stdin_files_and_folders() {
    let home = with_bookshop();
    let text = specification("bookshop.yaml");
    let piped = run_with(&home, &["generate", "-", "--single-file"], &text);
    assert_eq!(piped.code, 0, "{}", piped.err);
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "--single-file", "-o", "Shop.jsx"]).code, 0);
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "--single-file", "-o", "into/here"]).code, 0);
    assert!(read(&home, "Shop.jsx") == piped.out && read(&home, "into/here/App.jsx") == piped.out);
}

#[test]
fn nothing_that_is_there_is_written_over() {
    let home = with_bookshop();
    home.write("work/taken/notes.txt", "mine");
    home.write("work/App.jsx", "mine");
    for arguments in
        [["-o", "taken"].as_slice(), &["--single-file", "-o", "App.jsx"], &["--single-file", "-o", "."]]
    {
        let told = run(&home, &[&["generate", "bookshop.yaml"], arguments].concat());
        assert_eq!(told.code, 1, "{arguments:?}: {}", told.err);
        assert!(told.err.contains("-o"), "it says what to do: {}", told.err);
    }
    assert_eq!(read(&home, "taken/notes.txt"), "mine");
    assert_eq!(read(&home, "App.jsx"), "mine");
    assert_eq!(files_below(&home.workspace()), ["App.jsx", "bookshop.yaml", "taken/notes.txt"]);
    // A person may ask for it.
    let told = run(&home, &["generate", "bookshop.yaml", "--single-file", "-o", "App.jsx", "--overwrite"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(read(&home, "App.jsx").contains("const PLAN = "));
    // The old file is replaced as a whole; what a link leads to is not touched, and nothing is left beside it.
    #[cfg(unix)]
    {
        home.write("work/elsewhere.txt", "mine");
        std::os::unix::fs::symlink("elsewhere.txt", home.workspace().join("Link.jsx")).expect("a link");
        let told =
            run(&home, &["generate", "bookshop.yaml", "--single-file", "-o", "Link.jsx", "--overwrite"]);
        assert_eq!(told.code, 0, "{}", told.err);
        assert_eq!(read(&home, "elsewhere.txt"), "mine");
        assert!(read(&home, "Link.jsx").contains("const PLAN = "));
        let files = files_below(&home.workspace());
        assert_eq!(files, ["App.jsx", "Link.jsx", "bookshop.yaml", "elsewhere.txt", "taken/notes.txt"]);
    }
    // An empty folder is nobody's; a second run into the same one writes its generated part anew.
    std::fs::create_dir(home.workspace().join("empty")).expect("a folder");
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "empty"]).code, 0);
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "empty"]).code, 0);
}

#[cfg(react_bundle)]
#[test]
fn a_page_opens_without_a_build_and_carries_its_policy() {
    let home = with_bookshop();
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "--html", "-o", "shop.html"]).code, 0);
    let page = read(&home, "shop.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>Bookshop</title>"));
    assert!(page.contains("Content-Security-Policy"));
    assert!(page.contains("connect-src https://bookshop.example.com https://staging.bookshop.example.com;"));
    assert!(!page.contains("src=\"http"), "nothing is loaded from elsewhere");
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "--html"]).out, page);
    home.write("work/shop.html", "older and longer".repeat(200_000).as_str());
    let again = run(&home, &["generate", "bookshop.yaml", "--html", "-o", "shop.html"]);
    assert!(again.code == 1 && again.err.contains("--overwrite"), "{}", again.err);
    let told = run(&home, &["generate", "bookshop.yaml", "--html", "-o", "shop.html", "--overwrite"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(read(&home, "shop.html") == page, "the old page is replaced");
}

#[cfg(not(react_bundle))]
#[test]
fn without_the_bundle_a_page_says_what_is_missing() {
    let home = with_bookshop();
    let told = run(&home, &["generate", "bookshop.yaml", "--html"]);
    assert_eq!(told.code, 1);
    assert!(told.err.contains("React") && told.err.contains("`make`"), "{}", told.err);
}

/// Serves one document to everybody; gives its address.
fn serve(document: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/api.json", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let length = document.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(document.as_bytes()));
        }
    });
    address
}

#[test]
fn the_network_is_reached_only_when_asked() {
    let home = Home::new();
    let address = serve(two_tables().to_string());
    let told = run(&home, &["generate", &address, "--single-file"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.contains("data-operation=\"GET /orders\""));
    // The person did not ask for a reference to the network inside a file.
    let mut spec = two_tables();
    let schema = json!({"$ref": format!("{address}#/components/schemas/User")});
    spec["components"]["schemas"]["User"] = schema;
    home.write("work/api.json", &spec.to_string());
    let told = run(&home, &["spec", "check", "api.json"]);
    assert!(told.out.contains("--fetch-refs"), "{}{}", told.out, told.err);
    // Not even then does a specification reach this machine or a private network, by itself or by a redirect.
    for target in [
        address.as_str(),
        "http://169.254.169.254/x",
        "http://10.0.0.1/x",
        "http://[::1]:9/x",
        "http://localhost:9/x",
    ] {
        spec["components"]["schemas"]["User"] = json!({"$ref": format!("{target}#/components/schemas/User")});
        home.write("work/api.json", &spec.to_string());
        let told = run(&home, &["spec", "check", "api.json", "--fetch-refs"]);
        assert!(told.out.contains("public internet"), "{target}: {}{}", told.out, told.err);
    }
    // A server that the person named may refer to itself, and to no other one.
    let mut own = two_tables();
    own["components"]["schemas"]["User"] = json!({"$ref": "other.json#/components/schemas/User"});
    let own = serve(own.to_string());
    let told = run(&home, &["spec", "check", &own, "--fetch-refs"]);
    assert!(
        !told.out.contains("public internet") && !told.out.contains("fetch-refs"),
        "{}{}",
        told.out,
        told.err
    );
    let mut other = two_tables();
    other["components"]["schemas"]["User"] = json!({"$ref": format!("{address}#/components/schemas/User")});
    let told = run(&home, &["spec", "check", &serve(other.to_string()), "--fetch-refs"]);
    assert!(told.out.contains("public internet"), "{}{}", told.out, told.err);
    let told = run(&home, &["generate", "http://127.0.0.1:9/none", "--single-file"]);
    assert_eq!((told.code, told.out.as_str()), (1, ""), "{}", told.err);
}

#[test]
fn references_do_not_leave_the_folder_of_the_specification() {
    let home = Home::new();
    home.write(
        "outside.json",
        &json!({"type": "object", "properties": {"CANARY": {"type": "string"}}}).to_string(),
    );
    home.write(
        "work/api/parts/inside.json",
        &json!({"type": "object", "properties": {"INSIDE": {"type": "string"}}}).to_string(),
    );
    std::os::unix::fs::symlink("../../outside.json", home.workspace().join("api/out.json")).expect("a link");
    std::os::unix::fs::symlink("parts/inside.json", home.workspace().join("api/in.json")).expect("a link");
    std::os::unix::fs::symlink("../..", home.workspace().join("api/above")).expect("a link");
    for (reference, reads) in [
        ("parts/inside.json", true),
        ("./parts/../parts/inside.json", true),
        ("in.json", true),
        ("../../outside.json", false),
        ("parts/../../../outside.json", false),
        ("%2e%2e/%2e%2e/outside.json", false),
        ("out.json", false),
        ("above/outside.json", false),
    ] {
        let mut spec = two_tables();
        spec["components"]["schemas"]["User"] = json!({"$ref": reference});
        home.write("work/api/api.json", &spec.to_string());
        for (folder, file) in [("", "api/api.json"), ("api", "api.json")] {
            let mut command = home.command(&["generate", file, "--single-file"]);
            let output = command.current_dir(home.workspace().join(folder)).output().expect("it runs");
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(!text.contains("CANARY"), "{reference}");
            assert_eq!(text.contains("INSIDE"), reads, "{reference}: {text}");
            assert_eq!(text.contains("leads out of its folder"), !reads, "{reference}: {text}");
        }
    }
}

/// `script` gives the program a terminal.
#[cfg(target_os = "linux")]
#[test]
fn large_input_shows_its_progress_on_a_terminal_only() {
    let home = Home::new();
    let mut spec = two_tables();
    spec["info"]["description"] = json!("long ".repeat(300_000));
    home.write("work/large.json", &spec.to_string());
    let command = format!("'{}' generate large.json -o ui", env!("CARGO_BIN_EXE_dragoman"));
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).current_dir(home.workspace()).env("HOME", home.path());
    let output = terminal.stdin(Stdio::null()).output().expect("script");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for step in ["] reading", "[##########          ] planning", "[####################] writing"] {
        assert!(shown.contains(step), "{step}: {shown}");
    }
    let told = run(&home, &["generate", "large.json", "-o", "quiet"]);
    assert!(told.code == 0 && !told.err.contains("[###"), "{}", told.err);
}

#[test]
fn what_cannot_be_used_is_told_with_its_place() {
    let home = Home::new();
    home.write("work/comma.json", "{\n  \"openapi\": \"3.0.0\",,\n}");
    home.write("work/old.raml", "#%RAML 1.0\ntitle: x\n");
    home.write("work/empty.yaml", "");
    for (file, says) in [
        ("comma.json", "comma.json:2:22: error:"),
        ("old.raml", "RAML"),
        ("empty.yaml", "empty"),
        ("missing.yaml", "missing.yaml cannot be read"),
        (".", "not a file"),
    ] {
        for arguments in [["generate", file].as_slice(), &["spec", "check", file]] {
            let told = run(&home, arguments);
            assert_eq!(told.code, 1, "{arguments:?}");
            let all = told.out + &told.err;
            assert!(all.contains(says), "{arguments:?}: {all}");
        }
    }
    assert_eq!(files_below(&home.workspace()), ["comma.json", "empty.yaml", "old.raml"], "nothing was begun");
    assert_eq!(run(&home, &["generate"]).code, 2);
    assert_eq!(run(&home, &["spec", "check"]).code, 2);
}

#[test]
fn a_linter_for_people_and_for_scripts() {
    let home = Home::new();
    home.write("work/sloppy.yaml", &specification("sloppy.yaml"));
    home.write("work/dangling.yaml", &specification("invalid/dangling.yaml"));
    let told = run(&home, &["spec", "check", "sloppy.yaml"]);
    assert_eq!(told.code, 0, "warnings are not errors: {}", told.out);
    assert!(told.out.contains("sloppy.yaml#/") && told.out.contains(": warning: "), "{}", told.out);
    assert!(told.out.contains("sloppy.yaml: usable, "), "{}", told.out);
    let report = |file: &str, code: i32| -> Value {
        let told = run(&home, &["spec", "check", file, "--json"]);
        assert_eq!(told.code, code, "{}", told.err);
        serde_json::from_str(&told.out).expect("JSON and nothing else")
    };
    let good = report("sloppy.yaml", 0);
    assert_eq!(good["usable"], true);
    let problems = good["problems"].as_array().expect("problems");
    assert!(
        !problems.is_empty() && problems.iter().all(|problem| problem["severity"] == "warning"),
        "{good}"
    );
    let bad = report("dangling.yaml", 1);
    assert_eq!((&bad["usable"], &bad["problems"][0]["severity"]), (&json!(false), &json!("error")), "{bad}");
    let place = &bad["problems"][0]["place"];
    assert!(place["pointer"].as_str().is_some_and(|pointer| pointer.starts_with('/')), "{bad}");
    assert_eq!(run_with(&home, &["spec", "check", "-"], &specification("sloppy.yaml")).code, 0);
}

#[test]
fn a_project_keeps_the_options_it_was_generated_with() {
    let home = with_bookshop();
    let first = [
        "generate",
        "bookshop.yaml",
        "-o",
        "ui",
        "--theme",
        "dark",
        "--title",
        "My shop",
        "--server",
        "https://shop.example/v9",
        "--header",
        "X-Tenant: 7",
        "--no-pagination",
    ];
    assert_eq!(run(&home, &first).code, 0);
    let about = read(&home, "ui/src/generated/plan/about.ts");
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "ui"]).code, 0);
    assert_eq!(read(&home, "ui/src/generated/plan/about.ts"), about, "the same without the options");
    // An option of a later command line wins, and the others stay.
    assert_eq!(run(&home, &["generate", "bookshop.yaml", "-o", "ui", "--theme", "light"]).code, 0);
    let about = read(&home, "ui/src/generated/plan/about.ts");
    assert!(about.contains("theme: \"light\"") && about.contains("title: \"My shop\""), "{about}");
    assert!(about.contains("shop.example/v9") && about.contains("X-Tenant"), "{about}");
    let kept: Value = serde_json::from_str(&read(&home, "ui/dragoman.json")).expect("JSON");
    assert_eq!(kept["options"]["theme"], "light", "{kept}");
    assert_eq!(kept["options"]["noPagination"], true, "{kept}");
}

/// Runs the program beside a fake model.
async fn run_with_model(home: &Home, fake: &FakeModel, arguments: &[&str]) -> Ended {
    let mut command = home.command(arguments);
    command.env("DRAGOMAN_CONFIG", fake_provider(fake.url(), "openai-chat").to_string());
    command.stdin(Stdio::null());
    let output =
        tokio::task::spawn_blocking(move || command.output()).await.expect("runs").expect("the program");
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[tokio::test]
async fn a_model_edits_the_plan_of_a_wish_that_is_not_understood() {
    let (home, fake) = (with_bookshop(), FakeModel::start().await);
    let wish = "Greet people with a poem above every list";
    let slot = "function ListSlot({ resource }) {\n  return <p>{`Roses are red, ${resource.title}`}</p>;\n}";
    let edits = json!({"edits": [
        {"edit": "slot", "slot": "List", "code": slot},
        {"edit": "describeView", "view": "Books", "note": "What is for sale."},
    ]});
    fake.answer(Answer::text("no JSON"));
    fake.answer(Answer::text(&edits.to_string()));
    let ask = ["generate", "bookshop.yaml", "-o", "ui", "--ask", wish];
    let told = run_with_model(&home, &fake, &ask).await;
    assert_eq!(told.code, 0, "{}", told.err);
    assert_eq!(fake.requests().len(), 2, "a refused answer is shown once more");
    assert!(fake.last_request().tools().is_empty());
    let slots = read(&home, "ui/src/generated/runtime/slots.tsx");
    assert!(
        slots.contains("Roses are red") && slots.contains("export { FilledList as ListSlot }"),
        "{slots}"
    );
    // Generating again needs no model: what it answered is kept with the project.
    let told = run(&home, &["generate", "bookshop.yaml", "-o", "ui"]);
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(read(&home, "ui/src/generated/runtime/slots.tsx").contains("Roses are red"));
    assert!(read(&home, "ui/src/generated/plan/Books.ts").contains("What is for sale."));
    // The same wish for the same interface is not asked twice, in whatever form it is generated.
    let told =
        run_with_model(&home, &fake, &["generate", "bookshop.yaml", "--single-file", "--ask", wish]).await;
    assert!(told.out.contains("Roses are red") && check(&told.out).is_ok(), "{}", told.err);
    assert_eq!(fake.requests().len(), 2);
    // Without a model the wish is refused as before.
    let told = run(&home, &["generate", "bookshop.yaml", "--single-file", "--ask", "Write another poem"]);
    assert_eq!(told.code, 1, "{}", told.err);
    assert!(told.err.contains("Nothing was written"), "{}", told.err);
}

#[tokio::test]
async fn a_model_improves_an_interface_only_when_it_is_asked_to() {
    let (home, fake) = (with_bookshop(), FakeModel::start().await);
    let told = run_with_model(&home, &fake, &["generate", "bookshop.yaml", "--single-file"]).await;
    assert_eq!((told.code, fake.requests().len()), (0, 0), "{}", told.err);
    let edits = json!({"edits": [
        {"edit": "groupView", "view": "Orders", "group": "Sold"},
        {"edit": "renameColumn", "view": "Books", "field": "isbn", "label": "Book number"},
        {"edit": "key", "view": "Books", "parameter": "bookId", "field": "isbn"},
    ]});
    fake.answer(Answer::text(&edits.to_string()));
    let improve = ["generate", "bookshop.yaml", "--single-file", "--improve"];
    let told = run_with_model(&home, &fake, &improve).await;
    assert_eq!(told.code, 0, "{}", told.err);
    let plan = apiui::print::plan_of(&told.out).expect("our own code");
    let books = plan.resources.iter().find(|one| one.title == "Books").expect("Books");
    assert!(plan.resources.iter().any(|one| one.title == "Orders" && one.group == "Sold"));
    let columns = &books.list.as_ref().expect("a list").columns;
    assert!(columns.iter().any(|column| column.label == "Book number"));
    assert_eq!(books.keys[0].field, "id", "a key that the specification names stays");
    assert_eq!(run_with_model(&home, &fake, &improve).await.out, told.out, "kept");
    assert_eq!(fake.requests().len(), 1);
    let told = run(&home, &improve);
    assert_eq!(told.code, 0, "what was answered is kept, so no model is needed: {}", told.err);
}
