//! Where the items are in an answer, and where it tells of more.
//!
//! Owns the knowledge of envelopes. Knows no operation.

use super::connection::connection;
use super::models::{Models, success};
use crate::spec::{Endpoint, Kind, Model};

/// Whether any list inside an object makes the answer a list: right for `GET /things`, wrong for
/// `GET /things/{id}` whose thing may hold a list of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eager {
    Yes,
    No,
}

pub(super) struct Found<'s> {
    pub items: Vec<String>,
    pub item: &'s Model,
    /// The object around the items.
    pub envelope: Option<&'s Model>,
    /// The path to that object.
    pub inside: Vec<String>,
    /// The whole answer, where that object is only a part of it.
    pub outer: Option<&'s Model>,
    pub is_connection: bool,
    pub has_total: bool,
}

const ITEM_NAMES: [&str; 22] = [
    "data",
    "items",
    "results",
    "result",
    "value",
    "values",
    "records",
    "list",
    "content",
    "contents",
    "rows",
    "entries",
    "nodes",
    "hits",
    "elements",
    "objects",
    "resources",
    "docs",
    "documents",
    "matches",
    "collection",
    "response",
];
const WRAPPERS: [&str; 6] = ["data", "result", "response", "_embedded", "payload", "body"];
const HINTS: [&str; 17] = [
    "total",
    "count",
    "page",
    "next",
    "previous",
    "prev",
    "limit",
    "offset",
    "cursor",
    "has_more",
    "hasmore",
    "meta",
    "links",
    "paging",
    "pagination",
    "nextlink",
    "response_metadata",
];

pub(super) fn find<'s>(models: &Models<'s>, answer: &'s Model, eager: Eager) -> Option<Found<'s>> {
    if let Some(found) = connection(models, answer) {
        return Some(Found {
            items: found.items,
            item: found.node,
            envelope: Some(models.resolve(answer)),
            inside: Vec::new(),
            outer: None,
            is_connection: true,
            has_total: found.has_total,
        });
    }
    if let Some(item) = models.item(answer) {
        return Some(Found {
            items: Vec::new(),
            item,
            envelope: None,
            inside: Vec::new(),
            outer: None,
            is_connection: false,
            has_total: false,
        });
    }
    let object = models.object(answer)?;
    in_object(models, object, eager, Vec::new()).or_else(|| {
        WRAPPERS.iter().find_map(|name| {
            let inner = models.object(object.properties.get(*name)?)?;
            let found = in_object(models, inner, eager, vec![(*name).to_owned()])?;
            Some(Found { outer: Some(object), ..found })
        })
    })
}

fn in_object<'s>(
    models: &Models<'s>,
    object: &'s Model,
    eager: Eager,
    inside: Vec<String>,
) -> Option<Found<'s>> {
    let lists: Vec<(&String, &'s Model)> = object
        .properties
        .iter()
        .filter_map(|(name, property)| Some((name, models.item(property)?)))
        .collect();
    let is_object = |item: &&'s Model| matches!(models.resolve(item).kind, Kind::Object | Kind::Union);
    // What has an id is a thing itself; its lists are parts of it.
    let is_thing = object.properties.contains_key("id");
    let has_hint = !is_thing
        && object.properties.keys().any(|name| {
            let plain: String = name.to_lowercase().replace(['@', '$', '.'], "");
            HINTS.iter().any(|hint| {
                plain == *hint
                    || plain.ends_with(&format!("_{hint}"))
                    || plain.starts_with("next")
                    || plain.starts_with("total")
            })
        });
    let preferred =
        ITEM_NAMES.iter().find_map(|wanted| lists.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)));
    let only = || match lists.as_slice() {
        [only] if has_hint || object.properties.len() == 1 => Some(only),
        _ => None,
    };
    let any = || {
        let allowed = eager == Eager::Yes || has_hint;
        lists.iter().find(|(_, item)| is_object(item)).or(lists.first()).filter(|_| allowed)
    };
    let named = preferred.filter(|_| eager == Eager::Yes || has_hint || object.properties.len() <= 4);
    let (name, item) = named.or_else(only).or_else(any)?;
    let mut items = inside.clone();
    items.push((*name).clone());
    Some(Found {
        items,
        item,
        envelope: Some(object),
        inside,
        outer: None,
        is_connection: false,
        has_total: false,
    })
}

/// Whether an endpoint answers with a list.
pub(super) fn answers_list(endpoint: &Endpoint, models: &Models) -> bool {
    let answer = success(endpoint).and_then(|response| response.schema.as_ref());
    answer.is_some_and(|answer| find(models, answer, Eager::No).is_some())
}
