//! A generated project in the hands of a team: its own commands pass, with the packages that `make` installs.
//!
//! Without them (`target/web/project`) or without a browser the test says so and passes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use testkit::{Answer, FakeModel};

use super::copilot_host::specification;
use crate::client::{Home, fake_provider};

fn packages() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let web = std::env::var_os("DRAGOMAN_WEB").map_or_else(|| repository.join("target/web"), PathBuf::from);
    web.join("project/node_modules")
}

/// Runs a command of the project and shows what it says where it fails.
fn run(folder: &Path, script: &str, browser: &Path, port: u16) {
    let mut command = Command::new("npm");
    command.args(["run", "--silent", script]).current_dir(folder);
    command.env("BROWSER_PATH", browser).env("PORT", port.to_string()).env("CI", "1");
    let output = command.output().expect("npm");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "npm run {script}:\n{said}");
}

/// A model that fills slots: what it writes stands in the project and passes its checks too.
async fn free_changes() -> FakeModel {
    let model = FakeModel::start().await;
    let list = "function ListSlot({ resource, items }) {\n  const [isOpen, setIsOpen] = useState(false);\n  return <p><Button \
        label={`${items.length} of ${resource.title}`} whenPressed={() => setIsOpen(!isOpen)} />{isOpen ? textOf(items[0]) : null}</p>;\n}";
    let foot = "function FootSlot() {\n  return <p>With kind regards</p>;\n}";
    let edits = json!({"edits": [
        {"edit": "slot", "slot": "List", "code": list},
        {"edit": "slot", "slot": "Foot", "code": foot},
        {"edit": "slot", "slot": "Styles", "code": ".dragoman p { margin: 0; }"},
    ]});
    model.answer(Answer::text(&edits.to_string()));
    model
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_a_project_pass() {
    let packages = packages();
    let browser =
        std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    if !packages.join("typescript").is_dir() || !browser.exists() {
        let (packages, browser) = (packages.display(), browser.display());
        testkit::skip(format!("{packages} or {browser} is missing; run `make`"));
        return;
    }
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let model = free_changes().await;
    for name in specifications() {
        let folder = generate(&home, name, &packages, &model).await;
        for script in ["typecheck", "lint", "test"] {
            run(&folder, script, &browser, free.port());
        }
        if *name == "bookshop.yaml" {
            run(&folder, "test:browser", &browser, free.port());
            assert!(folder.join("dist/index.html").is_file(), "the browser test builds the project");
        }
    }
}

/// Forms, answers and relations of every kind; with the full counts also GraphQL, odd shapes, files and old formats.
fn specifications() -> &'static [&'static str] {
    let all = &[
        "bookshop.yaml",
        "gallery.yaml",
        "library.graphql",
        "shapes.yaml",
        "files.yaml",
        "ledger.yaml",
        "hostile.yaml",
        "parcels.json",
    ];
    let scale = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse::<usize>().ok());
    if scale.unwrap_or(1) >= 10 { all } else { &all[..2] }
}

async fn generate(home: &Home, name: &str, packages: &Path, model: &FakeModel) -> PathBuf {
    home.write(&format!("work/{name}"), &specification(name));
    let output = format!("ui-{}", name.split('.').next().unwrap_or(name));
    let mut command: tokio::process::Command = home.command(&["generate", name, "-o", &output]).into();
    if name == "gallery.yaml" {
        command.args(["--ask", "Greet people above each list"]);
        command.env("DRAGOMAN_CONFIG", fake_provider(model.url(), "openai-chat").to_string());
    }
    let made = command.output().await.expect("the program");
    assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
    let folder = home.workspace().join(output);
    let slots = std::fs::read_to_string(folder.join("src/generated/runtime/slots.tsx")).expect("slots");
    assert_eq!(slots.contains("With kind regards"), name == "gallery.yaml", "{slots}");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).expect("a link");
    folder
}
