//! The files that a prompt and a tool call cross, as docs/architecture.md lists them.
//!
//! A row is a file, the name by which it gets the work, and what it does. Checked: the file is there; its code has the name;
//! the code of a file above has it too, because it calls the function, sends the command or yields the event. The numbers
//! of rows may only shrink.

use std::path::Path;

use crate::paths;

/// The heading of each list, and how many files it may have.
const LISTS: [(&str, usize); 2] = [("### A prompt", 13), ("### A tool call", 14)];

/// Rows that are not true, one line each.
pub fn problems(root: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap_or_default();
    let read = |file: &str| std::fs::read_to_string(root.join("crates").join(file)).ok();
    LISTS.iter().flat_map(|(heading, most)| problems_of(&page, heading, *most, &read)).collect()
}

fn problems_of(page: &str, heading: &str, most: usize, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let rows = rows(page, heading);
    let mut problems = Vec::new();
    if rows.is_empty() || rows.len() != most {
        let count = rows.len();
        problems
            .push(format!("{heading} in docs/architecture.md lists {count} files, and xtask knows {most}"));
    }
    let mut above: Vec<String> = Vec::new();
    for (file, name) in rows {
        let Some(text) = read(&file) else {
            problems.push(format!("{heading} in docs/architecture.md names {file}, which is not there"));
            continue;
        };
        let code = paths::code(&text);
        let wanted = paths::code(&name);
        if !above.is_empty() && !code.contains(&wanted) {
            problems.push(format!("{heading} in docs/architecture.md: {file} has no {name}"));
        }
        if !above.is_empty() && !above.iter().any(|code| code.contains(&wanted)) {
            problems.push(format!("{heading} in docs/architecture.md: no file above {file} uses {name}"));
        }
        above.push(code);
    }
    problems
}

/// File and name of each row below a heading.
fn rows(page: &str, heading: &str) -> Vec<(String, String)> {
    let after = page.lines().skip_while(|line| *line != heading).skip(1);
    let section = after.take_while(|line| !line.starts_with('#'));
    let cells = section.filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let file = cells.next()?.trim_end_matches('`').to_owned();
        Some((file, cells.next()?.trim_matches('`').to_owned()))
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_not_true_is_found() {
        let page = "### A prompt\n\n| file | gets it by | does |\n|---|---|---|\n| `a.rs` | – | reads |\n\
                    | `b.rs` | `Command::Go` | goes |\n| `c.rs` | `finish` | ends |\n\n## Next\n| `d.rs` | `x` | no |\n";
        let files = |c: &'static str| {
            move |file: &str| match file {
                "a.rs" => Some("send(Command::Go { id }); // finish".to_owned()),
                "b.rs" => Some("match command { Command::Go { .. } => finish() }".to_owned()),
                "c.rs" => Some(c.to_owned()),
                _ => None,
            }
        };
        assert!(problems_of(page, "### A prompt", 3, &files("fn finish() {}")).is_empty());
        assert_eq!(problems_of(page, "### A prompt", 2, &files("fn finish() {}")).len(), 1, "a file more");
        assert_eq!(problems_of(page, "### A prompt", 3, &files("fn finished() {}")).len(), 1, "no such name");
        let unused = page.replace("`finish`", "`close`");
        assert_eq!(
            problems_of(&unused, "### A prompt", 3, &files("fn close() {}")).len(),
            1,
            "nobody calls it"
        );
    }
}
