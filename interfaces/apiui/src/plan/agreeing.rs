//! Whether an endpoint does what its method and path suggest: its own name must agree.
//!
//! Owns the verbs that names and summaries begin with. `PUT /branches/{branch}` that is called `resetBranch` is no edit. Where
//! the name says nothing, the method decides; a `POST` to an item says nothing, so its name has to.

use super::models::Models;
use super::paths::normalized;
use super::roles;
use super::words::{shorten_note, singular, split};
use crate::spec::{Endpoint, Model};

const CREATE: [&str; 19] = [
    "create",
    "add",
    "new",
    "insert",
    "register",
    "make",
    "submit",
    "invite",
    "issue",
    "generate",
    "upload",
    "book",
    "place",
    "save",
    "store",
    "send",
    "publish",
    "start",
    "subscribe",
];
const EDIT: [&str; 14] = [
    "update",
    "edit",
    "modify",
    "patch",
    "put",
    "replace",
    "change",
    "save",
    "set",
    "upsert",
    "amend",
    "revise",
    "store",
    "configure",
];
/// Verbs that neither make nor change an item, or change what is no part of its form.
const OTHER: [&str; 96] = [
    "search",
    "query",
    "find",
    "list",
    "get",
    "fetch",
    "filter",
    "lookup",
    "count",
    "check",
    "validate",
    "verify",
    "test",
    "preview",
    "estimate",
    "calculate",
    "simulate",
    "read",
    "retrieve",
    "export",
    "import",
    "sync",
    "merge",
    "move",
    "copy",
    "clone",
    "duplicate",
    "reset",
    "revert",
    "restore",
    "rollback",
    "cancel",
    "close",
    "reopen",
    "open",
    "stop",
    "restart",
    "archive",
    "unarchive",
    "unpublish",
    "approve",
    "reject",
    "accept",
    "decline",
    "confirm",
    "activate",
    "deactivate",
    "enable",
    "disable",
    "lock",
    "unlock",
    "pay",
    "capture",
    "refund",
    "void",
    "resend",
    "sign",
    "assign",
    "unassign",
    "attach",
    "detach",
    "link",
    "unlink",
    "join",
    "leave",
    "follow",
    "unfollow",
    "star",
    "unstar",
    "unsubscribe",
    "mark",
    "run",
    "execute",
    "trigger",
    "retry",
    "rotate",
    "regenerate",
    "refresh",
    "complete",
    "finish",
    "initiate",
    "pin",
    "unpin",
    "transfer",
    "grant",
    "revoke",
    "reorder",
    "connect",
    "respond",
    "block",
    "kick",
    "delete",
    "remove",
    "purge",
    "destroy",
    "erase",
];
/// Verbs that read, whatever their method is.
const READ: [&str; 14] = [
    "search", "query", "find", "list", "get", "fetch", "filter", "lookup", "count", "check", "validate",
    "verify", "preview", "read",
];
/// What a `POST` to an item must be called to be an edit.
const SURE: [&str; 7] = ["update", "edit", "modify", "patch", "replace", "change", "amend"];
/// Words for more than one item.
const MANY: [&str; 4] = ["bulk", "batch", "many", "multiple"];

/// Whether posting to a collection makes one item of it.
pub(super) fn makes_item(endpoint: &Endpoint) -> bool {
    let told = verbs(endpoint);
    let thing = thing(endpoint).unwrap_or_default();
    // To assign makes an assignment.
    let makes = |verb: &String| {
        let stem = verb.strip_suffix('e').unwrap_or(verb);
        CREATE.contains(&verb.as_str()) || thing.starts_with(stem) && !READ.contains(&verb.as_str())
    };
    !is_about_many(endpoint) && (told.is_empty() || told.iter().any(makes))
}

/// The last word of the collection that a path ends with, in the singular.
fn thing(endpoint: &Endpoint) -> Option<String> {
    let path = super::paths::segments(&endpoint.path);
    let last = path.iter().rev().find(|segment| !segment.contains('{'))?;
    split(last).last().map(|word| singular(&word.to_lowercase()))
}

/// The words of a path and of its tag: verbs among them are nouns.
fn nouns(endpoint: &Endpoint) -> Vec<String> {
    super::paths::segments(&endpoint.path)
        .iter()
        .flat_map(|segment| split(segment))
        .chain(endpoint.tag.iter().flat_map(|tag| split(tag)))
        .map(|word| singular(&word.to_lowercase()))
        .collect()
}

/// Whether a call to an item changes its fields; `has_to` where the method does not say so.
pub(super) fn changes_item(endpoint: &Endpoint, has_to: bool) -> bool {
    let told = verbs(endpoint);
    let verbs = if has_to { &SURE[..] } else { &EDIT[..] };
    let is_edit = |verb: &String| verbs.contains(&verb.as_str());
    let is_told =
        if told.is_empty() { !has_to } else { told.iter().any(is_edit) || creates_or_updates(endpoint) };
    is_told && !is_about_many(endpoint) && !is_about_a_part(endpoint)
}

/// Whether a call to an item takes it away.
pub(super) fn takes_item(endpoint: &Endpoint) -> bool {
    let told = verbs(endpoint);
    let is_other =
        |verb: &String| ["connect", "create", "add", "update", "list", "get"].contains(&verb.as_str());
    !told.iter().any(is_other) && !is_about_many(endpoint) && !is_about_a_part(endpoint)
}

/// "Bulk delete issue property": the path names one thing, and the call changes many.
fn is_about_many(endpoint: &Endpoint) -> bool {
    let nouns = nouns(endpoint);
    let name = words(endpoint.operation_id.as_deref());
    let summary = words(endpoint.summary.as_deref());
    let is_many = |word: &String| MANY.contains(&word.as_str());
    name.iter().any(|word| is_many(word) && !nouns.contains(&singular(word)))
        || summary.first().is_some_and(is_many)
}

/// "Delete actors from project role", for `/role/{id}`: something of the item, not the item.
fn is_about_a_part(endpoint: &Endpoint) -> bool {
    let text = endpoint.summary.as_deref().unwrap_or_default();
    let summary = words(Some(text));
    let Some(thing) = thing(endpoint).filter(|thing| thing.len() > 2) else { return false };
    let preposition =
        summary.iter().take(6).position(|word| ["from", "for", "to", "on"].contains(&word.as_str()));
    let Some(at) = preposition.filter(|at| *at > 1 && first_verb(text).is_some()) else { return false };
    let nouns = nouns(endpoint);
    let after = summary.get(at + 1..(at + 5).min(summary.len())).unwrap_or_default();
    !summary[1..at].iter().any(|word| nouns.contains(&singular(word)))
        && after.iter().any(|word| singular(word) == thing)
}

fn creates_or_updates(endpoint: &Endpoint) -> bool {
    let says = |text: Option<&str>| {
        words(text).windows(2).any(|pair| pair[0] == "or" && EDIT.contains(&pair[1].as_str()))
    };
    says(endpoint.operation_id.as_deref()) || says(endpoint.summary.as_deref())
}

/// Whether an endpoint is named by no verb at all.
pub(super) fn is_nameless(endpoint: &Endpoint) -> bool {
    verbs(endpoint).is_empty() && !is_about_many(endpoint)
}

/// The key in the body of a `PUT` to a collection that changes one of its items; `None` where it may be about all of them.
pub(super) fn key_in_body<'s>(
    models: &Models<'s>,
    endpoint: &'s Endpoint,
    item: Option<&'s Model>,
) -> Option<String> {
    let (body, item) = (endpoint.bodies.first()?, item?);
    let is_same = models.name(&body.model).is_some() && models.name(&body.model) == models.name(item);
    if models.item(&body.model).is_some() || !changes_item(endpoint, !is_same) {
        return None;
    }
    let (sent, held) = (models.object(&body.model)?, models.object(item)?);
    let is_id = |name: &str| ["id", "uuid", "guid", "key"].contains(&name.to_lowercase().as_str());
    let found = sent.properties.iter().find(|(name, property)| {
        is_id(name)
            && !property.read_only
            && property.properties.is_empty()
            && held.properties.contains_key(*name)
    });
    found.map(|(name, _)| name.clone())
}

/// Whether two paths lead to the same item.
pub(super) fn is_same_item(one: &str, other: &str) -> bool {
    normalized(one) == normalized(other)
}

/// Whether a call takes something away for good, whatever its method.
pub(super) fn destroys(endpoint: &Endpoint) -> bool {
    if endpoint.method == "DELETE" {
        return true;
    }
    let action = endpoint.path.split_once("Action=").map(|(_, action)| action);
    let last = super::paths::segments(&endpoint.path).last().copied().filter(|last| !last.contains('{'));
    let id = endpoint.operation_id.as_deref();
    let is_removal = |name: Option<&str>| name.is_some_and(roles::is_removal);
    if matches!(endpoint.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY") {
        let is_verb =
            last.is_some_and(|last| ["delete", "remove", "destroy", "purge", "erase"].contains(&last));
        return is_verb || is_removal(action);
    }
    let summary = words(endpoint.summary.as_deref());
    let first = summary.first().map(|word| word.strip_suffix('s').unwrap_or(word));
    is_removal(id) || is_removal(action) || is_removal(last) || is_removal(first)
}

/// The verbs that an endpoint is named with: that of its name, and that of its summary.
fn verbs(endpoint: &Endpoint) -> Vec<String> {
    let nouns = nouns(endpoint);
    let method = endpoint.method.to_lowercase();
    let is_verb = |word: &&String| {
        let known = [&CREATE[..], &EDIT[..], &OTHER[..]].iter().any(|verbs| verbs.contains(&word.as_str()));
        known && **word != method && !nouns.contains(&singular(word))
    };
    let name = words(endpoint.operation_id.as_deref());
    let by_name = name.iter().find(is_verb).cloned();
    let summary = endpoint.summary.as_deref().filter(|summary| !summary.trim().is_empty());
    let described = || shorten_note(endpoint.description.as_deref(), 60);
    let summary = summary.map_or_else(described, str::to_owned);
    by_name.into_iter().chain(first_verb(&summary)).collect()
}

/// The verb that a sentence begins with: "Updates a pet" and "Update a pet" alike.
fn first_verb(text: &str) -> Option<String> {
    let words = words(Some(text));
    let first = words.first()?;
    let forms =
        [first.as_str(), first.strip_suffix("es").unwrap_or(first), first.strip_suffix('s').unwrap_or(first)];
    let is_known =
        |word: &&&str| [&CREATE[..], &EDIT[..], &OTHER[..]].iter().any(|verbs| verbs.contains(*word));
    forms.iter().find(is_known).map(|word| (*word).to_owned())
}

fn words(text: Option<&str>) -> Vec<String> {
    split(text.unwrap_or_default()).iter().take(40).map(|word| word.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(method: &str, path: &str, id: &str, summary: &str) -> Endpoint {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Endpoint {
            method: method.to_owned(),
            path: path.to_owned(),
            operation_id: text(id),
            summary: text(summary),
            ..Endpoint::default()
        }
    }

    #[test]
    fn a_name_that_says_something_else_is_believed() {
        for (method, path, id, summary, has_to, expected) in [
            ("PUT", "/branches/{branch}", "resetBranch", "", false, false),
            ("PUT", "/branches/{branch}", "updateBranch", "", false, true),
            ("PATCH", "/branches/{branch}", "", "", false, true),
            ("PUT", "/sites/{name}", "WebApps_CreateOrUpdate", "", false, true),
            ("POST", "/customers/{customer}", "PostCustomersCustomer", "Update a customer", true, true),
            ("POST", "/{service}/{product}", "initiatePayment", "Payment initiation request", true, false),
            ("POST", "/customers/{customer}", "", "", true, false),
            ("POST", "/avatar/{id}", "storeAvatar", "Load avatar", true, false),
            ("PUT", "/sessions/{id}", "", "Upload part of a file", false, false),
            ("PUT", "/links/{id}", "updateLink", "Updates a link", false, true),
            ("PUT", "/members/{name}", "repoAddMember", "Add a member", false, false),
        ] {
            let found = changes_item(&endpoint(method, path, id, summary), has_to);
            assert_eq!(found, expected, "{method} {path} {id}");
        }
        assert!(makes_item(&endpoint("POST", "/pets", "addPet", "")));
        assert!(makes_item(&endpoint("POST", "/pets", "", "")));
        assert!(!makes_item(&endpoint("POST", "/pets", "searchPets", "Search for pets")));
        assert!(!makes_item(&endpoint("POST", "/pets", "bulkCreatePets", "")));
        assert!(!makes_item(&endpoint("POST", "/search", "searchPets", "Search for pets")));
        let bulk =
            endpoint("DELETE", "/issue/properties/{key}", "deleteProperty", "Bulk delete issue property");
        assert!(!takes_item(&bulk) && !changes_item(&bulk, false));
        let part = endpoint("DELETE", "/role/{id}", "deleteActor", "Delete actors from project role");
        assert!(!takes_item(&part));
        assert!(takes_item(&endpoint(
            "DELETE",
            "/groups/{id}",
            "removeGroup",
            "Remove a group from the list"
        )));
    }

    #[test]
    fn what_destroys_is_known_by_any_method() {
        for (method, path, id) in [
            ("DELETE", "/pets/{id}", ""),
            ("POST", "/pets/bulk-delete", ""),
            ("POST", "/v2/keys.deleteKey", ""),
            ("POST", "/pets/{id}/clear", ""),
            ("GET", "/#Action=DeleteUser", "GET_DeleteUser"),
            ("PUT", "/branches/{branch}", "resetBranch"),
            ("POST", "/users/{id}/delete-password", ""),
            ("POST", "/charges/{id}/refund", ""),
            ("POST", "/invoices/{id}", "voidInvoice"),
            ("PUT", "/add-ons", "AddOns_purge"),
        ] {
            assert!(destroys(&endpoint(method, path, id, "")), "{method} {path}");
        }
        for (method, path, id) in [
            ("POST", "/pets", "createPet"),
            ("GET", "/delete-requests", ""),
            ("POST", "/reset-password", ""),
            ("POST", "/refunds", "createRefund"),
        ] {
            assert!(!destroys(&endpoint(method, path, id, "")), "{method} {path}");
        }
    }
}
