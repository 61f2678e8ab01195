//! Line ends that a model wrote as the two characters `\n`: the whole argument was encoded twice.
//!
//! Invariant: the text is read this way only where each reading of its escapes gives the same, and where no line end falls
//! between the quotes of a text.

/// Old and new text with their escapes read, where both have literal line ends and no real ones. `Err`: they may mean
/// different things.
pub(super) fn read(old: &str, new: &str) -> Option<Result<(String, String), Unclear>> {
    if !old.contains("\\n") || old.contains('\n') || new.contains('\n') {
        return None;
    }
    let (Some(old), Some(new)) = (Readings::of(old), Readings::of(new)) else { return Some(Err(Unclear)) };
    // What the old text says about its escapes holds for the new text.
    Some(match (old.plain == old.full, new.plain == new.full) {
        (true, true) if !breaks_text(&new.full, &old.full) => Ok((old.full, new.full)),
        (false, _) if !breaks_text(&new.full, &old.full) => Ok((old.full, new.full)),
        _ => Err(Unclear),
    })
}

/// It is in doubt what the escapes mean.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclear;

struct Readings {
    /// Only ends of lines and tabs are escaped.
    plain: String,
    /// As in a string of JSON.
    full: String,
}

impl Readings {
    fn of(text: &str) -> Option<Self> {
        let plain = text.replace("\\n", "\n").replace("\\t", "\t");
        let mut full = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            if char != '\\' {
                full.push(char);
                continue;
            }
            match chars.next()? {
                'n' => full.push('\n'),
                't' => full.push('\t'),
                'r' => full.push('\r'),
                other @ ('"' | '\'' | '\\' | '/') => full.push(other),
                other => full.extend(['\\', other]),
            }
        }
        Some(Self { plain, full: full.replace("\r\n", "\n") })
    }
}

/// A line that the new text adds has a quote without its partner: the line end may belong into the text.
fn breaks_text(new: &str, old: &str) -> bool {
    let is_odd = |line: &str| line.matches('"').count() % 2 == 1 || line.matches('`').count() % 2 == 1;
    new.lines().any(|line| is_odd(line) && !old.lines().any(|known| known == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_only_where_they_are_clear() {
        let check = |old: &str, new: &str, expected: Option<Result<(&str, &str), Unclear>>| {
            let expected = expected.map(|it| it.map(|(old, new)| (old.to_owned(), new.to_owned())));
            assert_eq!(read(old, new), expected, "{old} | {new}");
        };
        check(r"a\n  b", r"a\n  c", Some(Ok(("a\n  b", "a\n  c"))));
        check(r#"a\nf(\"x\")"#, r#"a\nf(\"y\\n\")"#, Some(Ok(("a\nf(\"x\")", "a\nf(\"y\\n\")"))));
        check(r"a\nb", r#"a\nprint("x\n")"#, Some(Err(Unclear)));
        check(r"a\nb", r"a\nc\\nd", Some(Err(Unclear)));
        check("a\nb\\n", "c", None);
        check("a", "b", None);
    }
}
