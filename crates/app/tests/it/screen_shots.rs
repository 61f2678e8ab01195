//! Screens of a short day at four widths, kept as text. `DRAGOMAN_UPDATE_SCREENS=1` writes them anew.

use std::path::PathBuf;

use serde_json::json;
use testkit::Answer;

use crate::screen::{Fixture, watch};
use crate::tmux::{Screen, Start};

const ANSWER: &str = "# Result\n\nThe function `parse` now reads *both* forms.\n\n```rust\nfn parse(text: &str) -> Option<u32> {\n    text.trim().parse().ok()\n}\n```\n\n\
    | form | example | meaning |\n|---|---|---|\n| short | `7` | a number |\n| long | ` 7 ` | a number with blanks around it |\n\n- one point\n- 漢字 and another one\n";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/screens"))
}

/// Compares a screen with the stored one, once it has stopped changing.
fn compare(screen: &Screen, name: &str, columns: u16) {
    let file = folder().join(format!("{name}-{columns}.txt"));
    let tidy = |shown: &str| {
        let version = env!("CARGO_PKG_VERSION");
        let lines = shown.replace(version, &"0".repeat(version.len()));
        lines.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
    };
    if std::env::var_os("DRAGOMAN_UPDATE_SCREENS").is_some() {
        std::fs::create_dir_all(folder()).expect("a folder");
        std::thread::sleep(std::time::Duration::from_millis(500));
        return std::fs::write(&file, tidy(&screen.shown())).expect("a screen");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    screen.until_it(&format!("{} as it is stored:\n{expected}", file.display()), |shown| {
        tidy(shown) == expected
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_screens_of_a_short_day() {
    let mut bench = Fixture::new().await;
    // Nothing on the screen depends on the time.
    bench.config["chat"]["reducedMotion"] = json!(true);
    let prices = json!({"input": 100, "output": 100});
    bench.config["providers"]["fake"]["models"]["m1"] =
        json!({"cost": prices, "limit": {"context": 1000, "output": 100}});
    bench.home.write("work/.git/HEAD", "ref: refs/heads/topic\n");
    bench.home.write("work/AGENTS.md", "Be brief.\n");
    bench.home.write("work/a.rs", "fn parse(text: &str) -> u32 {\n    text.parse().unwrap()\n}\n");
    watch(move || {
        for columns in [60, 80, 120, 200] {
            bench.home.write("work/a.rs", "fn parse(text: &str) -> u32 {\n    text.parse().unwrap()\n}\n");
            let edit = json!({"path": "a.rs", "original_content": "text.parse()", "new_content": "text.trim().parse()"});
            bench.fake.answer(Answer::tool_call("c1", "eca__edit_file", edit)).answer(Answer::text(ANSWER));
            let screen = bench.screen_with(&Start { columns, rows: 40, ..Start::default() });
            screen.until("Ask something");
            compare(&screen, "first", columns);
            screen.say("Let parse read blanks around the number");
            screen.until("? explains");
            compare(&screen, "approval", columns);
            screen.keys(&["y"]);
            screen.until("another one");
            screen.until_gone("Esc stops");
            compare(&screen, "answer", columns);
            screen.keys(&["C-d"]);
            screen.until_left(0);
        }
    })
    .await
    .expect("the screen");
}
