//! `dragoman chat` on a real screen: keys sent, the screen compared.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Gate};

use crate::client::{Home, fake_provider};
use crate::tmux::{Screen, Start};

pub(crate) struct Fixture {
    pub home: Home,
    pub fake: FakeModel,
    pub config: Value,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["providers"]["fake"]["models"]["m1"] = json!({"cost": {"input": 100, "output": 100}, "contextWindow": 1000, "limit": {"context": 1000, "output": 100}});
        Self { home, fake, config }
    }

    pub(crate) fn screen(&self) -> Screen {
        self.screen_with(&Start::default())
    }

    pub(crate) fn screen_with(&self, start: &Start<'_>) -> Screen {
        Screen::start(&self.home, &self.config, start)
    }

    pub(crate) fn wants(&self, command: &str) {
        let call = Answer::tool_call("c1", "eca__shell_command", json!({"command": command}));
        self.fake.answer(call).answer(Answer::text("That is all."));
    }
}

pub(crate) type Test = tokio::task::JoinHandle<()>;

/// Screens are watched from a thread of their own; the fake model lives on this one.
pub(crate) fn watch(test: impl FnOnce() + Send + 'static) -> Test {
    tokio::task::spawn_blocking(test)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_says_what_to_do() {
    let bench = Fixture::new().await;
    watch(move || {
        let screen = bench.screen();
        let shown = screen.until("fake/m1");
        assert!(shown.contains("Dragoman") && shown.contains("/ shows commands"), "{shown}");
        assert!(shown.lines().any(|line| line.starts_with('>')), "{shown}");
        screen.keys(&["F1"]);
        screen.until("close a list or page");
        screen.keys(&["Escape"]);
        screen.until("Ask something");
        screen.keys(&["C-c"]);
        screen.until("Ctrl-C again leaves");
        screen.keys(&["C-c"]);
        screen.until_left(0);
        assert!(bench.fake.requests().is_empty());
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_streams_as_markdown() {
    let bench = Fixture::new().await;
    let gate = Gate::new();
    let text = "# Title\n\nSome **bold** words\x1b[31m.\n\n```rust\nfn main() {}\n```\n\n- one\n";
    bench.fake.answer(Answer::new().chunks([text]).gate(&gate).chunks(["- two"]));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("go");
        let shown = screen.until("• one");
        assert!(shown.contains("Some bold words."), "no markup and no control characters:\n{shown}");
        assert!(shown.contains("Esc stops") && !shown.contains("two"), "{shown}");
        // Typing does not wait for the model.
        screen.text("typed meanwhile");
        screen.until("> typed meanwhile");
        let colored = screen.colored();
        let code = colored.lines().find(|line| line.contains("main")).expect("the code");
        assert!(code.contains("38;5;5mfn"), "keywords have a color: {code:?}");
        assert!(!colored.contains("\x1b[31m."), "the model's colors do not reach the terminal");
        gate.open();
        screen.until("• two");
        let shown = screen.until_gone("Esc stops");
        assert!(shown.contains("15 tokens") && shown.contains("$0.0015"), "{shown}");
        screen.keys(&["C-c", "C-c", "C-c"]);
        screen.until_left(0);
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_approves_and_it_can_be_for_the_session() {
    let bench = Fixture::new().await;
    bench.wants("touch one.txt");
    bench.wants("touch two.txt");
    bench.wants("touch two.txt");
    watch(move || {
        let screen = bench.screen();
        let made = |name: &str| bench.home.workspace().join(name).exists();
        screen.until("Ask something");
        screen.say("make one");
        let shown = screen.until("? explains");
        assert!(shown.contains("touch one.txt") && shown.contains("No, and say"), "{shown}");
        assert!(!made("one.txt"));
        screen.keys(&["y"]);
        screen.until("That is all.");
        assert!(made("one.txt"));
        screen.say("make two");
        screen.until("? explains");
        screen.keys(&["a"]);
        screen.until_it("two answers", |shown| shown.matches("That is all.").count() == 2);
        assert!(made("two.txt"));
        std::fs::remove_file(bench.home.workspace().join("two.txt")).expect("removed");
        // Allowed for the session: not asked again.
        screen.say("make it again");
        screen.until_it("three answers", |shown| shown.matches("That is all.").count() == 3);
        assert!(made("two.txt"));
        // A call is one line that opens.
        let shown = screen.shown();
        assert!(!shown.contains("│"), "{shown}");
        screen.keys(&["C-o"]);
        screen.until("│ touch two.txt");
        screen.keys(&["C-o"]);
        screen.until_gone("│ touch two.txt");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_can_say_why() {
    let bench = Fixture::new().await;
    bench.wants("touch one.txt");
    bench.wants("touch two.txt");
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("make one");
        screen.until("? explains");
        screen.keys(&["r"]);
        screen.until("Why not?");
        screen.text("put it into docs");
        screen.until("> put it into docs");
        screen.keys(&["Enter"]);
        screen.until("That is all.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("put it into docs"), "the model reads it: {sent}");
        screen.say("make two");
        screen.until("? explains");
        screen.keys(&["n"]);
        let shown = screen.until_it("two answers", |shown| shown.matches("That is all.").count() == 2);
        assert!(shown.contains("refused by you"), "{shown}");
        for name in ["one.txt", "two.txt"] {
            assert!(!bench.home.workspace().join(name).exists());
        }
    })
    .await
    .expect("the screen");
}

/// A form of an MCP server, while one of its calls runs: filled in, then declined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_asks_by_a_form() {
    let mut bench = Fixture::new().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");
    bench.config["mcpServers"] = json!({"scripted": {"command": "python3", "args": [script]}});
    // In a small window the model would have to search for the tool first.
    bench.config["providers"]["fake"]["models"]["m1"] =
        json!({"limit": {"context": 100_000, "output": 1000}});
    for _ in 0..2 {
        bench.fake.answer(Answer::tool_call("c1", "scripted__ask", json!({})));
        bench.fake.answer(Answer::text("That is all."));
    }
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        // Servers start beside the chat; the commands tell when this one is there.
        for _ in 0..200 {
            screen.keys(&["C-u"]);
            screen.text("/scripted");
            std::thread::sleep(Duration::from_millis(50));
            if screen.shown().contains("greet") {
                break;
            }
        }
        screen.keys(&["C-u"]);
        for (answers, keys) in [(1, "Enter"), (2, "Escape")] {
            screen.say("ask me");
            screen.until("? explains");
            screen.keys(&["y"]);
            let shown = screen.until("Esc declines");
            assert!(shown.contains("The MCP server scripted asks: Which color?"), "{shown}");
            screen.text("green");
            screen.until("→ color: green");
            screen.keys(&[keys]);
            screen.until_it("the answer", |shown| shown.matches("That is all.").count() == answers);
        }
        let results: Vec<String> = bench.fake.requests().iter().flat_map(|it| it.tool_results()).collect();
        assert!(results[0].contains("accept") && results[0].contains("green"), "{results:?}");
        assert!(results[1].contains("decline") && !results[1].contains("green"), "{results:?}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_behavior_is_named_before_anything_is_drawn() {
    let bench = Fixture::new().await;
    watch(move || {
        let screen = bench.screen_with(&Start { arguments: &["--behavior", "nonsense"], ..Start::default() });
        let shown = screen.until("left with");
        assert!(
            shown.contains("left with 2") && shown.contains("Choose one of these: agent, plan."),
            "{shown}"
        );
        let screen = bench.screen_with(&Start { arguments: &["--behavior", "code"], ..Start::default() });
        screen.until("Ask something");
        screen.say("/behavior nonsense");
        screen.until("There is no behavior");
        assert!(!screen.shown().contains("nonsense ·"), "it is not taken");
    })
    .await
    .expect("the screen");
}

/// Whoever is in the middle of a line does not approve by typing on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typing_on_approves_nothing() {
    let bench = Fixture::new().await;
    let gate = Gate::new();
    let call = json!({"command": "touch one.txt"});
    bench.fake.answer(Answer::new().chunks(["Let me."]).gate(&gate).call("c1", "eca__shell_command", call));
    bench.fake.answer(Answer::text("That is all."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("make one");
        screen.until("Let me.");
        screen.text("wa");
        screen.until("> wa");
        gate.open();
        screen.until("Tab: answer");
        screen.text("y");
        screen.until("> way");
        assert!(!bench.home.workspace().join("one.txt").exists());
        screen.keys(&["Tab"]);
        screen.until("? explains");
        screen.keys(&["y"]);
        screen.until("That is all.");
        assert!(bench.home.workspace().join("one.txt").exists());
        assert!(screen.shown().contains("> way"), "what was typed stays");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_diff_is_shown_in_colors_before_it_is_approved() {
    let bench = Fixture::new().await;
    bench.home.write("work/a.txt", "old line\nkept\n");
    let input = json!({"path": "a.txt", "original_content": "old line", "new_content": "new line"});
    bench.fake.answer(Answer::tool_call("c1", "eca__edit_file", input)).answer(Answer::text("That is all."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("edit it");
        screen.until("? explains");
        let colored = screen.colored();
        let line =
            |text: &str| colored.lines().find(|line| line.contains(text)).unwrap_or_default().to_owned();
        // Changed lines have a background, and the words that changed another one.
        assert!(line("old").contains("48;5;52") && line("old").contains("48;5;88mold"), "{colored}");
        assert!(line("new").contains("48;5;22") && line("new").contains("48;5;28mnew"), "{colored}");
        screen.keys(&["y"]);
        screen.until("That is all.");
        let text = std::fs::read_to_string(bench.home.workspace().join("a.txt")).expect("the file");
        assert_eq!(text, "new line\nkept\n");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn escape_stops_and_control_c_twice_leaves() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::new().chunks(["Half an answer"]).silence());
    bench.fake.answer(Answer::text("Whole."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("go");
        screen.until("Half an answer");
        screen.keys(&["Escape"]);
        screen.until("Stopped.");
        assert!(screen.shown().contains("Half an answer"), "what was said stays");
        screen.say("again");
        screen.until("Whole.");
        screen.until_gone("Esc stops");
        screen.keys(&["Escape"]);
        screen.until("Esc again");
        screen.keys(&["Escape"]);
        screen.until("Go back to before a prompt");
        screen.keys(&["Escape"]);
        screen.until_gone("Go back to before a prompt");
        screen.keys(&["C-c"]);
        screen.until("Ctrl-C again leaves");
        screen.keys(&["C-c"]);
        let shown = screen.until_left(0);
        assert!(shown.contains("dragoman chat --session"), "{shown}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_chat_goes_on_where_it_was() {
    let bench = Fixture::new().await;
    let gate = Gate::new();
    bench.fake.answer(Answer::new().chunks(["Remember this number: 4711. "]).gate(&gate));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("give me a number");
        screen.until("4711");
        // What was shown for a quarter of a second is safe.
        std::thread::sleep(Duration::from_millis(300));
        screen.kill("-KILL");
        screen.until("left with 137");
        drop(screen);
        let screen = bench.screen_with(&Start { arguments: &["--continue"], ..Start::default() });
        let shown = screen.until("4711");
        assert!(shown.contains("› give me a number"), "{shown}");
        bench.fake.answer(Answer::text("It was 4711, as I said."));
        screen.say("which number?");
        screen.until("as I said");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("Remember this number: 4711."), "{sent}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resize_draws_everything_anew() {
    let bench = Fixture::new().await;
    let words: String = (1..=40).map(|number| format!("word{number} ")).collect();
    bench.fake.answer(Answer::text(&words));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("go");
        screen.until("word40");
        screen.text("half a prompt");
        screen.until("> half a prompt");
        for (columns, rows) in [(50, 30), (120, 12), (30, 20), (12, 5), (80, 24)] {
            screen.resize(columns, rows);
            let fits = |shown: &str| {
                let all: Vec<&str> = shown.lines().collect();
                let typed = shown.replace('\n', "").contains("half");
                typed && (rows < 12 || shown.contains("word40")) && all.len() <= usize::from(rows)
            };
            screen.until_it(&format!("{columns} × {rows}"), fits);
        }
        let shown = screen.until("half a prompt");
        assert!(shown.contains("word1 word2 word3"), "{shown}");
        assert_eq!(shown.matches("word40").count(), 1, "nothing is left of other sizes:\n{shown}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_columns_are_enough() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text(
        "A table:\n\n| name | description |\n|---|---|\n| alpha | the first letter of the Greek alphabet |\n\nAnd a-very-long-word-that-does-not-fit-into-forty-columns.",
    ));
    bench.wants("touch a-file-with-a-rather-long-name-for-forty-columns.txt");
    watch(move || {
        let screen = bench.screen_with(&Start { columns: 40, rows: 20, ..Start::default() });
        let shown = screen.until("fake/m1");
        assert!(shown.contains("Ask something"), "{shown}");
        screen.say("a table please");
        let is_over = |shown: &str| shown.contains("columns.") && shown.contains("$0.00");
        let shown = screen.until_it("the answer and its cost", is_over);
        assert!(shown.contains("name: alpha"), "a table that does not fit is a list:\n{shown}");
        screen.say("touch");
        let shown = screen.until("? explains");
        assert!(shown.contains("forty-columns.txt"), "all of what is approved is seen:\n{shown}");
        screen.keys(&["n"]);
        screen.until("That is all.");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_files_and_models_are_completed() {
    let mut bench = Fixture::new().await;
    bench.config["providers"]["fake"]["models"]["m2"] = json!({});
    bench.home.write("work/src/engine_room.rs", "fn engine_room_code() {}\n");
    bench.fake.answer(Answer::text("Seen."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.text("/co");
        let shown = screen.until("/compact");
        assert!(shown.contains("/costs") && shown.contains("/config"), "{shown}");
        screen.keys(&["C-u"]);
        screen.until_gone("/compact");
        screen.say("/nosuchthing");
        screen.until("There is no command");
        screen.keys(&["C-u"]);
        screen.text("/model");
        screen.until("Show the models");
        screen.keys(&["Enter"]);
        screen.until("type to narrow");
        screen.text("m2");
        screen.until_gone("fake/m1  now");
        screen.keys(&["Enter"]);
        screen.until_gone("type to narrow");
        screen.keys(&["BTab"]);
        screen.until("Behavior: plan");
        screen.text("look at @engine_r");
        screen.until("@src/engine_room.rs");
        screen.keys(&["Tab"]);
        screen.until("> look at @src/engine_room.rs");
        screen.keys(&["Enter"]);
        screen.until("Seen.");
        let sent = bench.fake.last_request().body;
        assert_eq!(sent["model"], "m2");
        assert!(sent.to_string().contains("engine_room_code"), "the file is sent along: {sent}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_are_listed_resumed_and_forked() {
    let bench = Fixture::new().await;
    bench.fake.respond_with(|request| Answer::text(&format!("Answer to {}.", request.last_user_text())));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("alpha");
        screen.until("Answer to alpha.");
        screen.until_gone("Esc stops");
        screen.say("/new");
        screen.until("Ask something");
        screen.say("beta");
        screen.until("Answer to beta.");
        screen.until_gone("Esc stops");
        screen.keys(&["F2"]);
        let shown = screen.until("Chats of this folder");
        assert!(shown.contains("alpha") && shown.contains("2 messages"), "{shown}");
        screen.keys(&["Enter"]);
        let shown = screen.until("Answer to alpha.");
        assert!(!shown.contains("Answer to beta."), "{shown}");
        screen.say("gamma");
        screen.until("Answer to gamma.");
        screen.until_gone("Esc stops");
        screen.say("/fork");
        screen.until("The whole chat");
        screen.text("alpha");
        screen.keys(&["Enter"]);
        // The list hides the answer before the copy is there.
        screen.until("alpha (fork)");
        screen.until_gone("Answer to gamma.");
        screen.say("delta");
        screen.until("Answer to delta.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("alpha") && !sent.contains("gamma"), "{sent}");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_lines_can_be_pasted_typed_and_edited() {
    let bench = Fixture::new().await;
    bench.fake.respond_with(|_| Answer::text("Taken."));
    let editor =
        bench.home.write("editor.sh", "#!/bin/sh\nsleep 0.2\nprintf 'from the editor\\n' >> \"$1\"\n");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).expect("executable");
    watch(move || {
        let path = editor.display().to_string();
        let screen = bench.screen_with(&Start { environment: &[("EDITOR", &path)], ..Start::default() });
        screen.until("Ask something");
        screen.paste("one\ntwo\nthree");
        let shown = screen.until("three");
        assert!(bench.fake.requests().is_empty(), "a paste sends nothing:\n{shown}");
        screen.keys(&["M-Enter"]);
        screen.text("four\\");
        screen.keys(&["Enter"]);
        screen.text("five");
        screen.until("  five");
        screen.keys(&["C-g"]);
        screen.until("from the editor");
        screen.keys(&["Enter"]);
        screen.until("Taken.");
        let sent = bench.fake.last_request().last_user_text();
        assert_eq!(sent, "one\ntwo\nthree\nfour\nfivefrom the editor");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_terminal_is_restored_after_a_panic_and_a_signal() {
    let bench = Fixture::new().await;
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.text("/panic");
        screen.keys(&["Enter", "Enter"]);
        let shown = screen.until_left(1);
        assert!(shown.contains("an internal error"), "{shown}");
        drop(screen);
        let screen = bench.screen();
        screen.until("Ask something");
        screen.kill("-TERM");
        screen.until_left(0);
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_colors_there_are_none() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("# Head\n\n`code` and [link](http://x)\n\n```rust\nfn main() {}\n```"));
    watch(move || {
        let screen = bench.screen_with(&Start { environment: &[("NO_COLOR", "1")], ..Start::default() });
        screen.until("Ask something");
        screen.say("go");
        screen.until("main");
        let colored = screen.colored();
        let has_color = |code: &str| {
            code.split(';').any(|it| matches!(it.parse::<u32>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107)))
        };
        let codes = colored.split("\x1b[").skip(1).filter_map(|it| it.split('m').next());
        assert_eq!(codes.filter(|code| has_color(code)).count(), 0, "{colored:?}");
    })
    .await
    .expect("the screen");
}

/// Bare `dragoman` opens the chat; its first screen has folder, branch, version, model and instructions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_without_arguments_opens_a_chat() {
    let mut bench = Fixture::new().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/servers/scripted.py");
    bench.config["mcpServers"] = json!({"house": {"command": "python3", "args": [script]}});
    bench.home.write("work/.git/HEAD", "ref: refs/heads/topic\n");
    bench.home.write("work/AGENTS.md", "Be brief.\n");
    watch(move || {
        let screen = bench.screen_with(&Start { command: "", ..Start::default() });
        let shown = screen.until("Ask something");
        for part in [
            concat!("Dragoman: ", env!("CARGO_PKG_VERSION")),
            "~/work (branch topic)",
            "Model: fake/m1",
            "AGENTS.md",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        screen.until_it("the server", |shown| shown.contains("MCP servers: ") && shown.contains("house"));
        screen.keys(&["C-d"]);
        screen.until_left(0);
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dumb_terminal_is_not_drawn_on() {
    let bench = Fixture::new().await;
    watch(move || {
        let screen = bench.screen_with(&Start { environment: &[("TERM", "dumb")], ..Start::default() });
        let shown = screen.until_left(2);
        assert!(shown.contains("TERM=dumb") && shown.contains("dragoman run"), "{shown}");
    })
    .await
    .expect("the screen");
}

/// A shell command of the user appears in the chat and goes with the next prompt; a note goes to AGENTS.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shell_commands_notes_and_pages() {
    let bench = Fixture::new().await;
    bench.fake.answer(Answer::text("It is a number."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("!echo $((6*7))");
        screen.until("│ 42");
        screen.say("what is this?");
        screen.until("It is a number.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("42") && sent.contains("which the user ran"), "{sent}");
        screen.say("#Never use tabs.");
        screen.until("Added to AGENTS.md.");
        let written = std::fs::read_to_string(bench.home.workspace().join("AGENTS.md")).expect("a file");
        assert_eq!(written, "- Never use tabs.\n");
        screen.say("/status");
        let shown = screen.until("no repository");
        assert!(shown.contains("work/AGENTS.md"), "the new file is known: {shown}");
        screen.keys(&["Escape"]);
        screen.say("/export notes.md");
        screen.until("Written to notes.md.");
        let written = std::fs::read_to_string(bench.home.workspace().join("notes.md")).expect("a file");
        assert!(written.contains("## Dragoman\n\nIt is a number."), "{written}");
        screen.keys(&["C-d"]);
        screen.until_left(0);
    })
    .await
    .expect("the screen");
}
