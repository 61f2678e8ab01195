//! Removes keys from messages and logs. Providers repeat keys in their errors, whole or in part.

/// `text` without the given secrets and without anything that looks like a key, cut to a readable length.
pub(crate) fn scrub(text: &str, secrets: &[&str]) -> String {
    let mut clean = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
        clean = clean.replace(*secret, MASK);
    }
    let mut out = String::with_capacity(clean.len());
    let mut follows_scheme = false;
    for word in clean.split_inclusive(|c: char| c.is_whitespace() || "\"'`,;()[]{}<>".contains(c)) {
        let core = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '*');
        let start = core.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(0);
        let value = &core[start..];
        let is_token = follows_scheme && value.len() >= 8 && value.contains(|c: char| c.is_ascii_digit());
        follows_scheme = value.eq_ignore_ascii_case("basic") || value.eq_ignore_ascii_case("bearer");
        if is_token || looks_like_key(value) {
            out.push_str(&word[..start]);
            out.push_str(MASK);
            out.push_str(&word[core.len()..]);
        } else {
            out.push_str(word);
        }
    }
    if out.chars().count() > LONGEST {
        out = out.chars().take(LONGEST).collect();
        out.push('…');
    }
    out
}

const MASK: &str = "[key]";
const LONGEST: usize = 600;

fn looks_like_key(word: &str) -> bool {
    let value = word.rsplit(['=', ':']).next().unwrap_or(word);
    domain::key_text::starts_like_key(value)
}

#[cfg(test)]
mod tests {
    use super::scrub;

    #[test]
    fn keys_do_not_survive() {
        let key = "my-very-own-token";
        for text in [
            "Incorrect API key provided: sk-abc12***wxyz. See the docs.",
            "bad key my-very-own-token!",
            r#"{"key":"sk-ant-REDACTED"}"#,
            "https://x/y?key=AIzaSyA1234567890",
            "(gsk_0123456789abcdef)",
            "{'authorization': 'Basic Ym9iOmh1bnRlcjI='}",
        ] {
            let clean = scrub(text, &[key]);
            assert!(clean.contains("[key]"), "{clean}");
            for part in ["sk-a", "own-token", "AIza", "gsk_", "Ym9i"] {
                assert!(!clean.contains(part), "{clean}");
            }
        }
        assert_eq!(scrub("Use Bearer authentication.", &[]), "Use Bearer authentication.");
        assert_eq!(scrub("a risk-free task-list of sk- things", &[]), "a risk-free task-list of sk- things");
    }
}
