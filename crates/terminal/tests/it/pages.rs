//! Pages, searches and notifications of the terminal, without a terminal.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use domain::ask::{Ask, AskKind};
use domain::event::{Fact, SessionUsage};
use domain::model::Tokens;
use domain::tool::{ServerStatus, ToolServer};
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{AskId, Item, ItemId, ItemKind, Outcome, Part, TurnId};
use terminal::chat::screen::{Effect, Update};

use crate::screen::Bench;

fn ended(bench: &mut Bench, id: u64, kind: ItemKind) {
    bench.fact(Fact::ItemEnded {
        item: Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind },
    });
}

fn user(text: &str) -> ItemKind {
    ItemKind::UserMessage { text: text.to_owned(), parts: Vec::new() }
}

fn read_call(result: &str) -> ItemKind {
    ItemKind::ToolCall(Box::new(ToolCall {
        call_id: "c".to_owned(),
        name: "read_file".to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        input_text: "{}".to_owned(),
        input: None,
        state: ToolState::Done,
        summary: String::new(),
        details: None,
        manual_approval: false,
        live_output: String::new(),
        result: vec![Part::text(result)],
        error: false,
        millis: 0,
        locations: Vec::new(),
        provider: None,
    }))
}

fn say(bench: &mut Bench, text: &str) {
    bench.text(text);
    bench.key(KeyCode::Enter);
}

#[test]
fn the_context_is_shown_by_source() {
    let mut bench = Bench::new();
    say(&mut bench, "/context");
    assert!(bench.seen(80, 20).contains("No request was sent yet"), "{}", bench.seen(80, 20));
    bench.key(KeyCode::Esc);
    ended(&mut bench, 1, user(&"question ".repeat(100)));
    ended(&mut bench, 2, read_call(&"line of a file\n".repeat(400)));
    let last = Tokens { input: 4000, output: 1000, ..Tokens::default() };
    let usage = SessionUsage { last, context_limit: Some(100_000), ..SessionUsage::default() };
    bench.fact(Fact::UsageChanged { usage });
    say(&mut bench, "/context");
    let seen = bench.seen(80, 20);
    for words in ["5k of 100k tokens, 5 %", "Instructions and tools", "Tool read_file", "Your messages"] {
        assert!(seen.contains(words), "{words} is missing:\n{seen}");
    }
    let place = |words: &str| seen.find(words).unwrap();
    assert!(place("Instructions and tools") < place("Tool read_file"), "the largest first:\n{seen}");
    assert!(place("Tool read_file") < place("Your messages"), "{seen}");
}

#[test]
fn usage_servers_diff_and_copy_have_their_commands() {
    let mut bench = Bench::new();
    say(&mut bench, "/usage");
    assert!(bench.seen(80, 20).contains("no price is known"), "{}", bench.seen(80, 20));
    bench.key(KeyCode::Esc);
    say(&mut bench, "/mcp");
    assert!(bench.seen(80, 20).contains("No MCP server is configured"));
    bench.key(KeyCode::Esc);
    let weather = ToolServer {
        name: "weather".to_owned(),
        origin: Origin::Mcp,
        status: ServerStatus::Failed,
        command: String::new(),
        args: Vec::new(),
        url: None,
        error: Some("The program was not found.".to_owned()),
        tools: Vec::new(),
    };
    let own = ToolServer { name: "ECA".to_owned(), origin: Origin::Native, error: None, ..weather.clone() };
    bench.screen.apply_update(Update::Servers(vec![own.clone()]));
    say(&mut bench, "/mcp");
    let seen = bench.seen(80, 20);
    assert!(seen.contains("No MCP server is configured") && seen.contains("Built in (0 tools)"), "{seen}");
    assert!(!seen.contains("ECA"), "the built-in tools are no server of the user's:\n{seen}");
    bench.key(KeyCode::Esc);
    bench.screen.apply_update(Update::Servers(vec![own, weather]));
    say(&mut bench, "/status");
    let seen = bench.seen(80, 20);
    assert!(seen.contains("weather (failed, 0 tools)") && !seen.contains("ECA"), "{seen}");
    bench.key(KeyCode::Esc);
    say(&mut bench, "/mcp");
    let seen = bench.seen(80, 20);
    assert!(seen.contains("weather (failed") && seen.contains("The program was not found."), "{seen}");
    bench.key(KeyCode::Esc);
    bench.effects();
    say(&mut bench, "/diff");
    assert_eq!(bench.effects(), [Effect::Diff]);
    bench.screen.apply_update(Update::Diff("@@ -1 +1 @@\n-old\n+new\n".to_owned()));
    assert!(bench.seen(80, 20).contains("+new"));
    bench.key(KeyCode::Esc);
    say(&mut bench, "/copy");
    assert_eq!(bench.effects(), [], "there is nothing to copy");
    ended(
        &mut bench,
        3,
        ItemKind::AgentMessage { text: "The answer.".to_owned(), interrupted: false, provider: None },
    );
    say(&mut bench, "/copy");
    assert_eq!(bench.effects(), [Effect::Copy("The answer.".to_owned())]);
}

#[test]
fn a_review_is_a_prompt_about_the_changes() {
    let mut bench = Bench::new();
    for (command, words) in [("/review", "git diff HEAD"), ("/review main", "git diff main")] {
        say(&mut bench, command);
        let effects = bench.effects();
        let Some(Effect::Prompt(prompt)) = effects.last() else { panic!("{effects:?}") };
        assert!(prompt.text.contains(words) && prompt.text.contains("Change nothing"), "{}", prompt.text);
    }
}

#[test]
fn control_r_searches_earlier_prompts() {
    let mut bench = Bench::new();
    for (id, text) in ["find the bug", "write a test", "find the leak"].iter().enumerate() {
        ended(&mut bench, id as u64 + 1, user(text));
    }
    bench.effects();
    bench.screen.handle_key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL));
    bench.text("find");
    let seen = bench.seen(80, 20);
    assert!(seen.find("find the leak") < seen.find("find the bug"), "the newest first:\n{seen}");
    bench.key(KeyCode::Down);
    bench.key(KeyCode::Enter);
    assert_eq!(bench.screen.input.text(), "find the bug");
    assert_eq!(bench.effects(), [], "nothing is sent");
}

#[test]
fn the_user_is_called_only_while_looking_elsewhere() {
    let notified = |focused: Option<bool>, asks: bool, seconds: u64| {
        let mut bench = Bench::new();
        bench.screen.focused = focused;
        bench.started();
        bench.later(Duration::from_secs(seconds));
        if asks {
            let kind = AskKind::Question { text: "Which?".to_owned(), options: Vec::new(), freeform: true };
            bench.fact(Fact::AskRaised { ask: Ask { id: AskId(1), turn: TurnId(1), item: None, kind } });
        } else {
            bench.fact(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done });
        }
        bench.effects().iter().any(|effect| matches!(effect, Effect::Notify(_)))
    };
    assert!(notified(Some(false), true, 1) && notified(None, true, 1), "a question");
    assert!(!notified(Some(true), true, 1), "the user sees it");
    assert!(notified(Some(false), false, 60), "the end of a long turn");
    assert!(!notified(Some(false), false, 2), "not of a short one");
}
