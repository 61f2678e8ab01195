//! Which paths answer a query best.
//!
//! First those that hold the query as it is, since clients filter what they show by that: in the name before in the
//! folders, short before long. Then those that hold its letters in order, as far as there is room. Ties go by path.

use memchr::memmem;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::snapshot::{Entry, Snapshot};

/// Numbers of entries, best first.
pub fn best(snapshot: &Snapshot, query: &str, limit: usize) -> Vec<usize> {
    if limit == 0 {
        return Vec::new();
    }
    if query.is_empty() {
        return nearest_to_top(snapshot, limit);
    }
    let query = query.to_ascii_lowercase();
    let hits = holding(snapshot, &query);
    let mut found = smallest(hits.clone(), limit);
    if found.len() < limit {
        let taken: std::collections::HashSet<usize> = hits.iter().map(|(_, number)| *number).collect();
        found.extend(in_order(snapshot, &query, &taken, limit - found.len()));
    }
    found
}

/// A bit for each letter and digit, in lower case; one for everything else.
pub fn letters(text: &str) -> u64 {
    text.bytes().fold(0, |set, byte| {
        set | match byte.to_ascii_lowercase() {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            digit @ b'0'..=b'9' => 1 << (26 + digit - b'0'),
            _ => 0,
        }
    })
}

fn nearest_to_top(snapshot: &Snapshot, limit: usize) -> Vec<usize> {
    let depth = |entry: &Entry| snapshot.path(entry).bytes().filter(|byte| *byte == b'/').count() as u64;
    smallest(
        snapshot.entries.iter().enumerate().map(|(number, entry)| (depth(entry), number)).collect(),
        limit,
    )
}

/// Entries that hold the query, with how well: less is better.
fn holding(snapshot: &Snapshot, query: &str) -> Vec<(u64, usize)> {
    let finder = memmem::Finder::new(query);
    let lower = snapshot.lower.as_bytes();
    let mut hits = Vec::new();
    let mut number = 0;
    let mut from = 0;
    while let Some(offset) = finder.find(&lower[from..]) {
        let at = from + offset;
        // Entries lie one behind the other, so the next is near.
        number += snapshot.entries[number..].partition_point(|entry| (entry.end as usize) < at);
        let Some(entry) = snapshot.entries.get(number) else { break };
        hits.push((rank(lower, entry, query), number));
        from = entry.end as usize + 1;
        number += 1;
        if from >= lower.len() {
            break;
        }
    }
    hits
}

fn rank(lower: &[u8], entry: &Entry, query: &str) -> u64 {
    let name = &lower[entry.name as usize..entry.end as usize];
    let class = if name == query.as_bytes() {
        0
    } else if name.starts_with(query.as_bytes()) {
        1
    } else if memmem::find(name, query.as_bytes()).is_some() {
        2
    } else {
        3
    };
    (class << 32) | u64::from(entry.end - entry.start)
}

/// Entries that hold the letters of the query in order, best first.
fn in_order(
    snapshot: &Snapshot,
    query: &str,
    taken: &std::collections::HashSet<usize>,
    limit: usize,
) -> Vec<usize> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let wanted = letters(query);
    let mut buffer = Vec::new();
    let mut hits = Vec::new();
    for (number, entry) in snapshot.entries.iter().enumerate() {
        if entry.letters & wanted != wanted || taken.contains(&number) {
            continue;
        }
        let path = Utf32Str::new(snapshot.path(entry), &mut buffer);
        if let Some(score) = pattern.score(path, &mut matcher) {
            let length = u64::from(entry.end - entry.start).min(0xffff);
            hits.push(((u64::from(u32::MAX - score) << 16) | length, number));
        }
    }
    smallest(hits, limit)
}

/// The numbers with the least ranks, in order; ties by number, which is by path.
fn smallest(mut hits: Vec<(u64, usize)>, limit: usize) -> Vec<usize> {
    if hits.len() > limit {
        hits.select_nth_unstable(limit);
        hits.truncate(limit);
    }
    hits.sort_unstable();
    hits.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(query: &str, limit: usize) -> Vec<String> {
        let paths = [
            ("README.md", false),
            ("src", true),
            ("src/main.rs", false),
            ("src/domain", true),
            ("src/domain/mod.rs", false),
            ("src/domain/main_loop.rs", false),
            ("tests/domain_main.rs", false),
            ("docs/Main.md", false),
            ("a/b/c/deep.txt", false),
        ];
        let paths = paths.map(|(path, folder)| (path.to_owned(), folder)).to_vec();
        let snapshot = Snapshot::of("/w".into(), paths);
        let found = snapshot.search(query, limit);
        found
            .into_iter()
            .map(|found| found.path.to_str().unwrap().trim_start_matches("/w/").to_owned())
            .collect()
    }

    #[test]
    fn the_best_comes_first() {
        let rows: &[(&str, usize, &[&str])] = &[
            ("main.rs", 2, &["src/main.rs", "tests/domain_main.rs"]),
            (
                "main",
                5,
                &[
                    "src/main.rs",
                    "docs/Main.md",
                    "src/domain/main_loop.rs",
                    "src/domain",
                    "tests/domain_main.rs",
                ],
            ),
            ("MAIN.MD", 1, &["docs/Main.md"]),
            ("domain/m", 3, &["src/domain/mod.rs", "src/domain/main_loop.rs"]),
            ("sml", 1, &["src/domain/main_loop.rs"]),
            ("", 3, &["README.md", "src", "docs/Main.md"]),
            ("/w/src/ma", 1, &["src/main.rs"]),
            ("./src/ma", 1, &["src/main.rs"]),
            ("zzz", 3, &[]),
            ("main", 0, &[]),
        ];
        for (query, limit, expected) in rows {
            let found = search(query, *limit);
            assert_eq!(found[..expected.len().min(found.len())], **expected, "{query}: {found:?}");
            assert!(!expected.is_empty() || found.is_empty(), "{query}: {found:?}");
            assert_eq!(found, search(query, *limit), "{query} is not stable");
        }
    }
}
