//! `dragoman chat` on a real screen: rules for a project, settings of the input, images, logins, and the chat inline.

use serde_json::json;
use testkit::{Answer, Gate};

use crate::screen::{Fixture, watch};
use crate::tmux::Start;

/// `p` shows the rule, Enter writes it to the user's own configuration, and the next chat does not ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_always_allowed_in_a_project() {
    let bench = Fixture::new().await;
    bench.wants("touch one.txt");
    watch(move || {
        let file = bench.home.path().join(".config/dragoman/config.json");
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("make one");
        screen.until("? explains");
        screen.keys(&["p"]);
        let shown = screen.until("Enter writes it");
        assert!(shown.contains("projects") && shown.contains("touch("), "{shown}");
        assert!(!file.exists() && !bench.home.workspace().join("one.txt").exists(), "nothing happened yet");
        screen.keys(&["Enter"]);
        screen.until("That is all.");
        let written = std::fs::read_to_string(&file).expect("the user's own settings");
        assert!(written.contains("projects") && written.contains("touch("), "{written}");
        assert!(!bench.home.workspace().join(".dragoman").exists(), "the project has no file of it");
        screen.say("/permissions");
        let shown = screen.until("Permissions");
        assert!(shown.contains("touch("), "{shown}");
        screen.keys(&["Escape"]);
        screen.until_gone("Permissions");
        let one = bench.home.workspace().join("one.txt");
        std::fs::remove_file(&one).expect("removed");
        bench.wants("touch one.txt");
        screen.say("/clear");
        screen.until("Ask something");
        screen.say("and now?");
        screen.until("That is all.");
        assert!(one.exists(), "the rule holds for a new chat of the same program");
        screen.keys(&["C-d"]);
        screen.until_left(0);
        drop(screen);
        std::fs::remove_file(&one).expect("removed");
        bench.wants("touch one.txt");
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("again");
        screen.until("That is all.");
        assert!(bench.home.workspace().join("one.txt").exists(), "it ran without a question");
    })
    .await
    .expect("the screen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vi_keys_own_keys_images_and_large_pastes() {
    let mut bench = Fixture::new().await;
    bench.config["chat"] = json!({"viMode": true, "keys": {"f5": "/status"}});
    bench.fake.respond_with(|_| Answer::text("Seen."));
    let picture = bench.home.path().join("my shot.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n0000").expect("an image");
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.text("hello wide world");
        screen.until("> hello wide world");
        screen.keys(&["Escape"]);
        screen.until("NORMAL");
        screen.keys(&["0", "d", "w"]);
        screen.until("> wide world");
        screen.keys(&["A"]);
        screen.text("!");
        screen.until("> wide world!");
        screen.keys(&["F5"]);
        screen.until("no repository");
        screen.keys(&["Escape"]);
        screen.until_gone("no repository");
        screen.text(" ");
        screen.paste(&picture.display().to_string());
        screen.until("@image-1");
        screen.paste(&"a line of a log\n".repeat(40));
        screen.until("[paste 1: 40 lines]");
        screen.keys(&["Enter"]);
        screen.until("Seen.");
        let sent = bench.fake.last_request().body.to_string();
        assert!(sent.contains("image/png") && sent.contains("wide world!"), "{sent}");
        assert_eq!(sent.matches("a line of a log").count(), 40, "{sent}");
        screen.keys(&["C-r"]);
        screen.text("wide");
        screen.until("wide world!");
    })
    .await
    .expect("the screen");
}

/// The terminal is asked for its background (OSC 11); the gray of a light one is darker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colors_fit_the_background_of_the_terminal() {
    let bench = Fixture::new().await;
    watch(move || {
        for (background, gray) in [("#ffffff", "38;5;240"), ("#000000", "38;5;245")] {
            let screen = bench.screen_with(&Start { background: Some(background), ..Start::default() });
            screen.until("Ask something");
            let colored = screen.colored();
            let hint = colored.lines().find(|line| line.contains("Ask something")).unwrap_or_default();
            assert!(hint.contains(gray), "{background}: {hint:?}");
        }
    })
    .await
    .expect("the screen");
}

/// A key that is typed into a login is stored and never shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_in_the_chat_hides_the_key() {
    let bench = Fixture::new().await;
    watch(move || {
        let screen = bench.screen();
        screen.until("Ask something");
        screen.say("/login anthropic");
        screen.until("The key of anthropic:");
        screen.text("sk-ant-of-this-test");
        let shown = screen.until("•••••••••••••••••••");
        assert!(!shown.contains("of-this-test"), "{shown}");
        screen.keys(&["Enter"]);
        let shown = screen.until("The key of anthropic is stored.");
        assert!(!shown.contains("of-this-test"), "{shown}");
        let listed = bench.home.command(&["login"]).output().expect("it runs");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let line = listed.lines().find(|line| line.starts_with("anthropic")).unwrap_or_default();
        assert!(line.contains("dragoman login"), "{listed}");
        assert!(bench.fake.requests().is_empty(), "nothing went to a model");
        screen.say("/login nonsense");
        screen.until("nonsense");
    })
    .await
    .expect("the screen");
}

/// Inline, the chat stays in the terminal's own scrollback, each line once, and nothing of the input is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inline_chat_stays_in_the_scrollback() {
    let bench = Fixture::new().await;
    let gate = Gate::new();
    let points = |from: usize, to: usize| -> String {
        (from..=to).map(|number| format!("- point{number:02}\n")).collect()
    };
    let code: String = (1..=40).map(|number| format!("code{number:02}();\n")).collect();
    let [first, rest] = [points(1, 50), format!("{}\n```js\n{code}```\n\nThe end.", points(51, 60))];
    bench.fake.answer(Answer::new().chunks([first.as_str()]).gate(&gate).chunks([rest.as_str()]));
    bench.wants("touch one.txt");
    watch(move || {
        let screen = bench.screen_with(&Start { arguments: &["--inline"], ..Start::default() });
        screen.until("Ask something");
        assert!(!screen.is_alternate());
        screen.say("go on");
        screen.until("point50");
        // The answer is not over, and its beginning can be scrolled to already.
        screen.until_it("the printed points", |_| screen.scrollback().contains("point01"));
        gate.open();
        screen.until("The end.");
        screen.until_it("the printed code", |_| screen.scrollback().contains("code01();"));
        screen.resize(60, 20);
        screen
            .until_it("a narrower line", |shown| shown.lines().any(|line| line.trim_end() == "─".repeat(60)));
        screen.say("make one");
        screen.until("? explains");
        screen.keys(&["y"]);
        screen.until("That is all.");
        screen.keys(&["F1"]);
        screen.until("Keys");
        screen.keys(&["Escape"]);
        screen.until_gone("Alt-Enter");
        // A printed call is printed again, whole.
        screen.keys(&["C-o"]);
        screen.until("▾");
        screen.keys(&["C-d"]);
        screen.until_left(0);
        let all = screen.scrollback();
        for number in 1..=60 {
            assert_eq!(all.matches(&format!("point{number:02}")).count(), 1, "point {number}:\n{all}");
            let lines = usize::from(number <= 40);
            assert_eq!(all.matches(&format!("code{number:02}();")).count(), lines, "line {number}:\n{all}");
        }
        for part in ["› go on", "› make one", "That is all.", "fake/m1"] {
            assert!(all.contains(part), "{part}:\n{all}");
        }
        let end = &all[all.find("That is all.").expect("the answer")..];
        assert!(
            !end.contains("────") && !end.contains("Alt-Enter"),
            "the input and the pages are gone:\n{all}"
        );
    })
    .await
    .expect("the screen");
}
