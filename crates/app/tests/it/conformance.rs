//! The MCP project's own conformance suites against the real binary: the published one, and the newest pre-release, which
//! covers 2026-07-28. `tests/conformance/client.py` is the client command.
//!
//! `make test` runs a fixed part, `make test-full` everything. `tests/conformance/may-fail.txt` lists what may fail; a scenario in
//! it that passes is a failure too, so the list can only shrink.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::client::Home;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(180);
const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

/// Run by `make test`: the core, and what a login must not do.
const PART: &[(&str, &str)] = &[
    ("stable", "initialize"),
    ("stable", "tools_call"),
    ("stable", "elicitation-sep1034-client-defaults"),
    ("stable", "auth/metadata-var3"),
    ("stable", "auth/scope-step-up"),
    ("stable", "auth/pre-registration"),
    ("stable", "auth/cross-app-access-complete-flow"),
    ("next", "request-metadata"),
    ("next", "sep-2322-client-request-state"),
    ("next", "http-custom-headers"),
    ("next", "auth/resource-mismatch"),
    ("next", "auth/authorization-server-migration"),
    ("next", "auth/iss-wrong-issuer"),
    ("next", "auth/client-credentials-basic"),
    ("next", "auth/enterprise-managed-authorization"),
];

/// Judged by how late the client is, in milliseconds: on a busy machine one run says nothing.
const TIMED: &[&str] = &["sse-retry"];

async fn output(mut command: Command, limit: Duration) -> Option<std::process::Output> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    tokio::time::timeout(limit, command.output()).await.ok()?.ok()
}

/// The suite, installed below the target folder by its lock file; `None` where there is no npm or registry.
async fn installed(suite: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("conformance-{suite}"));
    let ours = Path::new(FOLDER).join(suite);
    let lock = std::fs::read_to_string(ours.join("package-lock.json")).expect("a lock file");
    let done = folder.join("installed");
    if std::fs::read_to_string(&done).ok().as_ref() != Some(&lock) {
        std::fs::create_dir_all(&folder).expect("a folder");
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(ours.join(file), folder.join(file)).expect("a copy");
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
            .current_dir(&folder);
        let installed = output(npm, INSTALL_TIMEOUT).await.filter(|it| it.status.success());
        if installed.is_none() {
            testkit::skip(format!("npm cannot install the {suite} conformance suite here"));
            return None;
        }
        std::fs::write(&done, lock).expect("a mark");
    }
    Some(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
}

fn suite_command(program: &Path, home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command
        .arg("--import")
        .arg(Path::new(FOLDER).join("node20.mjs"))
        .arg(program)
        .args(arguments)
        .env("DRAGOMAN", env!("CARGO_BIN_EXE_dragoman"))
        .current_dir(home.path());
    command
}

/// The client scenarios of a suite, without those of other extensions' files.
async fn scenarios(program: &Path) -> Vec<String> {
    let home = Home::new();
    let listed = output(suite_command(program, &home, &["list"]), SCENARIO_TIMEOUT).await.expect("a list");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let clients = text.split("Client scenarios").nth(1).expect("client scenarios");
    let clients = clients.split("Authorization server scenarios").next().expect("a part");
    let name = |line: &str| line.trim().strip_prefix("- ")?.split(' ').next().map(str::to_owned);
    clients.lines().filter_map(name).collect()
}

/// Whether the scenario passes, and what the suite printed.
async fn passes(program: &Path, scenario: &str) -> (bool, String) {
    let home = Home::new();
    // The suite cuts the command at blanks, which the path of this project may have.
    let client = home.path().join("client.py");
    std::os::unix::fs::symlink(Path::new(FOLDER).join("client.py"), &client).expect("a link");
    let client = format!("python3 {}", client.display());
    let arguments = ["client", "--scenario", scenario, "--timeout", "150000", "--command", &client];
    let attempts = if TIMED.contains(&scenario) { 3 } else { 1 };
    let mut said = String::new();
    for _ in 0..attempts {
        let Some(ran) = output(suite_command(program, &home, &arguments), SCENARIO_TIMEOUT).await else {
            return (false, "it did not end in time".to_owned());
        };
        if ran.status.success() {
            return (true, String::new());
        }
        let text =
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        said = text.lines().filter(|line| !line.contains("INFO")).collect::<Vec<_>>().join("\n");
    }
    (false, said)
}

fn may_fail() -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(format!("{FOLDER}/may-fail.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(suite, name)| (suite.into(), name.trim().into()))
        .collect()
}

/// The version of a suite, as our package file names it.
fn version(suite: &str) -> String {
    let text = std::fs::read_to_string(format!("{FOLDER}/{suite}/package.json")).expect("a package file");
    let package: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let version = &package["dependencies"]["@modelcontextprotocol/conformance"];
    version.as_str().expect("a version").to_owned()
}

fn is_full() -> bool {
    std::env::var("DRAGOMAN_TEST_SCALE").is_ok_and(|scale| scale == "10")
}

#[tokio::test]
async fn the_official_suites_pass() {
    let allowed = may_fail();
    let mut wrong = Vec::new();
    for suite in ["stable", "next"] {
        let (mut passed, mut failed) = (0, 0);
        let Some(program) = installed(suite).await else { continue };
        let part = PART.iter().filter(|(of, _)| *of == suite).map(|(_, name)| (*name).to_owned());
        let names: Vec<String> = if is_full() { scenarios(&program).await } else { part.collect() };
        assert!(!names.is_empty(), "{suite} has no client scenarios");
        for name in names {
            let (is_good, said) = passes(&program, &name).await;
            let is_allowed = allowed.contains(&(suite.to_owned(), name.clone()));
            match (is_good, is_allowed) {
                (true, false) => passed += 1,
                (false, true) => failed += 1,
                (true, true) => wrong.push(format!("{suite} {name} passes: take it off may-fail.txt")),
                (false, false) => wrong.push(format!("{suite} {name} fails:\n{said}")),
            }
        }
        let version = version(suite);
        let mark = if is_full() && wrong.is_empty() { "figure: " } else { "" };
        println!("{mark}MCP conformance suite {version}: {passed} scenarios pass, {failed} fail as listed");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
