//! Adds lines to the end of a TOML file and takes them away again.
//!
//! A table at the end of a valid file is valid when no line of the file gives a value to the table or to one of its
//! parents. A file in which that cannot be seen line by line is not changed: the user gets the lines to paste. So no TOML
//! parser is needed.

/// The first line of everything that is added.
const MARK: &str = "# Added by `dragoman setup`; the same command with --undo removes it.";

/// A text with `lines` at its end, or the reason why they cannot be there.
pub(crate) fn append(text: &str, lines: &str) -> Result<String, String> {
    let without = remove(text, lines).unwrap_or_else(|| text.to_owned());
    for table in lines.lines().filter_map(header) {
        check(&without, table)?;
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

/// A text without the lines that `append` added: everything from the mark to the next table that is not among them.
pub(crate) fn remove(text: &str, lines: &str) -> Option<String> {
    let start = text.find(MARK)?;
    let added = &text[start..];
    let mut end = text.len();
    let mut position = start;
    for line in added.split_inclusive('\n') {
        let foreign =
            header(line).is_some_and(|other| !lines.lines().filter_map(header).any(|own| own == other));
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

/// `keys.normal` of `[keys.normal]`. What is in brackets is not looked at.
fn header(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix('[')?;
    Some(rest.rsplit_once(']').map_or(rest, |(path, _)| path))
}

/// Fails if the text may not be followed by `table`: it has the table, or a value of it or of its parents.
fn check(text: &str, table: &str) -> Result<(), String> {
    let own: Vec<&str> = table.split('.').collect();
    let (mut current, mut depth) = (Vec::new(), 0);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.contains("\"\"\"") || line.contains("'''") {
            return Err("it has a text of several lines".to_owned());
        }
        if depth > 0 {
            depth += open_brackets(line);
        } else if let Some(path) = header(line) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            current = path.split('.').collect();
            // A name in quotes, spaces or a list of tables: fine where it is about something else.
            let is_about_own = path.contains(own.first().copied().unwrap_or_default());
            if current == own || (is_about_own && !path.chars().all(is_plain)) {
                return Err(format!("it already speaks of `{path}`"));
            }
        } else {
            depth += open_brackets(line);
            let key = line.split('=').next().unwrap_or_default().trim();
            let names = key.split('.').map(|name| name.trim_matches([' ', '"', '\'']));
            let shared = current.iter().copied().chain(names).zip(&own).take_while(|(a, b)| a == *b).count();
            if shared > current.len() || current.starts_with(&own) {
                return Err(format!(
                    "it already speaks of `{}`",
                    own.get(..shared).unwrap_or_default().join(".")
                ));
            }
        }
    }
    if depth == 0 { Ok(()) } else { Err("it has brackets that do not close".to_owned()) }
}

/// How many brackets the line opens and does not close, outside of texts and comments.
fn open_brackets(line: &str) -> i32 {
    let (mut depth, mut quote, mut is_escaped) = (0, None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some('"'), '\\') if !is_escaped => {
                is_escaped = true;
                continue;
            }
            (Some(mark), _) if c == mark && !is_escaped => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => break,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, _) => {}
        }
        is_escaped = false;
    }
    depth
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
            "[keys.normal]\nC-s = \":w\" # [\n\"[\" = \"x\"\n[editor]\nwhitespace.render = \"all\"\n",
            "[keys.normal.space]\nf = [\n  \"a\",\n  [\"b\"],\n]\n[keys.insert]\nspace = \"x\"\n",
        ] {
            let after = append(before, LINES).expect("added");
            assert!(after.starts_with(before.trim_end()), "{after}");
            assert_eq!(append(&after, LINES).as_ref(), Ok(&after), "twice is once");
            assert_eq!(remove(&after, LINES).expect("removed"), before);
        }
    }

    #[test]
    fn lines_that_came_since_stay() {
        let after = append("a = 1\n", LINES).expect("added");
        for since in
            ["[editor]\nmouse = false\n", "[keys.insert]\nj = \"x\"\n", "[keys.normal.space.p]\nr = \"x\"\n"]
        {
            assert_eq!(remove(&format!("{after}{since}"), LINES), Some(format!("a = 1\n{since}")));
        }
    }

    #[test]
    fn a_file_that_speaks_of_the_same_table_is_left_to_the_user() {
        for text in [
            "keys = { normal = {} }\n",
            "[\"keys\"]\n",
            "keys.normal.x = 1\n",
            "[keys]\nselect = { x = \"y\" }\n",
            "[keys.normal]\nspace = { o = \"y\" }\n",
            "[keys.normal]\n\"space\".x = \"y\"\n",
            "[keys.normal.space]\no = \"y\"\n",
            "[keys.normal.space.o]\nx = \"y\"\n",
            "[ keys . normal ]\nx = 1\n",
            "[[keys]]\n",
            "a = [\n",
            "a = \"\"\"\n[keys]\n\"\"\"\n",
        ] {
            assert!(append(text, LINES).is_err(), "{text}");
        }
        assert!(append("# keys are below\na = 1\n", LINES).is_ok());
    }
}
