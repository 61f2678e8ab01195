//! The corpus of edits behind docs/quality.md: files of this repository, a call as models write it, and the bytes that are
//! wanted. A third, chosen by hash, is held back: nothing is tuned on it, and it is counted apart.

mod cases;
mod report;

use crate::kit::{Bench, text};
use cases::{Case, FORMATS, case};
use report::{Outcome, Report};

/// Cases of each format at full scale.
const CASES: u64 = 240;

#[tokio::test]
async fn no_edit_of_the_corpus_writes_wrong_bytes() {
    let scale = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let sources = cases::sources();
    let mut report = Report::default();
    for format in FORMATS {
        let (mut done, mut seed) = (0, 0);
        while done < CASES * scale / 10 {
            seed += 1;
            let Some(case) = case(&sources, format, seed) else { continue };
            done += 1;
            report.add(format, seed, run(&case).await);
        }
        assert!(seed < CASES * 40, "{format:?}: too many seeds make no case");
    }
    report.print();
    report.check();
}

/// Runs one call on a file and says how it ended.
async fn run(case: &Case) -> Outcome {
    let bench = Bench::new();
    bench.write(&case.path, &case.before);
    let result = bench.run(case.tool, case.input.clone()).await;
    let (told, after) = (text(&result), bench.read(&case.path));
    if result.error {
        assert_eq!(after, case.before, "a refused call changed the file: {}", case.describe());
        return Outcome::Refused { is_usable: is_usable(&told), told: case.describe() + &told };
    }
    match &case.wanted {
        Some(wanted) if *wanted == after => Outcome::Applied { repair: report::repair_of(&told) },
        _ => Outcome::Wrong {
            told: format!("{}\n{told}\n{}", case.describe(), String::from_utf8_lossy(&after)),
        },
    }
}

/// A reason that says where to look or what to do.
fn is_usable(told: &str) -> bool {
    [
        "at lines",
        "at line ",
        "most like it",
        "Copy the text",
        "copy the text",
        "real line ends",
        "Give more lines",
    ]
    .iter()
    .any(|words| told.contains(words))
}
