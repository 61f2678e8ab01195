//! Adds lines to the end of a TOML file and takes them away again.
//!
//! A table at the end of a valid file is valid when no other line speaks of its parent. A file in which that cannot be
//! seen at a glance is not changed: the user gets the lines to paste. So no TOML parser is needed.

/// The first line of everything that is added.
const MARK: &str = "# Added by `dragoman setup`; the same command with --undo removes it.";

/// A text with `lines` at its end, or the reason why they cannot stand there.
pub(crate) fn append(text: &str, lines: &str) -> Result<String, String> {
    let without = remove(text).unwrap_or_else(|| text.to_owned());
    let parents = lines.lines().filter_map(root_key);
    for key in parents {
        if without.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| line.contains(&key))
        {
            return Err(format!("it already speaks of `{key}`"));
        }
    }
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut after = without;
    if !after.is_empty() {
        if !after.ends_with('\n') {
            after.push_str(line_end);
        }
        after.push_str(line_end);
    }
    let added = format!("{MARK}\n{lines}");
    after.push_str(&if line_end == "\n" { added } else { added.replace('\n', line_end) });
    Ok(after)
}

/// A text without the lines that `append` added: everything from the mark to the next table of another parent.
pub(crate) fn remove(text: &str) -> Option<String> {
    let start = text.find(MARK)?;
    let added = &text[start..];
    let key = added.lines().find_map(root_key)?;
    let mut end = text.len();
    let mut position = start;
    for line in added.split_inclusive('\n') {
        let foreign = root_key(line).is_some_and(|other| other != key);
        if foreign || (position > start && line.starts_with('#')) {
            end = position;
            break;
        }
        position += line.len();
    }
    let head = text[..start].trim_end_matches(['\n', '\r']);
    let head = if head.is_empty() { "" } else { &text[..head.len() + line_end_length(&text[head.len()..])] };
    Some(format!("{head}{}", &text[end..]))
}

fn line_end_length(text: &str) -> usize {
    if text.starts_with("\r\n") { 2 } else { usize::from(text.starts_with('\n')) }
}

/// `keys` of `[keys.normal]`.
fn root_key(line: &str) -> Option<String> {
    let header = line.trim().strip_prefix('[')?;
    Some(header.split(['.', ']']).next()?.trim_matches(['[', ' ', '"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "[keys.normal.space.o]\nr = \":pipe x\"\n\n[keys.select.space.o]\nr = \":pipe x\"\n";

    #[test]
    fn lines_come_and_go_and_the_rest_stays() {
        for before in [
            "",
            "theme = \"onedark\"\n",
            "# mine\ntheme = \"onedark\"\n[editor]\nmouse = false\n",
            "a = 1\r\n",
        ] {
            let after = append(before, LINES).expect("added");
            assert!(after.starts_with(before.trim_end()), "{after}");
            assert_eq!(append(&after, LINES).as_ref(), Ok(&after), "twice is once");
            assert_eq!(remove(&after).expect("removed"), before);
        }
    }

    #[test]
    fn lines_that_came_since_stay() {
        let after = append("a = 1\n", LINES).expect("added");
        let later = format!("{after}[editor]\nmouse = false\n");
        assert_eq!(remove(&later).expect("removed"), "a = 1\n[editor]\nmouse = false\n");
    }

    #[test]
    fn a_file_that_speaks_of_the_same_table_is_left_to_the_user() {
        for text in
            ["[keys.normal]\nx = 1\n", "keys = { normal = {} }\n", "[\"keys\"]\n", "keys.normal.x = 1\n"]
        {
            assert!(append(text, LINES).is_err(), "{text}");
        }
        assert!(append("# keys are below\na = 1\n", LINES).is_ok());
    }
}
