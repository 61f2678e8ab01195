//! Recognizes keys and tokens in text by their first letters. The one list of such beginnings.
//!
//! Must not know what a caller does with a key.

/// Keys of well-known services begin with these letters.
const STARTS: [&str; 19] = [
    "sk-",
    "sk_",
    "gsk_",
    "xai-",
    "AIza",
    "ghu_",
    "gho_",
    "ghp_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hf_",
    "AKIA",
    "ASIA",
    "bedrock-api-key-",
    "xoxb-",
    "xoxp-",
    "npm_",
    "eyJ",
];
/// A shorter word is a word of a language.
const MIN_BYTES: usize = 8;

/// Whether a word begins like a key.
pub fn starts_like_key(word: &str) -> bool {
    word.len() >= MIN_BYTES && STARTS.iter().any(|start| word.starts_with(start))
}

/// Whether one of the words of a text begins like a key.
pub fn holds_key(text: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'`,;:=&?/@()[]{}<>".contains(c);
    text.split(is_end).any(|word| {
        starts_like_key(word) && word.len() > MIN_BYTES * 2 && word.contains(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_from_words() {
        assert!(
            starts_like_key("ghp_0123456789abcdef")
                && !starts_like_key("sk-")
                && !starts_like_key("risk-free")
        );
        assert!(holds_key("curl -H 'Authorization: Bearer sk-0123456789abcdef'"));
        assert!(!holds_key("sk-something-like-a-name is no key, and npm_config_registry is none"));
    }
}
