//! A generated project in the hands of a team: its own commands pass, with the packages that `make` installs.
//!
//! Without them (`target/web/project`) or without a browser the test says so and passes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::Home;
use crate::copilot_host::specification;

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

#[test]
fn the_commands_of_a_project_pass() {
    let packages = packages();
    let browser =
        std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from);
    if !packages.join("typescript").is_dir() || !browser.exists() {
        #[allow(clippy::print_stdout, reason = "says why nothing was run")]
        {
            println!("not run: {} or {} is missing; run `make`", packages.display(), browser.display());
        }
        return;
    }
    let home = Home::new();
    home.write("work/bookshop.yaml", &specification("bookshop.yaml"));
    let made = home.command(&["generate", "bookshop.yaml", "-o", "ui"]).output().expect("the program");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let folder = home.workspace().join("ui");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).expect("a link");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    for script in ["typecheck", "lint", "test", "test:browser"] {
        run(&folder, script, &browser, free.port());
    }
    assert!(folder.join("dist/index.html").is_file(), "the browser test builds the project");
}
