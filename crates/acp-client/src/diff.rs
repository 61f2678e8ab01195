//! A change of a file as a unified diff with one hunk. Pure.

use std::path::Path;

use domain::tool_call::FileChange;

const CONTEXT: usize = 3;
/// Longer texts are not kept along with the diff.
const KEPT_TEXT: usize = 256 << 10;
const KEPT_DIFF: usize = 256 << 10;

/// The change from `old` (`None`: the file is new) to `new`.
pub(crate) fn file_change(path: &Path, old: Option<&str>, new: &str) -> FileChange {
    let before: Vec<&str> = old.unwrap_or_default().lines().collect();
    let after: Vec<&str> = new.lines().collect();
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = before.iter().zip(&after).take_while(same).count();
    let rest = before.len().min(after.len()) - head;
    let tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(same).count();
    let (removed, added) = (&before[head..before.len() - tail], &after[head..after.len() - tail]);
    let kept = |text: &str| (text.len() <= KEPT_TEXT).then(|| text.to_owned());
    FileChange {
        path: path.to_owned(),
        diff: unified(path, old.is_some(), &before, (head, tail), removed, added),
        lines_added: u32::try_from(added.len()).unwrap_or(u32::MAX),
        lines_removed: u32::try_from(removed.len()).unwrap_or(u32::MAX),
        old_text: old.and_then(kept),
        new_text: kept(new),
    }
}

fn unified(
    path: &Path,
    is_known: bool,
    before: &[&str],
    (head, tail): (usize, usize),
    removed: &[&str],
    added: &[&str],
) -> String {
    if removed.is_empty() && added.is_empty() {
        return String::new();
    }
    let shown = path.display().to_string();
    let shown = shown.trim_start_matches('/');
    let from = if is_known { format!("a/{shown}") } else { "/dev/null".to_owned() };
    let start = head.saturating_sub(CONTEXT);
    let (leading, trailing) = (head - start, tail.min(CONTEXT));
    let (old_count, new_count) = (leading + removed.len() + trailing, leading + added.len() + trailing);
    let line_number = |count: usize| if count == 0 { 0 } else { start + 1 };
    let mut text = format!(
        "--- {from}\n+++ b/{shown}\n@@ -{},{old_count} +{},{new_count} @@\n",
        line_number(old_count),
        line_number(new_count)
    );
    let behind = before.len() - tail;
    let lines = before[start..head].iter().map(|line| (' ', line));
    let lines = lines.chain(removed.iter().map(|line| ('-', line)));
    let lines = lines.chain(added.iter().map(|line| ('+', line)));
    let lines = lines.chain(before[behind..behind + trailing].iter().map(|line| (' ', line)));
    for (mark, line) in lines {
        text.push(mark);
        text.push_str(line);
        text.push('\n');
        if text.len() > KEPT_DIFF {
            text.truncate(text.floor_char_boundary(KEPT_DIFF));
            text.push_str("\n[the diff goes on]\n");
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_hunk_with_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\nmore\n6\n7\n8\n9\n";
        let change = file_change(Path::new("/w/a.txt"), Some(old), new);
        let expected =
            "--- a/w/a.txt\n+++ b/w/a.txt\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8\n";
        assert_eq!(change.diff, expected);
        assert_eq!((change.lines_added, change.lines_removed), (2, 1));
    }

    #[test]
    fn new_empty_and_equal_files_have_sound_diffs() {
        let new = file_change(Path::new("/a"), None, "x\ny\n");
        assert_eq!(new.diff, "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n");
        assert_eq!(file_change(Path::new("/a"), Some("x\n"), "x\n").diff, "");
        let emptied = file_change(Path::new("/a"), Some("x\n"), "");
        assert_eq!(emptied.diff, "--- a/a\n+++ b/a\n@@ -1,1 +0,0 @@\n-x\n");
        let repeated = file_change(Path::new("/a"), Some("x\n"), "x\nx\n");
        assert_eq!((repeated.lines_added, repeated.lines_removed), (1, 0));
    }

    #[test]
    fn a_long_diff_is_cut_and_its_texts_are_left_out() {
        let long = "ü line\n".repeat(200_000);
        let change = file_change(Path::new("/a"), None, &long);
        assert!(change.diff.len() < KEPT_DIFF + 100 && change.diff.ends_with("goes on]\n"));
        assert_eq!(change.new_text, None);
    }
}
