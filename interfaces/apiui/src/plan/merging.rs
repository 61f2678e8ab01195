//! Groups that are too small or too large to be a page of their own.
//!
//! Owns when a group joins another one and when it is split. Invariant: no endpoint is lost or doubled.

use super::paths::{Placed, Scope, is_version, segments};
use super::words::{singular, split};
use crate::spec::Endpoint;
use indexmap::IndexMap;
use std::collections::HashMap;

/// More operations than this on one page are grouped.
const MAX_OPERATIONS: usize = 40;

pub(super) type Groups = IndexMap<String, Vec<Placed>>;

/// A single operation that is not a list joins the collection above it: it is something done with those items.
pub(super) fn adopt_single(placed: &mut Groups, is_list: &dyn Fn(usize) -> bool) {
    let single: Vec<String> = placed
        .iter()
        .filter(|(key, all)| key.starts_with('/') && all.len() == 1 && !is_list(all[0].index))
        .map(|(key, _)| key.clone())
        .collect();
    for key in single {
        let Some(parent) = parent_of(&key, placed) else { continue };
        let members = placed.shift_remove(&key).unwrap_or_default();
        if let Some(group) = placed.get_mut(&parent) {
            let scope = if key[parent.len()..].starts_with("/{}") {
                Scope::ItemAction
            } else {
                Scope::CollectionAction
            };
            group.extend(members.into_iter().map(|one| Placed { index: one.index, scope }));
        }
    }
}

/// The nearest collection above a path that is a group itself.
fn parent_of(key: &str, placed: &Groups) -> Option<String> {
    let mut above = key;
    while let Some((rest, _)) = above.rsplit_once('/') {
        if rest.is_empty() {
            return None;
        }
        if placed.contains_key(rest) {
            return Some(rest.to_owned());
        }
        above = rest;
    }
    None
}

/// Single operations without a collection join the largest group of their tag; without a tag they are put together.
pub(super) fn adopt_loose_single(placed: &mut Groups, endpoints: &[Endpoint]) {
    let mut by_tag: HashMap<String, (String, usize)> = HashMap::new();
    for (key, all) in placed.iter().filter(|(_, all)| all.len() > 1) {
        for tag in all.iter().filter_map(|one| endpoints[one.index].tag.clone()) {
            let best = by_tag.entry(tag).or_insert_with(|| (key.clone(), 0));
            if all.len() > best.1 {
                *best = (key.clone(), all.len());
            }
        }
    }
    let loose: Vec<String> = placed
        .iter()
        .filter(|(key, all)| !key.starts_with('/') && all.len() == 1)
        .map(|(key, _)| key.clone())
        .collect();
    let is_many = loose.len() > 1;
    for key in loose {
        let Some(members) = placed.shift_remove(&key) else { continue };
        let tag = members.first().and_then(|one| endpoints[one.index].tag.as_ref());
        let target = tag.and_then(|tag| by_tag.get(tag)).map(|(key, _)| key.clone());
        let target = match (target, tag) {
            (Some(target), _) => target,
            (None, Some(tag)) => format!("tag:{tag}"),
            (None, None) if is_many => "loose:Other operations".to_owned(),
            (None, None) => key,
        };
        let loose = members.into_iter().map(|one| Placed { index: one.index, scope: Scope::Loose });
        placed.entry(target).or_default().extend(loose);
    }
}

/// Splits what no page could show: by the next part of the path, or by the words of the operations' names.
pub(super) fn split_large(placed: Groups, endpoints: &[Endpoint]) -> Groups {
    let mut out: Groups = IndexMap::new();
    for (key, all) in placed {
        if all.len() <= MAX_OPERATIONS {
            out.entry(key).or_default().extend(all);
            continue;
        }
        let depth = segments(&key).len();
        let mut parts: Groups = IndexMap::new();
        for one in all {
            // What makes the group a resource stays together.
            let is_core = matches!(one.scope, Scope::Collection | Scope::Item);
            let part = if is_core { String::new() } else { part_name(&endpoints[one.index], depth) };
            parts.entry(part).or_default().push(one);
        }
        for (part, members) in parts {
            let is_small = members.len() < 3;
            let target = if part.is_empty() || is_small { key.clone() } else { format!("{key}#{part}") };
            out.entry(target).or_default().extend(members);
        }
    }
    out
}

fn part_name(endpoint: &Endpoint, depth: usize) -> String {
    let path = segments(&endpoint.path);
    let named = path.iter().filter(|segment| !is_version(segment));
    let next = named.skip(depth).find(|segment| !segment.contains('{'));
    if let Some(next) = next.filter(|_| depth > 0) {
        return singular(&next.to_lowercase());
    }
    let words = split(endpoint.operation_id.as_deref().unwrap_or_default());
    let telling =
        words.iter().map(|word| word.to_lowercase()).filter(|word| super::rpc::action(word).is_none());
    let mut telling = telling.skip_while(|word| ["post", "put", "patch"].contains(&word.as_str()));
    singular(&telling.next().unwrap_or_default())
}
