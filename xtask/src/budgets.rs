//! What each feature may cost: the budgets of `xtask/budgets.txt`, one `feature measure budget reason` a line.
//!
//! The crates of others are counted here, with the other rules. Sizes and times need builds: `scripts/build-cost` measures
//! them, and `compare` prints them beside their budgets. Invariants: every budget has a reason; docs/benchmarks.md names the
//! budgets of the whole program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Features that are compared with a program that has none.
const FEATURES: [&str; 6] = ["local", "telemetry", "postgres", "serve", "interfaces", "studio"];

/// Budgets that docs/benchmarks.md names, with the text of their row.
const NAMED: [(&str, &str, &str); 3] = [
    ("all", "crates", "crates of others in the program"),
    ("all", "megabytes", "release binary"),
    ("run", "cpu-seconds", "first `make run`"),
];

/// One line of the file, or one figure that was measured.
#[derive(Debug, PartialEq)]
pub struct Line<'a> {
    pub feature: &'a str,
    pub measure: &'a str,
    pub number: u64,
    pub rest: &'a str,
}

/// Budgets that are broken, lack a reason, or that docs/benchmarks.md does not name, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("xtask/budgets.txt")).unwrap_or_default();
    let budgets = lines(&text);
    let page = std::fs::read_to_string(root.join("docs/benchmarks.md")).unwrap_or_default();
    let mut problems = Vec::new();
    for budget in budgets.iter().filter(|budget| budget.rest.is_empty()) {
        problems.push(format!("xtask/budgets.txt gives no reason for {} {}", budget.feature, budget.measure));
    }
    for (feature, measure, label) in NAMED {
        let Some(budget) = find(&budgets, feature, measure) else {
            problems.push(format!("xtask/budgets.txt has no line `{feature} {measure}`"));
            continue;
        };
        let is_named = |line: &str| line.contains(label) && line.contains(&format!("≤ {budget}"));
        if !page.lines().any(is_named) {
            problems
                .push(format!("docs/benchmarks.md has no row \"{label}\" with the budget \"≤ {budget}\""));
        }
    }
    match count_crates(root) {
        Ok(counts) => {
            problems.extend(counts.iter().filter_map(|(feature, names)| too_many(&budgets, feature, names)))
        }
        Err(problem) => problems.push(problem),
    }
    problems
}

/// The rows of `make build-cost`: each figure with its budget; true where all budgets are kept.
pub fn compare(budgets: &str, figures: &str) -> (String, bool) {
    let budgets = lines(budgets);
    let (mut table, mut is_kept) =
        (String::from("| feature | measure | figure | budget |\n|---|---|---|---|\n"), true);
    for figure in lines(figures) {
        let budget = find(&budgets, figure.feature, figure.measure);
        is_kept &= budget.is_none_or(|budget| figure.number <= budget);
        let shown = match budget {
            Some(budget) if figure.number > budget => format!("≤ {budget}: over it"),
            Some(budget) => format!("≤ {budget}"),
            None => "none yet".to_owned(),
        };
        table.push_str(&format!(
            "| {} | {} | {} | {shown} |\n",
            figure.feature, figure.measure, figure.number
        ));
    }
    (table, is_kept)
}

/// The crates with the most bytes of code, from the output of `nm --print-size --demangle`.
pub fn largest(symbols: &str, most: usize) -> Vec<(String, u64)> {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for line in symbols.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(_), Some(size), Some(_), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(size) = u64::from_str_radix(size, 16) else { continue };
        *sizes.entry(crate_of(name)).or_default() += size;
    }
    sorted(sizes, most)
}

/// The crates that took longest to compile, in tenths of a second, from the page that `cargo build --timings` writes.
pub fn slowest(page: &str, most: usize) -> Vec<(String, u64)> {
    let data = page.split_once("const UNIT_DATA = ").and_then(|(_, rest)| rest.split_once("];"));
    let units: Vec<serde_json::Value> =
        data.and_then(|(list, _)| serde_json::from_str(&format!("{list}]")).ok()).unwrap_or_default();
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for unit in &units {
        let (Some(name), Some(seconds)) = (unit["name"].as_str(), unit["duration"].as_f64()) else {
            continue;
        };
        *times.entry(name).or_default() += (seconds * 10.0) as u64;
    }
    sorted(times, most)
}

fn sorted(numbers: BTreeMap<&str, u64>, most: usize) -> Vec<(String, u64)> {
    let mut list: Vec<(String, u64)> =
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
    list.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    list.truncate(most);
    list
}

/// `<serde_json::Value as core::fmt::Debug>::fmt` is of `serde_json`.
fn crate_of(symbol: &str) -> &str {
    let start =
        symbol.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ").trim_start_matches("dyn ");
    match start.split_once("::") {
        Some((name, _))
            if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
        {
            name
        }
        _ => "others",
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let read = |line| {
        let mut words = str::splitn(line, 4, ' ');
        let (feature, measure, number) = (words.next()?, words.next()?, words.next()?);
        Some(Line { feature, measure, number: number.parse().ok()?, rest: words.next().unwrap_or_default() })
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(read).collect()
}

fn find(lines: &[Line<'_>], feature: &str, measure: &str) -> Option<u64> {
    lines.iter().find(|line| line.feature == feature && line.measure == measure).map(|line| line.number)
}

fn too_many(budgets: &[Line<'_>], feature: &str, names: &BTreeSet<String>) -> Option<String> {
    let count = names.len() as u64;
    match find(budgets, feature, "crates") {
        None => Some(format!("xtask/budgets.txt has no line `{feature} crates`")),
        Some(budget) if count > budget => {
            let named: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
            Some(format!(
                "{feature} needs {count} crates of others; at most {budget}: {} …",
                named.join(", ")
            ))
        }
        Some(_) => None,
    }
}

/// The crates of others: of a program without features, those that each feature adds, and all.
pub fn count_crates(root: &Path) -> Result<BTreeMap<&'static str, BTreeSet<String>>, String> {
    let program = crates(root, &["--no-default-features"])?;
    let mut counts = BTreeMap::from([("all", crates(root, &[])?)]);
    for feature in FEATURES {
        let with = crates(root, &["--no-default-features", "--features", feature])?;
        counts.insert(feature, with.difference(&program).cloned().collect());
    }
    counts.insert("program", program);
    Ok(counts)
}

fn crates(root: &Path, arguments: &[&str]) -> Result<BTreeSet<String>, String> {
    #[expect(clippy::disallowed_methods, reason = "a chore of the repository, not of the program")]
    let output = Command::new("cargo")
        .args(["tree", "--offline", "-p", "dragoman", "-e", "normal,build", "--prefix", "none"])
        .args(arguments)
        .current_dir(root)
        .output();
    let lines = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let names = of_others(&lines);
    if names.is_empty() { Err("cargo tree lists no crate".to_owned()) } else { Ok(names) }
}

/// Our own crates have a path behind their version.
fn of_others(tree: &str) -> BTreeSet<String> {
    let entries = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    entries.filter(|entry| !entry.contains(" (/")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_compared_with_their_budgets() {
        let budgets = "# a comment\nall megabytes 40 the reason\nrun cpu-seconds 720 another\n";
        for (figures, is_kept, row) in [
            ("all megabytes 40", true, "| all | megabytes | 40 | ≤ 40 |"),
            ("all megabytes 41", false, "| all | megabytes | 41 | ≤ 40: over it |"),
            ("serve megabytes 3", true, "| serve | megabytes | 3 | none yet |"),
            ("run cpu-seconds 1\nall megabytes 99", false, "| run | cpu-seconds | 1 | ≤ 720 |"),
        ] {
            let (table, kept) = compare(budgets, figures);
            assert_eq!(kept, is_kept, "{figures}");
            assert!(table.contains(row), "{table}");
        }
    }

    #[test]
    fn a_feature_over_its_budget_is_named_with_crates() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let budgets = lines("serve crates 1 because");
        assert_eq!(too_many(&budgets, "serve", &names(&["axum v1"])), None);
        assert!(
            too_many(&budgets, "serve", &names(&["axum v1", "hyper v1"]))
                .is_some_and(|it| it.contains("hyper"))
        );
        assert!(too_many(&budgets, "local", &names(&[])).is_some_and(|it| it.contains("no line")));
    }

    #[test]
    fn crates_of_this_repository_are_not_counted() {
        let tree =
            "dragoman v0.1.0 (/r/crates/app)\nserde v1.0.0\nserde v1.0.0 (*)\nderive v1.0.0 (proc-macro)\n";
        assert_eq!(of_others(tree).len(), 2, "{:?}", of_others(tree));
    }

    #[test]
    fn contributors_are_added_up_by_crate() {
        let symbols = "0000 0000000000000010 t serde_json::de::parse\n0000 0000000000000020 T <serde_json::Value as core::fmt::Debug>::fmt\n\
                       0000 0000000000000008 t tokio::run\n0000 zz t broken\n0000 0000000000000001 t memcpy\n";
        let found = largest(symbols, 2);
        assert_eq!(found, [("serde_json".to_owned(), 48), ("tokio".to_owned(), 8)]);
        let page = "x const UNIT_DATA = [{\"name\": \"a\", \"duration\": 1.5}, {\"name\": \"b\", \"duration\": 3.0}, {\"name\": \"a\", \"duration\": 2.0}];\nconst CONCURRENCY_DATA = [];";
        assert_eq!(slowest(page, 1), [("a".to_owned(), 35)]);
        assert!(slowest("nothing", 3).is_empty());
    }
}
