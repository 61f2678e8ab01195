//! `dragoman serve` in a real browser, with a model and other programs beside it, each used from outside (`flows.mjs`).
//!
//! Needs what `make` fetches and builds under `target/web`, and Chromium. Without them a test says so and passes, unless
//! `DRAGOMAN_BROWSER` is set (as `make test` does): then they are required.

#![cfg(feature = "serve")]
#![allow(clippy::disallowed_methods, reason = "tests drive the program from outside, with node and Chromium")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn web() -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("DRAGOMAN_WEB").map_or_else(|| repository.join("target/web"), PathBuf::from)
}

fn browser() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from("/usr/bin/chromium"), PathBuf::from)
}

fn is_present() -> bool {
    let (page, browser) = (web().join("chats/chats.js"), browser());
    if page.exists() && browser.exists() {
        return true;
    }
    let missing = format!("{} or {} is missing; run `make`", page.display(), browser.display());
    assert!(std::env::var_os("DRAGOMAN_BROWSER").is_none(), "{missing}");
    #[allow(clippy::print_stdout, reason = "says why nothing was run")]
    {
        println!("not run: {missing}");
    }
    false
}

/// Runs one flow with a home of its own. Pictures of a failure stay in the folder.
fn run(flow: &str) {
    if !is_present() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve").join(flow);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/driver.mjs");
    let mut command = Command::new("node");
    command.arg(driver).arg(flow).arg(env!("CARGO_BIN_EXE_dragoman")).arg(web()).arg(&folder);
    let output = command.env("CHROMIUM", browser()).output().expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A new chat: a prompt, a tool call with its difference, an approval, a question, tasks, cost; then found by search.
#[test]
fn a_chat_from_the_first_prompt_to_its_cost() {
    run("chat");
}

/// Stop, steer and take back, fork, roll back.
#[test]
fn a_turn_is_steered_stopped_forked_and_rolled_back() {
    run("control");
}

/// A chat of an editor is followed, prompted and approved in the page, and the editor sees all of it; the page goes on when
/// the editor dies.
#[test]
fn a_chat_of_another_program_is_attached() {
    run("attached");
}

/// A server for other machines asks for a token, and shows what the role may do and no more.
#[test]
fn a_role_is_shown_what_it_may_do() {
    run("roles");
}

/// Keyboard only; axe-core in light and dark, wide and on a phone; text of models is never HTML.
#[test]
fn keyboard_themes_and_a_phone() {
    run("keyboard");
}
