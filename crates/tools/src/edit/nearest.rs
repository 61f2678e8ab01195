//! The lines of a file that are most like lines that were not found, for the answer to the model.

use std::collections::HashSet;

use super::lines::Lines;

const MOST_BYTES: usize = 2_000;
const MOST_LINES: usize = 40;
/// Lines shown before and after.
const AROUND: usize = 3;

/// The part of a text that is most like the wanted lines, with line numbers; nothing where hardly any word is there.
pub(super) fn excerpt(text: &str, wanted: &[&str]) -> Option<String> {
    let file = Lines::new(text);
    let start = most_alike(&file, wanted)?;
    let from = start.saturating_sub(AROUND);
    let until = (start + wanted.len() + AROUND).min(file.lines.len()).min(from + MOST_LINES);
    let mut shown = format!("The lines most like it, with their numbers ({}-{until}):", from + 1);
    for (number, line) in file.lines[from..until].iter().enumerate() {
        let line = &line[..line.floor_char_boundary(300)];
        if shown.len() + line.len() > MOST_BYTES {
            break;
        }
        shown.push_str(&format!("\n{}\t{line}", from + number + 1));
    }
    Some(shown)
}

/// Where the window of lines begins that shares the most words with the wanted lines, line by line.
fn most_alike(file: &Lines<'_>, wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<HashSet<&str>> = wanted.iter().take(MOST_LINES).map(|line| words(line)).collect();
    let all: usize = wanted.iter().map(HashSet::len).sum();
    let lines: Vec<HashSet<&str>> = file.lines.iter().map(|line| words(line)).collect();
    let score = |start: usize| -> usize {
        let pairs = wanted.iter().zip(lines.iter().skip(start));
        pairs.map(|(wanted, line)| wanted.intersection(line).count()).sum()
    };
    // A window may begin with lines that are gone, so one that begins before the file is possible too.
    let (start, best) = (0..lines.len())
        .map(|start| (start, score(start)))
        .max_by_key(|(start, score)| (*score, std::cmp::Reverse(*start)))?;
    (best > 0 && best * 3 >= all).then_some(start)
}

fn words(line: &str) -> HashSet<&str> {
    line.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty()).collect()
}
