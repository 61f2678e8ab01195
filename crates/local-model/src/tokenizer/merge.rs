//! Owns byte-pair merging of one piece of text. Knows neither vocabulary nor file: ranks are asked for.
//! Invariant: the parts handed out, in a row, are the piece. Time grows as n log n, also for hostile pieces.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A part of the piece and its neighbors; an empty one was merged into the part before it.
struct Part {
    start: usize,
    end: usize,
    before: usize,
    after: usize,
}

const NONE: usize = usize::MAX;

/// Merges neighbors, lowest rank first and leftmost among equals, then hands out the parts.
pub(super) fn merge(piece: &str, rank: impl Fn(&str, &str) -> Option<u32>, mut part: impl FnMut(&str)) {
    let mut parts: Vec<Part> = piece
        .char_indices()
        .enumerate()
        .map(|(index, (start, letter))| Part {
            start,
            end: start + letter.len_utf8(),
            before: index.wrapping_sub(1),
            after: index + 1,
        })
        .collect();
    match parts.last_mut() {
        Some(last) => last.after = NONE,
        None => return,
    }
    let mut queue = BinaryHeap::new();
    for left in 0..parts.len() {
        offer(piece, &parts, left, &rank, &mut queue);
    }
    while let Some(Reverse((_, left, end))) = queue.pop() {
        let right = parts[left].after;
        // An offer is stale when one of its two parts has changed since.
        if parts[left].start == parts[left].end || right == NONE || parts[right].end != end {
            continue;
        }
        let after = parts[right].after;
        parts[left].end = end;
        parts[left].after = after;
        parts[right].start = end;
        if after != NONE {
            parts[after].before = left;
        }
        offer(piece, &parts, left, &rank, &mut queue);
        if parts[left].before != NONE {
            offer(piece, &parts, parts[left].before, &rank, &mut queue);
        }
    }
    for found in parts.iter().filter(|part| part.start < part.end) {
        part(&piece[found.start..found.end]);
    }
}

type Queue = BinaryHeap<Reverse<(u32, usize, usize)>>;

/// Queues the merge of part `left` with the one after it, if there is such a merge.
fn offer(
    piece: &str,
    parts: &[Part],
    left: usize,
    rank: &impl Fn(&str, &str) -> Option<u32>,
    queue: &mut Queue,
) {
    let right = parts[left].after;
    if right == NONE {
        return;
    }
    let (first, second) = (&parts[left], &parts[right]);
    if let Some(rank) = rank(&piece[first.start..first.end], &piece[second.start..second.end]) {
        queue.push(Reverse((rank, left, second.end)));
    }
}

#[cfg(test)]
mod tests {
    fn check(piece: &str, merges: &[&str], expected: &[&str]) {
        let mut parts = Vec::new();
        let rank = |left: &str, right: &str| {
            merges.iter().position(|merge| *merge == format!("{left} {right}")).map(|rank| rank as u32)
        };
        super::merge(piece, rank, |part| parts.push(part.to_owned()));
        assert_eq!(parts, expected, "{piece:?} with {merges:?}");
    }

    #[test]
    fn merges_by_rank_then_from_the_left() {
        check("", &["a b"], &[]);
        check("abc", &[], &["a", "b", "c"]);
        check("abc", &["b c", "a b"], &["a", "bc"]);
        check("abc", &["a b", "b c"], &["ab", "c"]);
        check("aaaaa", &["a a"], &["aa", "aa", "a"]);
        check("aaaaa", &["a a", "aa aa"], &["aaaa", "a"]);
        check("Ġné", &["Ġ n", "Ġn é"], &["Ġné"]);
    }
}
