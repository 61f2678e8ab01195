//! Which paths answer a query best.
//!
//! First those that hold the query as it is, since clients filter what they show by that: in the name before in the
//! folders, short before long. Then those that hold its letters in order, as far as there is room. Ties go by path.

use std::collections::HashSet;

use memchr::memmem;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use platform::{System, names};

use super::FoundPath;
use super::snapshot::{IndexedPath, Snapshot, letter_set};

/// Paths that are scored at most, so that a query never takes long.
const MAX_SCORED: usize = 20_000;

impl Snapshot {
    pub fn search(&self, query: &str, limit: usize) -> Vec<FoundPath> {
        self.search_and_count(query, limit).0
    }

    /// The matches, and how many of them hold the query as it is; those come first.
    pub(super) fn search_and_count(&self, query: &str, limit: usize) -> (Vec<FoundPath>, usize) {
        let query = names::for_rules(query.trim(), System::CURRENT);
        let query = self.without_root(&query);
        let (numbers, literal) = rank_paths(self, query, limit);
        (numbers.into_iter().map(|number| self.found(number)).collect(), literal)
    }
}

/// Numbers of entries, best first, and how many of them hold the query as it is.
fn rank_paths(snapshot: &Snapshot, query: &str, limit: usize) -> (Vec<usize>, usize) {
    if limit == 0 {
        return (Vec::new(), 0);
    }
    if query.is_empty() {
        let depths =
            snapshot.entries.iter().enumerate().map(|(number, entry)| (u64::from(entry.depth), number));
        let found = take_smallest(depths.collect(), limit);
        let literal = found.len();
        return (found, literal);
    }
    let query = query.to_ascii_lowercase();
    let hits = find_substring_matches(snapshot, &query);
    if hits.len() >= limit {
        return (take_smallest(hits, limit), limit);
    }
    let literal = hits.len();
    let taken: HashSet<usize> = hits.iter().map(|(_, number)| *number).collect();
    let mut found = take_smallest(hits, limit);
    found.extend(find_subsequence_matches(snapshot, &query, &taken, limit - found.len()));
    (found, literal)
}

/// Entries that hold the query, with how well: less is better.
fn find_substring_matches(snapshot: &Snapshot, query: &str) -> Vec<(u64, usize)> {
    let finder = memmem::Finder::new(query);
    let lower = snapshot.lower.as_bytes();
    let mut hits = Vec::new();
    let mut number = 0;
    let mut from = 0;
    while let Some(offset) = lower.get(from..).and_then(|rest| finder.find(rest)) {
        let at = from + offset;
        number = entry_at(&snapshot.entries, number, at);
        let Some(entry) = snapshot.entries.get(number) else { break };
        hits.push((rank(lower, entry, at, &finder), number));
        from = entry.end as usize + 1;
        number += 1;
    }
    hits
}

/// The entry that `at` lies in, from `number` on. They lie one behind the other, so it is mostly near.
fn entry_at(entries: &[IndexedPath], number: usize, at: usize) -> usize {
    let ends_before = |entry: &IndexedPath| (entry.end as usize) < at;
    let rest = entries.get(number..).unwrap_or_default();
    match rest.iter().take(8).position(|entry| !ends_before(entry)) {
        Some(near) => number + near,
        None => number + rest.partition_point(ends_before),
    }
}

fn rank(lower: &[u8], entry: &IndexedPath, at: usize, finder: &memmem::Finder<'_>) -> u64 {
    let start = entry.name as usize;
    let name = &lower[start..entry.end as usize];
    let within = if at >= start { Some(at - start) } else { finder.find(name) };
    let class = match within {
        Some(0) if name.len() == finder.needle().len() => 0,
        Some(0) => 1,
        Some(_) => 2,
        None => 3,
    };
    (class << 32) | u64::from(entry.end - entry.start)
}

/// Entries that hold the letters of each word of the query in order, best first.
fn find_subsequence_matches(
    snapshot: &Snapshot,
    query: &str,
    taken: &HashSet<usize>,
    limit: usize,
) -> Vec<usize> {
    let pattern = Pattern::parse(query, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let wanted = letter_set(query);
    let words: Vec<&[u8]> = query.split(' ').map(str::as_bytes).collect();
    let mut buffer = Vec::new();
    let mut hits = Vec::new();
    let fits = |number: usize, entry: &IndexedPath| {
        let path = &snapshot.lower.as_bytes()[entry.start as usize..entry.end as usize];
        entry.letters & wanted == wanted
            && !taken.contains(&number)
            && words.iter().all(|word| contains_in_order(path, word))
    };
    let candidates = snapshot.entries.iter().enumerate().filter(|(number, entry)| fits(*number, entry));
    for (number, entry) in candidates.take(MAX_SCORED) {
        let path = Utf32Str::new(snapshot.path(entry), &mut buffer);
        if let Some(score) = pattern.score(path, &mut matcher) {
            let length = u64::from(entry.end - entry.start).min(0xffff);
            hits.push(((u64::from(u32::MAX - score) << 16) | length, number));
        }
    }
    take_smallest(hits, limit)
}

/// The bytes of `word` are in `path` in this order.
fn contains_in_order(path: &[u8], word: &[u8]) -> bool {
    let mut rest = path;
    word.iter().all(|byte| match memchr::memchr(*byte, rest) {
        Some(at) => {
            rest = &rest[at + 1..];
            true
        }
        None => false,
    })
}

/// The numbers with the least ranks, in order; ties by number, which is by path.
fn take_smallest(mut hits: Vec<(u64, usize)>, limit: usize) -> Vec<usize> {
    if hits.len() > limit {
        hits.select_nth_unstable(limit);
        hits.truncate(limit);
    }
    hits.sort_unstable();
    hits.into_iter().map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use platform::{System, names};

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
        let snapshot = Snapshot::from_paths("/w".into(), paths);
        let found = snapshot.search(query, limit);
        let text = |path: &Path| names::for_rules(path.to_str().unwrap(), System::CURRENT);
        found.into_iter().map(|found| text(&found.path).trim_start_matches("/w/").to_owned()).collect()
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
