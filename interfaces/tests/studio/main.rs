//! `dragoman studio` in a real browser: the page, the frame, a live API, each used from outside (`flows.mjs`, `attacks.mjs`).

#![cfg(feature = "interfaces")]
#![allow(clippy::disallowed_methods, reason = "tests drive the program from outside, with node and Chromium")]

#[path = "../../../web/common/tests/mod.rs"]
mod browser;

fn run(flow: &str) {
    browser::Flows { folder: "interfaces/tests/studio", page: "studio/studio.js" }.run(flow);
}

/// Drop, confirm the address, sign in, list, create, a refusal, an error, an expired token, signing in again.
#[test]
fn from_a_drop_to_live_data() {
    run("live");
}

/// By paste, by address, by chat; problems, missing references, private addresses.
#[test]
fn specifications_come_in_every_way() {
    run("specifications");
}

#[test]
fn changes_wait_in_order_and_ask_what_is_unclear() {
    run("changes");
}

#[test]
fn versions_are_compared_restored_and_survive_a_restart() {
    run("versions");
}

#[test]
fn ten_tabs_stay_quick() {
    run("tabs");
}

#[test]
fn a_child_that_is_killed_comes_back_with_the_answer() {
    run("killed");
}

#[test]
fn the_console_shows_requests_without_secrets() {
    run("consoles");
}

#[test]
fn a_guided_sign_in_uses_pkce() {
    run("oauth");
}

/// By API key in header and query, and by name and password.
#[test]
fn keys_and_passwords_sign_in() {
    run("signIns");
}

#[test]
fn server_sent_events_come_while_they_are_sent() {
    run("streams");
}

/// Each call after a click; a warning before its server is removed; versions name what they miss.
#[test]
fn tools_are_called_one_by_one_after_a_click() {
    run("tools");
}

#[test]
fn plugins_are_tried_added_and_removed() {
    run("plugins");
}

#[test]
fn an_interface_is_exported_in_three_forms() {
    run("exports");
}

/// Divider, tabs, dialogs by keyboard; axe-core in light and dark, wide and narrow.
#[test]
fn studio_by_keyboard_in_both_themes_and_on_a_phone() {
    run("keyboard");
}

/// Parent, network, navigation, storage, popups, forged messages, an endless loop: none works, each is logged.
#[test]
fn hostile_code_stays_in_its_frame() {
    run("attacks");
}
