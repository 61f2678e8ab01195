//! Reads from the name of an operation what it does, with what, and to how many.
//!
//! Owns the verbs of names. Used where the method does not say it: GraphQL mutations and RPC-like paths. A name that says
//! two things says nothing: the operation then plays no part and stays an operation.

use super::words::{singular, split};

/// Verbs that make an item, change one or take one away. The first ones of a row are preferred to the others.
const CREATE: [&str; 7] = ["create", "insert", "new", "add", "register", "make", "submit"];
const EDIT: [&str; 7] = ["update", "edit", "modify", "patch", "change", "save", "replace"];
const DELETE: [&str; 6] = ["delete", "remove", "destroy", "drop", "erase", "purge"];
/// They change a part of an item, or make what is not there: a form of the whole item is something else.
const PARTIAL: [&str; 4] = ["set", "rename", "upsert", "put"];
/// Words for more than one item.
const MANY: [&str; 6] = ["many", "bulk", "batch", "multiple", "all", "mass"];
/// What one item is known by: `ById`.
const UNIQUE: [&str; 9] = ["pk", "id", "uuid", "nodeid", "documentid", "slug", "username", "login", "email"];
/// What such a name says goes with what it is applied to, wherever the word is.
const DESTROY: [&str; 8] =
    ["delete", "remove", "destroy", "purge", "erase", "wipe", "truncate", "obliterate"];
/// These can be nouns too: they count at the beginning and at the end.
const DESTROY_AT_ENDS: [&str; 13] = [
    "drop",
    "clear",
    "empty",
    "reset",
    "revoke",
    "terminate",
    "trash",
    "discard",
    "prune",
    "uninstall",
    "kill",
    "expunge",
    "flush",
];
/// Verbs that do not destroy, whatever follows them.
const HARMLESS: [&str; 16] = [
    "create", "add", "new", "insert", "get", "list", "update", "edit", "set", "show", "find", "search",
    "undo", "register", "restore", "preview",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Verb {
    Create,
    Edit,
    Delete,
}

/// What the name of a GraphQL operation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub verb: Option<Verb>,
    /// How well the verb says it; the lowest number is best. `None`: the operation plays no part.
    pub rank: Option<usize>,
    /// The words of the thing, joined and in lower case.
    pub noun: String,
    /// It is about more than one item.
    pub is_many: bool,
    /// It ends with `_by_pk`: its arguments are the columns of the primary key.
    pub goes_by: bool,
    /// It ends with `_item`, as for one of a collection that is called in the plural.
    is_item: bool,
}

/// Takes the name of an operation apart: `update_posts_by_pk`, `deleteOnePost`, `postCreate`.
pub(super) fn name(written: &str) -> Name {
    let mut words: Vec<String> = split(written).iter().map(|word| word.to_lowercase()).collect();
    let before = words.len();
    words.retain(|word| !MANY.contains(&word.as_str()));
    let mut is_many = words.len() < before;
    let by = words.iter().rposition(|word| word == "by").filter(|at| *at > 0 && at + 1 < words.len());
    let by = by.map(|at| words.split_off(at)[1..].concat()).unwrap_or_default();
    // `deletePostByAuthor` may be about all posts of the author.
    is_many |= !by.is_empty() && !UNIQUE.contains(&by.as_str());
    if words.len() > 2 && words.last().is_some_and(|last| last == "one") {
        words.pop();
    }
    let (verb, rank) = take_verb(&mut words);
    // By the usual key rather than by another one.
    let rank = rank.map(|rank| 2 * rank + usize::from(!by.is_empty()));
    if words.len() > 1 && words.first().is_some_and(|first| ["one", "single"].contains(&first.as_str())) {
        words.remove(0);
    }
    let is_item = written.ends_with("_item");
    Name { verb, rank, noun: words.concat(), is_many, goes_by: by == "pk", is_item }
}

/// The verb at the beginning, or else at the end; it is taken out of the words.
fn take_verb(words: &mut Vec<String>) -> (Option<Verb>, Option<usize>) {
    let of = |word: &str| {
        let place = |verbs: &[&str]| verbs.iter().position(|one| *one == word);
        let ranked = [(Verb::Create, &CREATE[..]), (Verb::Edit, &EDIT[..]), (Verb::Delete, &DELETE[..])];
        let found = ranked.into_iter().find_map(|(verb, verbs)| Some((verb, Some(place(verbs)?))));
        found.or_else(|| place(&PARTIAL).map(|_| (Verb::Edit, None)))
    };
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return (None, None) };
    let (found, is_first) = match (of(first), of(last)) {
        (Some(found), _) => (found, true),
        (None, Some(found)) => (found, false),
        (None, None) => return (None, None),
    };
    if is_first {
        words.remove(0);
    } else {
        words.pop();
    }
    (Some(found.0), found.1)
}

impl Name {
    /// Whether the noun is that of a thing: the very word, or its plural and "item".
    pub(super) fn is_about(&self, thing: &str) -> bool {
        let is_plural = singular(thing) != thing;
        self.noun == thing || self.is_item && is_plural && self.noun.strip_suffix("item") == Some(thing)
    }
}

/// Whether calling something of this name takes something away for good.
pub(super) fn is_removal(name: &str) -> bool {
    let words: Vec<String> = split(name).iter().map(|word| word.to_lowercase()).collect();
    let Some((first, last)) = words.first().zip(words.last()) else { return false };
    if HARMLESS.contains(&first.as_str()) {
        return false;
    }
    words.iter().any(|word| DESTROY.contains(&word.as_str()))
        || [first, last].iter().any(|word| DESTROY_AT_ENDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (written, verb, noun, is_many) in [
            ("update_posts_by_pk", Some(Verb::Edit), "posts", false),
            ("insert_posts_one", Some(Verb::Create), "posts", false),
            ("deleteOnePost", Some(Verb::Delete), "post", false),
            ("deleteManyPost", Some(Verb::Delete), "post", true),
            ("postUpdateById", Some(Verb::Edit), "post", false),
            ("productVariantsBulkDelete", Some(Verb::Delete), "productvariants", true),
            ("update_posts_item", Some(Verb::Edit), "postsitem", false),
            ("orderCancel", None, "ordercancel", false),
            ("upsertPost", Some(Verb::Edit), "post", false),
        ] {
            let name = name(written);
            assert_eq!((name.verb, name.noun.as_str(), name.is_many), (verb, noun, is_many), "{written}");
        }
        assert_eq!(
            (name("upsertPost").rank, name("renamePost").rank),
            (None, None),
            "no part of an item's form"
        );
        assert!(name("update_posts_item").is_about("posts") && !name("deletePosts").is_about("post"));
        assert!(!name("deleteCartItem").is_about("cart") && !name("delete_cart_item").is_about("cart"));
        assert!(name("deletePostByAuthorId").is_many && !name("deletePostById").is_many);
    }

    #[test]
    fn destroying_names_are_known() {
        for name in
            ["deletePost", "postBulkDelete", "forceDeletePost", "clearCart", "resetBranch", "users.delete"]
        {
            assert!(is_removal(name), "{name}");
        }
        for name in
            ["createPost", "undoDelete", "restoreDeleted", "listDeletedPosts", "addDropPoint", "getReset"]
        {
            assert!(!is_removal(name), "{name}");
        }
    }
}
