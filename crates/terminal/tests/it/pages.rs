//! Pages, searches and notifications of the terminal, without a terminal.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use domain::ask::{Ask, AskKind};
use domain::command::Context;
use domain::event::{Fact, SessionUsage};
use domain::model::Tokens;
use domain::tool::{ServerStatus, ToolServer};
use domain::tool_call::{Origin, ToolCall, ToolState};
use domain::{AskId, Event, EventBody, Item, ItemId, ItemKind, Outcome, Part, TurnId};
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
        prompts: Vec::new(),
        resources: Vec::new(),
        has_login: false,
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
    for (diff, new_files, expected) in [
        ("@@ -1 +1 @@\n-old\n+new\n", "", &["+new"][..]),
        ("@@ -1 +1 @@\n-old\n+new\n", "made.rs\nfolder/\n", &["+new", "New files", "made.rs", "folder/"]),
        ("", "made.rs\n", &["New files", "made.rs"]),
        ("", "", &["The working tree has no changes."]),
    ] {
        let (diff, new_files) = (diff.to_owned(), new_files.to_owned());
        bench.screen.apply_update(Update::Diff { diff, new_files });
        let seen = bench.seen(80, 20);
        assert!(expected.iter().all(|words| seen.contains(words)), "{expected:?}:\n{seen}");
        assert_eq!(seen.contains("New files"), expected.contains(&"New files"), "{seen}");
    }
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

/// A command that does not exist is not sent to the model, with words after it or not; a space before it sends it.
#[test]
fn an_unknown_command_stays_in_the_input() {
    for (line, name) in [("/nosuch", "nosuch"), ("/nosuch thing", "nosuch"), ("/status now", "status")] {
        let mut bench = Bench::new();
        say(&mut bench, line);
        // The engine has no such command.
        let query = name.to_owned();
        bench.screen.apply_update(Update::Commands { query, found: Vec::new() });
        let sent = |effect: &Effect| matches!(effect, Effect::Prompt(_) | Effect::Steer(_));
        assert!(!bench.effects().iter().any(sent), "{line}");
        let seen = bench.seen(100, 20);
        assert!(seen.contains(line) && (seen.contains("no command") || seen.contains("no words")), "{seen}");
    }
    for (line, text) in [(" /nosuch thing", " /nosuch thing"), ("/etc/hosts", "/etc/hosts")] {
        let mut bench = Bench::new();
        say(&mut bench, line);
        let effects = bench.effects();
        let is_it = |effect: &Effect| matches!(effect, Effect::Prompt(prompt) if prompt.text == text);
        assert!(effects.iter().any(is_it), "{line}: {effects:?}");
    }
}

/// `@path` that was pasted or typed to its end names a file as well as one that was chosen. A folded paste names none.
#[test]
fn words_name_files_whether_they_were_chosen_or_not() {
    let mut bench = Bench::new();
    bench.screen.handle_paste("look at @src/main.rs please");
    bench.key(KeyCode::Enter);
    let effects = bench.effects();
    let Some(Effect::PromptWithFiles { written, .. }) = effects.last() else { panic!("{effects:?}") };
    assert_eq!(written, "look at @src/main.rs please");
    bench.screen.handle_paste(&"a line of a log with @src/main.rs\n".repeat(30));
    bench.key(KeyCode::Enter);
    let effects = bench.effects();
    assert!(matches!(effects.last(), Some(Effect::Prompt(_))), "{effects:?}");
}

/// A running turn takes text alone, so an image stays with its text until the turn has ended.
#[test]
fn an_image_is_not_lost_while_an_answer_runs() {
    let mut bench = Bench::new();
    bench.started();
    bench.screen.handle_paste("data:image/png;base64,iVBORw0KGgo=");
    say(&mut bench, " look");
    assert_eq!(bench.effects(), []);
    assert!(bench.seen(80, 20).contains("Images wait"), "{}", bench.seen(80, 20));
    bench.fact(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done });
    bench.key(KeyCode::Enter);
    let effects = bench.effects();
    let Some(Effect::Prompt(prompt)) = effects.last() else { panic!("{effects:?}") };
    assert!(matches!(&prompt.contexts[..], [Context::Image { .. }]), "{:?}", prompt.contexts);
}

/// A prompt that was not sent comes back with what belongs to it.
#[test]
fn a_prompt_that_was_not_sent_keeps_its_contexts() {
    let mut bench = Bench::new();
    let contexts = vec![Context::Text { name: "output".to_owned(), text: "of a command".to_owned() }];
    let failure = domain::Failure::user("No key.");
    let update = Update::NotSent { text: "look".to_owned(), contexts: contexts.clone(), failure };
    bench.screen.apply_update(update);
    bench.key(KeyCode::Enter);
    let effects = bench.effects();
    let Some(Effect::Prompt(prompt)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!((prompt.text.as_str(), &prompt.contexts), ("look", &contexts));
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
            let (text, options) = ("Which?".to_owned(), Vec::new());
            let kind = AskKind::Question { text, options, freeform: true, url: None };
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

#[test]
fn the_status_line_counts_jobs() {
    let mut bench = Bench::new();
    let event = Event { session: None, body: EventBody::Catalog(domain::event::CatalogKind::Jobs) };
    bench.screen.handle_event(&event);
    assert_eq!(bench.effects(), [Effect::Jobs]);
    for (running, mark) in [(0, None), (1, Some("1 job")), (3, Some("3 jobs"))] {
        bench.screen.apply_update(Update::Jobs(running));
        let seen = bench.seen(100, 10);
        let status = seen.lines().last().unwrap_or_default();
        assert_eq!(status.contains("job"), mark.is_some(), "{status}");
        assert!(mark.is_none_or(|mark| status.contains(mark)), "{status}");
    }
}
