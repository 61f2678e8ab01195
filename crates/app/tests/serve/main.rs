//! `dragoman serve` in a real browser, with a model and other programs beside it, each used from outside (`flows.mjs`).

#![cfg(feature = "serve")]
#![allow(clippy::disallowed_methods, reason = "tests drive the program from outside, with node and Chromium")]

#[path = "../../../../web/common/tests/mod.rs"]
mod browser;

fn run(flow: &str) {
    browser::Flows { folder: "crates/app/tests/serve", page: "chats/chats.js" }.run(flow);
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
fn chats_by_keyboard_in_both_themes_and_on_a_phone() {
    run("keyboard");
}
