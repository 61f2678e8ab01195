//! Names that users write in two spellings: ECA shows `myProvider` as `my-provider` and `test-mcp` as `testMcp`.
//!
//! Knows no setting and no tool. Invariant: two names are the same only if they differ in nothing but kebab-case and
//! camelCase; underscores separate a server from its tool and always count.

/// The name in kebab-case: a capital letter after a small one or a digit begins a word.
pub fn kebab_case(name: &str) -> String {
    kebab_characters(name).collect()
}

/// The name in camelCase: a letter after a hyphen is large, and the hyphen is gone. A name with a hyphen elsewhere than
/// between words stays as it is.
pub fn camel_case(name: &str) -> String {
    let mut words = name.split('-');
    let first = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let is_word = |word: &str| word.starts_with(char::is_lowercase);
    if first.is_empty() || !rest.iter().all(|word| is_word(word)) {
        return name.to_owned();
    }
    let large = |word: &&str| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    std::iter::once(first.to_owned()).chain(rest.iter().map(large)).collect()
}

/// Whether two names are spellings of one. Rules ask this for every call, so it allocates nothing.
pub fn is_same_name(one: &str, other: &str) -> bool {
    one == other || may_be_same(one, other) && kebab_characters(one).eq(kebab_characters(other))
}

/// Where two names differ first, spellings of one name have a hyphen or the same letter in another case. Other alphabets
/// are compared whole.
fn may_be_same(one: &str, other: &str) -> bool {
    let is_open = |letter: u8| letter == b'-' || !letter.is_ascii();
    let first_difference = one.bytes().zip(other.bytes()).find(|(one, other)| one != other);
    first_difference
        .is_some_and(|(one, other)| one.eq_ignore_ascii_case(&other) || is_open(one) || is_open(other))
}

fn kebab_characters(name: &str) -> impl Iterator<Item = char> {
    let mut after_word = false;
    name.chars().flat_map(move |character| {
        let separator = (character.is_uppercase() && after_word).then_some('-');
        after_word = character.is_lowercase() || character.is_numeric();
        separator.into_iter().chain(character.to_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_both_spellings() {
        for (kebab, camel) in [
            ("test-mcp", "testMcp"),
            ("mcp-server-sample", "mcpServerSample"),
            ("memory", "memory"),
            ("my_server", "my_server"),
            ("über-ich", "überIch"),
        ] {
            assert_eq!((camel_case(kebab), kebab_case(camel)), (camel.to_owned(), kebab.to_owned()));
            assert!(is_same_name(kebab, camel));
        }
        // What would no longer be the same name is not changed.
        for odd in ["a-1", "a--b", "-a", "a-", "", "a-B"] {
            assert_eq!(camel_case(odd), odd);
        }
    }

    #[test]
    fn both_spellings_are_one_name_and_other_names_are_not() {
        for (one, other, expected) in [
            ("test-mcp", "testMcp", true),
            ("test-mcp__echo", "testMcp__echo", true),
            ("myProvider", "my-provider", true),
            ("OpenAI", "open-ai", true),
            ("read_file", "readFile", false),
            ("read_file", "read-file", false),
            ("a_b", "ab", false),
            ("test", "testMcp", false),
            ("", "test", false),
            ("eca__read_file", "eca__write_file", false),
            ("mcp-Server", "mcpServer", true),
            ("aB-c", "a-bC", true),
            ("ÄTool", "ätool", true),
            // The Kelvin sign is a K.
            ("\u{212a}elvin", "kelvin", true),
        ] {
            assert_eq!(is_same_name(one, other), expected, "{one} {other}");
        }
    }
}
