//! `dragoman chat` on real screens of four sizes: its pages, the clipboard, calls to the user.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Answer;

use crate::client::Home;
use crate::screen::{Fixture, watch};
use crate::tmux::Start;

fn git(home: &Home, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(home.workspace());
    assert!(command.output().is_ok_and(|output| output.status.success()), "git {arguments:?}");
}

/// The pages are whole in every size: each has its last line, or says how to reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_opens_at_every_size() {
    let bench = Fixture::new().await;
    bench.home.write("work/a.txt", "old line\n");
    git(&bench.home, &["init", "--quiet"]);
    git(&bench.home, &["add", "."]);
    git(&bench.home, &["commit", "--quiet", "-m", "first"]);
    bench.home.write("work/a.txt", "new line\n");
    bench.fake.respond_with(|_| Answer::text("An answer."));
    watch(move || {
        for (columns, rows) in [(80, 24), (120, 40), (40, 15), (200, 60)] {
            let screen = bench.screen_with(&Start { columns, rows, ..Start::default() });
            screen.until("fake/m1");
            screen.say("hello");
            screen.until("An answer.");
            screen.until_gone("Esc stops");
            let pages = [
                ("/help", "Keys"),
                ("/status", "Version"),
                ("/context", "Context"),
                ("/usage", "Usage of this chat"),
                ("/mcp", "MCP servers"),
                ("/permissions", "Permissions"),
                ("/diff", "+new line"),
            ];
            for (command, words) in pages {
                screen.say(command);
                let shown = screen.until_it(&format!("{command} at {columns}×{rows}"), |shown| {
                    shown.contains(words) && !shown.contains("> /")
                });
                assert!(shown.lines().count() <= usize::from(rows), "{command}:\n{shown}");
                screen.keys(&["Escape"]);
                screen.until("An answer.");
            }
            // The terminal's own words about its end need some room.
            screen.resize(80, 24);
            screen.keys(&["C-d"]);
            screen.until_left(0);
        }
    })
    .await
    .expect("the screen");
}

/// Waits until the program has written this.
fn until_written(file: &std::path::Path, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let written = std::fs::read(file).unwrap_or_default();
        if String::from_utf8_lossy(&written).contains(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{expected:?} is not in {:?}", String::from_utf8_lossy(&written));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A question rings and notifies (OSC 9); `/copy` fills the clipboard (OSC 52); Ctrl-V attaches its image.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_terminal_calls_the_user_and_has_a_clipboard() {
    let bench = Fixture::new().await;
    let picture = bench.home.path().join("clipboard.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n0000").expect("an image");
    let program = bench.home.write("bin/wl-paste", &format!("#!/bin/sh\ncat '{}'\n", picture.display()));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path =
        format!("{}:{}", bench.home.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    bench.wants("touch one.txt");
    bench.fake.answer(Answer::text("A picture."));
    watch(move || {
        let environment = [("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")];
        let screen = bench.screen_with(&Start { environment: &environment, ..Start::default() });
        screen.until("Ask something");
        let written = bench.home.path().join("written");
        screen.record(&written);
        screen.say("make one");
        screen.until("? explains");
        until_written(&written, "\x07\x1b]9;Dragoman waits for your answer\x07");
        screen.keys(&["y"]);
        screen.until("That is all.");
        screen.until_gone("Esc stops");
        screen.say("/copy");
        // "That is all." in Base64.
        until_written(&written, "\x1b]52;c;VGhhdCBpcyBhbGwu\x07");
        screen.text("what is this? ");
        screen.keys(&["C-v"]);
        screen.until("@image-1");
        screen.keys(&["Enter"]);
        screen.until("A picture.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("image/png") && sent.contains("what is this?"), "{sent}");
        screen.until_gone("Esc stops");
        std::fs::write(&picture, "text").expect("a file");
        screen.keys(&["C-v"]);
        screen.until("There is no image in the clipboard.");
    })
    .await
    .expect("the screen");
}

/// The task list of the model stays on the screen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_task_list_is_shown() {
    let bench = Fixture::new().await;
    let tasks = json!({"tasks": [{"text": "look around", "status": "in_progress"}, {"text": "leap"}]});
    bench.fake.answer(Answer::tool_call("c1", "eca__task", tasks)).answer(Answer::text("Planned."));
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("plan it");
        let shown = screen.until("Planned.");
        assert!(shown.contains("look around") && shown.contains("leap"), "{shown}");
    })
    .await
    .expect("the screen");
}

/// A chat that begins with a question waits for the models of a server that nothing but its address is known of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_question_waits_for_the_models_of_a_server() {
    let mut bench = Fixture::new().await;
    bench.fake.models(&["house-model"]);
    bench.fake.answer(Answer::text("It answers."));
    bench.config = json!({"providers": {"ollama": {"url": bench.fake.url()}}});
    watch(move || {
        let screen = bench.screen_with(&Start { arguments: &["hi"], ..Start::default() });
        let shown = screen.until("It answers.");
        assert!(shown.contains("ollama/house-model"), "{shown}");
    })
    .await
    .expect("the screen");
}
