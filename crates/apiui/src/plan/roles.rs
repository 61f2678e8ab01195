//! Reads from the name of an operation what it does.
//!
//! Owns the verbs. Used where the method does not say it: GraphQL mutations and RPC-like paths.

use super::words::split;

const CREATE: [&str; 7] = ["create", "add", "new", "insert", "register", "make", "submit"];
const EDIT: [&str; 9] = ["update", "edit", "set", "modify", "change", "rename", "save", "upsert", "patch"];
const DELETE: [&str; 6] = ["delete", "remove", "destroy", "drop", "erase", "purge"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Edit,
    Delete,
}

/// The verb of a name and the words after (or, as in `petCreate`, before) it.
pub(super) fn verb(name: &str) -> Option<(Verb, String)> {
    let words: Vec<String> = split(name).iter().map(|word| word.to_lowercase()).collect();
    let of = |word: &str| {
        [(Verb::Create, &CREATE[..]), (Verb::Edit, &EDIT[..]), (Verb::Delete, &DELETE[..])]
            .into_iter()
            .find(|(_, verbs)| verbs.contains(&word))
            .map(|(verb, _)| verb)
    };
    let (first, last) = (words.first()?, words.last()?);
    if let Some(verb) = of(first) {
        return Some((verb, words[1..].concat()));
    }
    of(last).map(|verb| (verb, words[..words.len() - 1].concat()))
}

pub(super) fn is_removal(name: &str) -> bool {
    verb(name).is_some_and(|(verb, _)| verb == Verb::Delete)
}
