//! The analysis against bash itself: whatever bash runs of a line that was understood, the analysis had listed.

use std::time::Duration;

use domain::CancellationToken;
use process::Spawn;
use tools::shell::analyze;

/// Pieces of lines: plain ones, and what makes bash and a grammar differ.
const PIECES: &[&str] = &[
    "ls",
    "git",
    "push",
    "cat",
    "a",
    "-n",
    "--x=y",
    "'b c'",
    "\"d e\"",
    "''",
    "\"\"",
    "\\ ",
    "\\e",
    "\\'",
    "\\\"",
    "\\\\",
    " ",
    " ",
    " ",
    " ",
    "  ",
    "\t",
    ";",
    " ; ",
    "&&",
    " && ",
    "||",
    " || ",
    "|",
    " | ",
    "|&",
    "\n",
    "\\\n",
    "#",
    " # x",
    "#x",
    "$",
    "$ ",
    "'",
    "\"",
    "{",
    "}",
    "{ ",
    "; }",
    "(",
    ")",
    "!",
    "! ",
    "~",
    "*",
    "?",
    "[",
    "]",
    "=",
    "a=b",
    "%",
    "^",
    "@",
    "2>&1",
    " 2>/dev/null",
    ">",
    "<",
    "&",
    "`",
    "time ",
    "if",
    "then",
    "do",
    "\u{e9}",
    "\u{a0}",
    "\r",
    "-",
    "--",
    ",",
    ":",
];

/// Every command that bash does not find is written down instead, with its arguments.
const NOTE: &str = "() { local IFS=$'\\037'; printf '%s\\036' \"$*\" >> \"$TRACE\"; }";

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

fn line(seed: u64) -> String {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..2 + dice.roll(9)).map(|_| PIECES[dice.roll(PIECES.len())]).collect()
}

async fn ran(line: &str, folder: &std::path::Path) -> Vec<Vec<String>> {
    let trace = folder.join("trace");
    std::fs::write(&trace, "").unwrap();
    let finished = Spawn::new("/bin/bash")
        .args(["-c", line])
        .directory(folder.join("empty"))
        .clear_environment()
        .env("PATH", "/nonexistent")
        // A tilde stands for itself then.
        .env("HOME", "~")
        .env("TRACE", &trace)
        .env("BASH_FUNC_command_not_found_handle%%", NOTE)
        .deadline(Duration::from_secs(10))
        .run(&CancellationToken::new())
        .await;
    finished.unwrap();
    let trace = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    let commands =
        trace.split_terminator('\u{1e}').map(|one| one.split('\u{1f}').map(str::to_owned).collect());
    commands.collect()
}

#[tokio::test]
async fn bash_runs_nothing_that_was_not_listed() {
    let scale: usize =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let (mut understood, mut seed) = (0, 0);
    while understood < 100 * scale {
        seed += 1;
        let line = line(seed);
        let found = analyze(&line);
        if !found.reasons.is_empty() {
            continue;
        }
        understood += 1;
        let listed: Vec<Vec<String>> = found
            .commands
            .iter()
            .map(|command| command.words.iter().map(|word| word.text.clone()).collect())
            .collect();
        for command in ran(&line, folder.path()).await {
            assert!(
                listed.contains(&command),
                "seed {seed}: bash makes {command:?} of {line:?}, not {listed:?}"
            );
        }
    }
}

#[tokio::test]
async fn the_trace_sees_what_bash_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let ran = ran("g\\it 'a b' \"\" ~ | ls; ! cat", folder.path()).await;
    for expected in [&["git", "a b", "", "~"][..], &["ls"], &["cat"]] {
        assert!(ran.iter().any(|one| one == expected), "{ran:?}");
    }
}
