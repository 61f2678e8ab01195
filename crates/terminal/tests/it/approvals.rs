//! The dialog of an approval, the mouse, and going back, without a terminal.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use domain::ask::{Ask, AskKind};
use domain::command::RollbackScope;
use domain::event::Fact;
use domain::tool_call::{Details, FileChange, Origin, ToolCall, ToolState};
use domain::{Answer, AskId, Item, ItemId, ItemKind, TurnId};
use serde_json::{Value, json};
use terminal::chat::screen::{Effect, Update};

use crate::screen::Bench;

fn item(id: u64, kind: ItemKind) -> Item {
    Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind }
}

fn shell(command: &str, state: ToolState) -> ItemKind {
    call("shell_command", json!({"command": command}), None, state)
}

fn call(name: &str, input: Value, details: Option<Details>, state: ToolState) -> ItemKind {
    ItemKind::ToolCall(Box::new(ToolCall {
        call_id: "c".into(),
        name: name.into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: Some(input),
        state,
        summary: String::new(),
        details,
        manual_approval: true,
        live_output: String::new(),
        result: Vec::new(),
        error: false,
        millis: 0,
        locations: Vec::new(),
        provider: None,
    }))
}

/// A command that waits for an answer, which can be remembered as `make …`.
fn ask(bench: &mut Bench, id: u64, command: &str) {
    let state = ToolState::Waiting { ask: AskId(id) };
    bench.fact(Fact::ItemStarted { item: item(id, shell(command, state)) });
    let kind = AskKind::Approval { reason: "It needs the network.".into(), keys: vec!["make …".into()] };
    let ask = Ask { id: AskId(id), turn: TurnId(1), item: Some(ItemId(id)), kind };
    bench.fact(Fact::AskRaised { ask });
}

fn asked(commands: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.started();
    for (id, command) in (1..).zip(commands) {
        ask(&mut bench, id, command);
    }
    bench.later(Duration::from_millis(500));
    bench
}

fn allowed(id: u64, remember: bool) -> Effect {
    Effect::Answer { ask: AskId(id), answer: Answer::Allow { remember } }
}

fn denied(id: u64) -> Effect {
    Effect::Answer { ask: AskId(id), answer: Answer::Deny { remember: false, reason: None } }
}

#[test]
fn the_list_is_used_by_arrows_digits_and_letters() {
    for (keys, expected) in [
        (&[KeyCode::Enter][..], allowed(1, false)),
        (&[KeyCode::Down, KeyCode::Enter], allowed(1, true)),
        (&[KeyCode::Up, KeyCode::Up, KeyCode::Enter], denied(1)),
        (&[KeyCode::Char('1')], allowed(1, false)),
        (&[KeyCode::Char('2')], allowed(1, true)),
        (&[KeyCode::Char('4')], denied(1)),
        (&[KeyCode::Char('n')], denied(1)),
    ] {
        let mut bench = asked(&["make install"]);
        let seen = bench.seen(80, 24);
        for part in [
            "╭─ Run this command?",
            "│ make install",
            "It needs the network.",
            "▌1 Yes, once",
            "2 Yes, for the rest of this chat: make …",
            "always in this project",
            "5 No, and say what to do instead",
            "? explains",
        ] {
            assert!(seen.contains(part), "{part}:\n{seen}");
        }
        keys.iter().for_each(|key| bench.key(*key));
        assert_eq!(bench.effects(), [expected], "{keys:?}");
    }
    let mut bench = asked(&["make install"]);
    bench.key(KeyCode::Char('7'));
    assert_eq!(
        (bench.effects().len(), bench.screen.input.text()),
        (0, "7"),
        "a digit without an answer is text"
    );
}

/// Whatever the height, the answers are visible; a long command says where the rest is.
#[test]
fn the_answers_are_always_visible() {
    let command: String = (0..60).map(|line| format!("echo {line}\n")).collect();
    for (columns, rows) in [(80, 24), (40, 15), (120, 12), (28, 14), (60, 11)] {
        let mut bench = asked(&[&command]);
        let seen = bench.seen(columns, rows);
        assert!(seen.contains("Yes, once") && seen.contains("No, and say"), "{columns}×{rows}:\n{seen}");
        assert!(seen.contains("? explains"), "{columns}×{rows}:\n{seen}");
    }
    let seen = asked(&[&command]).seen(80, 24);
    assert!(seen.contains("more rows, whole in the chat above (PgUp)"), "{seen}");
}

#[test]
fn tab_changes_the_command_and_the_new_one_is_not_asked_again() {
    let mut bench = asked(&["make install"]);
    bench.key(KeyCode::Tab);
    assert!(bench.seen(80, 24).contains("> make install"), "{}", bench.seen(80, 24));
    bench.text(" --dry-run");
    bench.key(KeyCode::Enter);
    let effects = bench.effects();
    let [Effect::Answer { ask: AskId(1), answer: Answer::Deny { reason: Some(reason), .. } }] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert!(reason.contains("make install --dry-run"), "{reason}");
    // Another command is asked about as usual; this one is what the user wrote.
    ask(&mut bench, 2, "make clean");
    assert_eq!(bench.effects(), []);
    bench.fact(Fact::AskSettled { id: AskId(2), answer: Answer::Cancelled });
    ask(&mut bench, 3, "make install --dry-run");
    assert_eq!(bench.effects(), [allowed(3, false)]);
    ask(&mut bench, 4, "make install --dry-run");
    assert_eq!(bench.effects(), [], "only once");
}

#[test]
fn tab_adds_a_sentence_or_a_reason() {
    let mut bench = asked(&["make install"]);
    bench.key(KeyCode::Char('n'));
    bench.effects();
    let state = ToolState::Waiting { ask: AskId(9) };
    let read = call("read_file", json!({"path": "/etc/hosts"}), None, state);
    bench.fact(Fact::ItemStarted { item: item(9, read) });
    let kind = AskKind::Approval { reason: "It is outside of the workspace.".into(), keys: Vec::new() };
    bench.fact(Fact::AskRaised { ask: Ask { id: AskId(9), turn: TurnId(1), item: Some(ItemId(9)), kind } });
    bench.later(Duration::from_millis(500));
    bench.key(KeyCode::Tab);
    bench.text("only the first lines");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [allowed(9, false), Effect::Steer("only the first lines".into())]);
    let mut bench = asked(&["make install"]);
    bench.key(KeyCode::Up);
    bench.key(KeyCode::Tab);
    assert!(bench.seen(80, 24).contains("Why not?"), "{}", bench.seen(80, 24));
    bench.text("use npm");
    bench.key(KeyCode::Enter);
    let answer = Answer::Deny { remember: false, reason: Some("use npm".into()) };
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(1), answer }]);
}

/// Several questions are allowed together only after a page has shown all of them, and only those that it showed.
#[test]
fn all_of_these_are_shown_before_they_are_allowed() {
    let mut bench = asked(&["make one", "make two\nrm -rf /tmp/x"]);
    let seen = bench.seen(100, 30);
    assert!(seen.contains("1 of 2") && seen.contains("Yes, all 2 of these"), "{seen}");
    bench.key(KeyCode::Char('l'));
    assert_eq!(bench.effects(), []);
    let seen = bench.seen(100, 30);
    assert!(seen.contains("make one") && seen.contains("rm -rf /tmp/x"), "{seen}");
    ask(&mut bench, 3, "make three");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [allowed(1, false), allowed(2, false)]);
    assert!(bench.seen(100, 30).contains("make three"), "the third is still asked");
}

#[test]
fn a_question_mark_explains() {
    let mut bench = asked(&["make install"]);
    bench.key(KeyCode::Char('?'));
    let effects = bench.effects();
    let [Effect::Explain(call)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((call.tool.as_str(), call.plan), ("eca__shell_command", false));
    bench.screen.apply_update(Update::Explained(vec!["The rules decide: ask.".into()]));
    let seen = bench.seen(80, 24);
    for part in
        ["Why this is asked", "It needs the network.", "would allow: make …", "The rules decide: ask."]
    {
        assert!(seen.contains(part), "{part}:\n{seen}");
    }
    bench.key(KeyCode::Esc);
    bench.key(KeyCode::Char('y'));
    assert_eq!(bench.effects(), [allowed(1, false)]);
}

fn mouse(bench: &mut Bench, kind: MouseEventKind, column: u16, row: u16) {
    bench.screen.handle_mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE });
}

fn said(text: &str) -> ItemKind {
    ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None }
}

#[test]
fn the_wheel_scrolls_and_leaves_the_line_alone() {
    let mut bench = Bench::new();
    bench.screen.input.remember("an earlier prompt");
    for id in 1..=60 {
        bench.fact(Fact::ItemEnded { item: item(id, said(&format!("message {id}"))) });
    }
    bench.text("half a line");
    assert!(bench.seen(60, 20).contains("message 60"));
    (0..4).for_each(|_| mouse(&mut bench, MouseEventKind::ScrollUp, 5, 5));
    let seen = bench.seen(60, 20);
    assert!(!seen.contains("message 60") && seen.contains("> half a line"), "{seen}");
    (0..9).for_each(|_| mouse(&mut bench, MouseEventKind::ScrollDown, 5, 5));
    assert!(bench.seen(60, 20).contains("message 60"));
    assert_eq!(bench.screen.input.text(), "half a line");
}

#[test]
fn a_click_opens_an_entry_and_a_drag_copies() {
    let mut bench = Bench::new();
    bench.fact(Fact::ItemEnded { item: item(1, said("first words here")) });
    bench.fact(Fact::ItemEnded { item: item(2, shell("cargo test --all", ToolState::Done)) });
    let row = |seen: &str, words: &str| {
        u16::try_from(seen.lines().position(|line| line.contains(words)).expect(words)).expect("a row")
    };
    let seen = bench.seen(60, 20);
    assert!(!seen.contains("│ cargo"), "{seen}");
    let at = row(&seen, "cargo test");
    for kind in [MouseEventKind::Down(MouseButton::Left), MouseEventKind::Up(MouseButton::Left)] {
        mouse(&mut bench, kind, 4, at);
    }
    assert!(bench.seen(60, 20).contains("│ cargo test"), "{}", bench.seen(60, 20));
    let seen = bench.seen(60, 20);
    let at = row(&seen, "first words");
    mouse(&mut bench, MouseEventKind::Down(MouseButton::Left), 6, at);
    bench.seen(60, 20);
    mouse(&mut bench, MouseEventKind::Drag(MouseButton::Left), 10, at);
    bench.seen(60, 20);
    mouse(&mut bench, MouseEventKind::Up(MouseButton::Left), 10, at);
    assert_eq!(bench.effects(), [Effect::Copy("words".into())]);
}

#[test]
fn keys_for_a_new_line() {
    let mut bench = Bench::new();
    bench.text("a");
    for modifiers in [KeyModifiers::SHIFT, KeyModifiers::CONTROL, KeyModifiers::ALT] {
        bench.screen.handle_key(KeyEvent::new(KeyCode::Enter, modifiers));
    }
    bench.text("\\");
    bench.key(KeyCode::Enter);
    bench.text("b");
    assert_eq!(bench.screen.input.text(), "a\n\n\n\nb");
    assert_eq!(bench.effects(), []);
}

/// Esc twice lists the prompts; what goes back is chosen, with the files that changed since.
#[test]
fn escape_twice_goes_back_to_a_prompt() {
    let user = |text: &str| ItemKind::UserMessage { text: text.into(), parts: Vec::new() };
    let change = FileChange {
        path: "/w/src/a.rs".into(),
        diff: "@@ -1 +1 @@\n-a\n+b\n".into(),
        lines_added: 3,
        lines_removed: 1,
        old_text: None,
        new_text: None,
    };
    let mut bench = Bench::new();
    bench.fact(Fact::ItemEnded { item: item(1, user("the first prompt")) });
    bench.fact(Fact::ItemEnded { item: item(2, said("An answer.")) });
    bench.fact(Fact::ItemEnded { item: item(3, user("the second prompt")) });
    let edit = call("edit_file", json!({}), Some(Details::FileChange(change)), ToolState::Done);
    bench.fact(Fact::ItemEnded { item: item(4, edit) });
    bench.key(KeyCode::Esc);
    assert!(bench.seen(80, 24).contains("Esc again"), "{}", bench.seen(80, 24));
    bench.key(KeyCode::Esc);
    let seen = bench.seen(80, 24);
    assert!(seen.contains("the second prompt") && seen.contains("a.rs +3 −1"), "{seen}");
    bench.key(KeyCode::Enter);
    let seen = bench.seen(80, 24);
    assert!(
        seen.contains("What was said and the files") && seen.contains("The files; the chat stays"),
        "{seen}"
    );
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [Effect::Rollback { from: ItemId(3), scope: RollbackScope::Both }]);
    assert_eq!(bench.screen.input.text(), "the second prompt");
    // With a line being typed, Esc twice clears it.
    bench.key(KeyCode::Esc);
    bench.key(KeyCode::Esc);
    assert!(bench.screen.input.is_empty());
}

#[test]
fn a_command_is_found_by_other_names_and_the_nearest_is_suggested() {
    let mut bench = Bench::new();
    let say = |bench: &mut Bench, line: &str| {
        bench.text(line);
        bench.key(KeyCode::Enter);
        let query = line[1..].split(' ').next().unwrap_or_default().to_owned();
        bench.screen.apply_update(Update::Commands { query, found: Vec::new() });
    };
    say(&mut bench, "/clear");
    assert_eq!(bench.effects(), [Effect::New]);
    say(&mut bench, "/keybindings");
    assert!(bench.seen(80, 24).contains("Help"), "{}", bench.seen(80, 24));
    bench.key(KeyCode::Esc);
    say(&mut bench, "/premissions");
    let seen = bench.seen(100, 24);
    assert!(seen.contains("There is no command /premissions. Did you mean /permissions?"), "{seen}");
    bench.screen.input.clear();
    bench.effects();
    // The engine knows its own other names.
    say(&mut bench, "/cost");
    let effects = bench.effects();
    assert!(matches!(&effects[..], [Effect::Prompt(prompt)] if prompt.text == "/cost"), "{effects:?}");
}

#[test]
fn long_prompts_fold_and_prompts_are_reached_by_keys() {
    let mut bench = Bench::new();
    let long: String = (1..=40).map(|line| format!("line {line}\n")).collect();
    let user = |text: &str| ItemKind::UserMessage { text: text.into(), parts: Vec::new() };
    bench.fact(Fact::ItemEnded { item: item(1, user("short prompt")) });
    bench.fact(Fact::ItemEnded { item: item(2, said(&"words\n\n".repeat(30))) });
    bench.fact(Fact::ItemEnded { item: item(3, user(&long)) });
    bench.fact(Fact::ItemEnded { item: item(4, said(&"text\n\n".repeat(30))) });
    let control = |code| KeyEvent::new(code, KeyModifiers::CONTROL);
    bench.seen(60, 30);
    bench.screen.handle_key(control(KeyCode::PageUp));
    let seen = bench.seen(60, 30);
    assert!(seen.starts_with("› line 1"), "{seen}");
    assert!(
        seen.contains("line 8") && !seen.contains("line 9\n") && seen.contains("32 more lines"),
        "{seen}"
    );
    bench.screen.handle_key(control(KeyCode::PageUp));
    assert!(bench.seen(60, 30).starts_with("› short prompt"), "{}", bench.seen(60, 30));
    bench.screen.handle_key(control(KeyCode::PageDown));
    assert!(bench.seen(60, 30).starts_with("› line 1"), "{}", bench.seen(60, 30));
    bench.screen.handle_key(control(KeyCode::Char('o')));
    assert!(bench.seen(60, 60).contains("line 39"), "{}", bench.seen(60, 60));
}

#[test]
fn words_are_found_in_the_chat() {
    let mut bench = Bench::new();
    for id in 1..=60 {
        bench.fact(Fact::ItemEnded { item: item(id, said(&format!("message number {id}"))) });
    }
    bench.text("/find number 7");
    bench.key(KeyCode::Enter);
    let seen = bench.seen(60, 20);
    assert!(seen.contains("Found in this chat") && seen.contains("message number 7"), "{seen}");
    bench.key(KeyCode::Enter);
    let seen = bench.seen(60, 20);
    assert!(seen.starts_with("message number 7\n"), "{seen}");
    bench.text("/find nothing like it");
    bench.key(KeyCode::Enter);
    assert!(bench.seen(60, 20).contains("These words are not in this chat."), "{}", bench.seen(60, 20));
}
