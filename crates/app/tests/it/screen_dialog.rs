//! `dragoman chat` on a real screen: the mouse, keys for a new line, the list of an approval, going back, themes.

use serde_json::json;
use testkit::Answer;

use crate::screen::{Fixture, watch};
use crate::tmux::Start;

/// A step of the wheel, as a terminal that reports the mouse sends it.
const WHEEL_UP: &[u8] = b"\x1b[<64;10;5M";
const SHIFT_ENTER: &[u8] = b"\x1b[13;2u";
const CONTROL_ENTER: &[u8] = b"\x1b[13;5u";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wheel_scrolls_and_shift_enter_is_a_new_line() {
    let bench = Fixture::new().await;
    let points: String = (1..=60).map(|number| format!("- point{number:02}\n")).collect();
    bench.fake.answer(Answer::text(&points)).answer(Answer::text("Two lines."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("go");
        screen.until("point60");
        screen.until_gone("Esc stops");
        screen.text("half a line");
        screen.until("> half a line");
        for _ in 0..6 {
            screen.bytes(WHEEL_UP);
        }
        let shown = screen.until_gone("point60");
        assert!(shown.contains("> half a line"), "what was typed stays:\n{shown}");
        screen.bytes(SHIFT_ENTER);
        screen.text("second");
        screen.bytes(CONTROL_ENTER);
        screen.text("third");
        screen.until("  third");
        screen.keys(&["Enter"]);
        screen.until("Two lines.");
        assert_eq!(bench.fake.last_request().last_user_text(), "half a line\nsecond\nthird");
        screen.keys(&["C-d"]);
        screen.until_left(0);
    })
    .await
    .expect("the screen");
}

/// With `chat.mouse: off` the terminal is not asked to report it, and is told not to send arrows for the wheel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mouse_can_be_left_to_the_terminal() {
    let mut bench = Fixture::new().await;
    bench.config["chat"]["mouse"] = json!("off");
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        assert_eq!(screen.mouse_flags(), "0 0", "buttons and motion are not reported");
        screen.keys(&["C-d"]);
        screen.until_left(0);
        bench.config["chat"]["mouse"] = json!("on");
        let screen = bench.screen();
        screen.until("Ask something");
        assert_eq!(screen.mouse_flags(), "1 1");
        screen.keys(&["C-d"]);
        screen.until_left(0);
        assert_eq!(screen.mouse_flags(), "0 0", "the terminal is as it was");
    })
    .await
    .expect("the screen");
}

/// Arrows and Enter answer; Tab changes the command, which then runs without another question; `?` explains.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_a_list_and_its_command_can_be_changed() {
    let bench = Fixture::new().await;
    bench.wants("touch one.txt");
    let call = |command: &str| Answer::tool_call("c", "eca__shell_command", json!({"command": command}));
    bench.fake.answer(call("touch two.txt")).answer(call("touch three.txt")).answer(Answer::text("Changed."));
    watch(move || {
        let screen = bench.screen();
        let made = |name: &str| bench.home.workspace().join(name).exists();
        screen.until("Ask something");
        screen.say("make one");
        let shown = screen.until("? explains");
        for part in ["Run this command?", "touch one.txt", "▌1 Yes, once", "always in this project"] {
            assert!(shown.contains(part), "{part}:\n{shown}");
        }
        screen.keys(&["?"]);
        let shown = screen.until("Why this is asked");
        assert!(shown.contains("The rules decide about eca__shell_command: ask."), "{shown}");
        screen.keys(&["Escape"]);
        screen.until("▌1 Yes, once");
        screen.keys(&["Down"]);
        screen.until("▌2 Yes, for the rest of this chat");
        screen.keys(&["Up", "Enter"]);
        screen.until("That is all.");
        assert!(made("one.txt"));
        screen.say("make two");
        screen.until("? explains");
        screen.keys(&["Tab"]);
        screen.until("> touch two.txt");
        screen.keys(&["C-u"]);
        screen.text("touch three.txt");
        screen.until("> touch three.txt");
        screen.keys(&["Enter"]);
        screen.until("Changed.");
        assert!(made("three.txt") && !made("two.txt"), "the user's command ran, the model's did not");
    })
    .await
    .expect("the screen");
}

/// Esc Esc takes back what was said and what a turn wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chat_goes_back_to_an_earlier_prompt() {
    let bench = Fixture::new().await;
    let file = bench.home.write("work/a.txt", "old\n");
    let input = json!({"path": "a.txt", "original_content": "old", "new_content": "new"});
    bench.fake.answer(Answer::text("Hello."));
    bench.fake.answer(Answer::tool_call("c1", "eca__edit_file", input)).answer(Answer::text("Edited."));
    bench.fake.answer(Answer::text("Again."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("first prompt");
        screen.until("Hello.");
        screen.until_gone("Esc stops");
        screen.say("second prompt");
        screen.until("? explains");
        screen.keys(&["y"]);
        screen.until("Edited.");
        screen.until_gone("Esc stops");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "new\n");
        screen.keys(&["Escape"]);
        screen.until("Esc again");
        screen.keys(&["Escape"]);
        let shown = screen.until("Go back to before a prompt");
        assert!(shown.contains("second prompt") && shown.contains("a.txt +1 −1"), "{shown}");
        screen.keys(&["Enter"]);
        screen.until("What was said and the files");
        screen.keys(&["Enter"]);
        screen.until_gone("Take back");
        screen.until("> second prompt");
        let shown = screen.until_gone("Edited.");
        assert!(shown.contains("Hello."), "{shown}");
        screen.until_it("the old file", |_| std::fs::read_to_string(&file).is_ok_and(|text| text == "old\n"));
        screen.keys(&["Enter"]);
        screen.until("Again.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(!sent.contains("Edited."), "the model does not see what was taken back: {sent}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn themes_names_of_commands_and_the_last_line() {
    let mut bench = Fixture::new().await;
    bench.config["chat"]["statusLine"] = json!("on {model} · {branch} · in {folder}");
    bench.home.write(
        ".config/dragoman/themes/mine.json",
        "{\"base\": \"light\", \"styles\": {\"promptBar\": {\"bg\": 17}}}",
    );
    bench.fake.respond_with(|_| Answer::text("Said."));
    watch(move || {
        let start = Start { environment: &[("COLORTERM", "truecolor")], ..Start::default() };
        let screen = bench.screen_with(&start);
        let shown = screen.until("Ask something");
        assert!(shown.contains("on fake/m1 · in ~/work"), "a part without a value is left out:\n{shown}");
        screen.say("/theme mine");
        screen.until("The setting is in");
        let written = bench.home.path().join(".config/dragoman/config.json");
        let written = std::fs::read_to_string(written).expect("the settings");
        assert!(written.contains("\"theme\": \"mine\""), "{written}");
        screen.say("hello");
        screen.until("Said.");
        let colored = screen.colored();
        let prompt = colored.lines().find(|line| line.contains("› ")).unwrap_or_default();
        assert!(prompt.contains("48;5;17"), "the bar of the theme: {prompt:?}");
        screen.until_gone("Esc stops");
        // Other assistants call them so.
        screen.say("/cost");
        screen.until("This chat:");
        screen.say("/rename A better name");
        screen.until("called \"A better name\"");
        screen.say("/modle");
        screen.until("Did you mean /model?");
        screen.keys(&["C-u", "C-d"]);
        screen.until_left(0);
        let wrong = ["--theme", "nosuch"];
        let screen = bench.screen_with(&Start { arguments: &wrong, ..Start::default() });
        let shown = screen.until_left(2);
        assert!(shown.contains("There is no theme") && shown.contains("mine"), "{shown}");
    })
    .await
    .expect("the screen");
}

/// For a screen reader: lines one after the other, no frame, nothing that moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_screen_reader_gets_lines() {
    let bench = Fixture::new().await;
    bench.wants("touch one.txt");
    watch(move || {
        let screen = bench.screen_with(&Start { arguments: &["--screen-reader"], ..Start::default() });
        screen.until("Ask something");
        assert!(!screen.is_alternate());
        screen.say("make one");
        let shown = screen.until("? explains");
        assert!(shown.contains("1 Yes, once") && shown.contains("Waits for you, Esc stops"), "{shown}");
        assert!(!shown.contains("╭") && !shown.contains("───"), "{shown}");
        screen.keys(&["y"]);
        screen.until("That is all.");
    })
    .await
    .expect("the screen");
}
