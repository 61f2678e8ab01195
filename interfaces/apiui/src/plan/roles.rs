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
/// What cannot be taken back, though nothing is gone. These can be nouns too: `refundCreate` makes one.
const FINAL: [&str; 8] =
    ["void", "refund", "rollback", "ban", "expire", "overwrite", "deactivate", "invalidate"];
/// Verbs that do not destroy, unless what follows at once or at the end does: `createBulkDeleteJob`, `listDelete`.
const HARMLESS: [&str; 11] =
    ["create", "add", "new", "insert", "list", "update", "edit", "set", "search", "register", "preview"];
/// Those of them that can be the name of a thing: `setClear` empties a set.
const THINGS: [&str; 5] = ["list", "set", "search", "register", "preview"];
/// Verbs that do not destroy, whatever follows them.
const KEEP: [&str; 5] = ["get", "find", "show", "undo", "restore"];
/// What is marked in this way is gone: `setUserDeleted`.
const GONE: [&str; 5] = ["deleted", "removed", "destroyed", "purged", "erased"];
/// Verbs that only read, and how names of such operations end.
const READ: [&str; 13] = [
    "get",
    "find",
    "fetch",
    "count",
    "search",
    "export",
    "download",
    "preview",
    "validate",
    "estimate",
    "calculate",
    "simulate",
    "verify",
];
const READ_AT_END: [&str; 5] = ["search", "export", "count", "preview", "validate"];

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

/// The words of a name in lower case.
fn lower_words(name: &str) -> Vec<String> {
    split(name).iter().map(|word| word.to_lowercase()).collect()
}

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.contains(&word)
}

/// Whether calling something of this name takes something away for good.
pub(super) fn is_removal(name: &str) -> bool {
    let mut words = lower_words(name);
    words.retain(|word| !is_one_of(&MANY, word));
    let Some((first, last)) = words.first().zip(words.last()) else { return false };
    if is_one_of(&KEEP, first) {
        return false;
    }
    // Who forgot a password loses nothing.
    let is_password = words.iter().any(|word| word == "password");
    let (is_harmless, is_thing) = (is_one_of(&HARMLESS, first), is_one_of(&THINGS, first));
    let is_removing = |(at, word): (usize, &String)| {
        let is_end = at == 0 || at + 1 == words.len();
        let is_verb = is_one_of(&DESTROY, word);
        let is_near = !is_harmless || at == 1 || is_end;
        let is_at_end = is_end && is_one_of(&DESTROY_AT_ENDS, word) && (!is_harmless || is_thing);
        (is_verb && is_near || is_at_end) && !(word == "reset" && is_password)
    };
    let marks = is_one_of(&["set", "mark", "flag", "update"], first) && is_one_of(&GONE, last);
    words.iter().enumerate().any(is_removing) || marks || is_final(&words)
}

fn is_final(words: &[String]) -> bool {
    let Some((first, last)) = words.first().zip(words.last()) else { return false };
    let joined = words.concat();
    let is_pair =
        ["rollback", "forcepush"].iter().any(|pair| joined.starts_with(pair) || joined.ends_with(pair));
    let is_word = [first, last].iter().any(|word| is_one_of(&FINAL, word));
    (is_word || is_pair) && ![first, last].iter().any(|word| is_one_of(&HARMLESS, word))
}

/// Whether a name says that rows that are there are edited or taken away.
pub(super) fn is_change(written: &str) -> bool {
    name(written).verb.is_some_and(|verb| verb != Verb::Create) || is_removal(written)
}

/// Whether a mutation of this name may change rows that are there: all but those that make one, or that only read.
pub(super) fn changes_rows(written: &str) -> bool {
    let words = lower_words(written);
    let reads = words.first().is_some_and(|first| is_one_of(&READ, first))
        || words.last().is_some_and(|last| is_one_of(&READ_AT_END, last));
    is_change(written) || name(written).verb != Some(Verb::Create) && !reads
}

/// Whether a name says that many rows are meant.
pub(super) fn says_many(name: &str) -> bool {
    lower_words(name).iter().any(|word| is_one_of(&MANY, word))
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
        // The noun comes first in some dialects, and may look like a verb.
        for name in [
            "listDelete",
            "setDelete",
            "listClear",
            "searchDelete",
            "previewDelete",
            "registerPurge",
            "AddOns_purge",
            "List_removeAll",
            "setUserDeleted",
            "createBulkDeleteJob",
        ] {
            assert!(is_removal(name), "{name}");
        }
        for name in [
            "voidInvoice",
            "invoiceVoid",
            "refundOrder",
            "rollbackRelease",
            "rollBack",
            "banUser",
            "expireTokens",
            "overwriteFile",
            "deletePassword",
            "forcePushBranch",
        ] {
            assert!(is_removal(name), "{name}");
        }
        for name in [
            "createRefund",
            "refundCreate",
            "banList",
            "resetPassword",
            "requestPasswordReset",
            "createDrop",
            "updateUserRemovalDate",
        ] {
            assert!(!is_removal(name), "{name}");
        }
        for name in
            ["createPost", "undoDelete", "restoreDeleted", "listDeletedPosts", "addDropPoint", "getReset"]
        {
            assert!(!is_removal(name), "{name}");
        }
    }
}
