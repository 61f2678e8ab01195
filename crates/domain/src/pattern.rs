//! Patterns of rules, which are regular expressions. Must not know rules.

/// A pattern that matches exactly this text.
pub fn escape_pattern(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_patterns_are_escaped() {
        assert_eq!(escape_pattern("a.b (c)*"), "a\\.b \\(c\\)\\*");
        assert_eq!(escape_pattern("é_ x"), "é_ x");
    }
}
