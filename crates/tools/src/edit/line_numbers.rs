//! Line numbers as `read_file` shows them, and how they are taken off text that a model copied with them.

/// A line as it is shown.
pub fn numbered(number: usize, line: &str) -> String {
    format!("{number}\t{line}")
}

/// The first number and both texts without their numbers, where each line of the old one has the number that follows the one
/// before it. Lines of the new text may have none.
pub(super) fn take_off(old: &str, new: &str) -> Option<(usize, String, String)> {
    let mut before: Option<usize> = None;
    let mut first = None;
    let mut lines = Vec::new();
    for line in old.trim_end_matches('\n').split('\n') {
        let (number, rest) = split(line)?;
        if before.is_some_and(|before| number != before + 1) {
            return None;
        }
        before = Some(number);
        first = first.or(Some(number));
        lines.push(rest);
    }
    let mut ended = lines.join("\n");
    if old.ends_with('\n') {
        ended.push('\n');
    }
    let new: Vec<&str> = new.split('\n').map(|line| split(line).map_or(line, |(_, rest)| rest)).collect();
    Some((first?, ended, new.join("\n")))
}

fn split(line: &str) -> Option<(usize, &str)> {
    let (number, rest) = line.split_once(['\t', '\u{2192}'])?;
    let number = number.trim_start();
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_in_order_are_taken_off() {
        let off = |old: &str, new: &str| take_off(old, new);
        assert_eq!(off("7\ta\n8\t\tb", "7\ta\n\tc"), Some((7, "a\n\tb".into(), "a\n\tc".into())));
        assert_eq!(off("   7\u{2192}a\n", "b\n"), Some((7, "a\n".into(), "b\n".into())));
        assert_eq!(off("7\ta\n9\tb", "x"), None);
        assert_eq!(off("a\n8\tb", "x"), None);
    }
}
