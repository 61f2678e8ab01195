//! REST endpoints → groups around one collection each.
//!
//! Owns the reading of paths: which are collections, which are items, which are actions. Invariant: every
//! endpoint is in exactly one group.

use super::lists::{self, answers_list};
use super::merging;
use super::models::{Models, success};
use super::parts::Roles;
use super::paths::{Placed, Scope, is_parameter, is_version, segments};
use super::rpc;
use super::selecting::Selected;
use super::words::{humanize, line, plural, singular, split};
use crate::spec::{Endpoint, Model, Spec};
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};

/// Operations that belong together, and the parts they play.
#[derive(Debug, Default)]
pub(super) struct Group<'s> {
    pub title: String,
    pub singular: String,
    pub tag: String,
    pub members: Vec<usize>,
    pub list: Option<usize>,
    pub detail: Option<usize>,
    pub create: Option<usize>,
    pub edit: Option<usize>,
    pub delete: Option<usize>,
    /// What the detail answers with, where the list does not say.
    pub item: Option<&'s Model>,
    /// The GraphQL type that the group is about.
    pub entity: Option<&'s str>,
    /// By operation: the arguments that are keys of the group's items.
    pub proven: Vec<(usize, Selected)>,
    /// Where the fields of an item are among the arguments of the edit.
    pub record: Option<Vec<String>>,
    /// The field of the edit's body that says which item it is about, where its path does not.
    pub body_key: Option<String>,
}

pub(super) fn groups<'s>(spec: &'s Spec, models: &Models<'s>) -> Vec<Group<'s>> {
    let endpoints = &spec.endpoints;
    let paths: Vec<Vec<&str>> = endpoints.iter().map(|endpoint| segments(&endpoint.path)).collect();
    let collections = collections(endpoints, &paths, models);
    let mut placed: IndexMap<String, Vec<Placed>> = IndexMap::new();
    let prefix = shared_prefix(&paths);
    for (index, path) in paths.iter().enumerate() {
        let (key, scope) = place(path, &collections)
            .unwrap_or_else(|| (loose_key(&endpoints[index], path, prefix), Scope::Loose));
        placed.entry(key).or_default().push(Placed { index, scope });
    }
    adopt_loose(&mut placed);
    merging::adopt_single(&mut placed, &|index| {
        endpoints[index].method == "GET" && answers_list(&endpoints[index], models)
    });
    merging::adopt_loose_single(&mut placed, endpoints);
    let placed = merging::split_large(placed, endpoints);
    let titles = titles(&placed, &paths, prefix, endpoints);
    let mut groups: Vec<Group<'s>> = placed
        .into_iter()
        .zip(titles)
        .map(|((key, all), title)| group(&Roles { endpoints, models, all: &all, key: &key, prefix }, title))
        .collect();
    pluralize(&mut groups, models, endpoints);
    groups
}

/// The key of a path: parameters without their names, and no versions.
fn key(path: &[&str]) -> String {
    let mut key = String::new();
    let is_all_version = path.iter().all(|segment| is_version(segment));
    for segment in path.iter().filter(|segment| is_all_version || !is_version(segment)) {
        key.push('/');
        key.push_str(if is_parameter(segment) { "{}" } else { segment });
    }
    key
}

/// Paths that hold items: something follows them in braces, or reading them gives a list.
fn collections(endpoints: &[Endpoint], paths: &[Vec<&str>], models: &Models) -> HashSet<String> {
    let mut found = HashSet::new();
    for path in paths {
        for end in 1..path.len() {
            if is_parameter(path[end]) && !is_parameter(path[end - 1]) {
                found.insert(key(&path[..end]));
            }
        }
    }
    for (endpoint, path) in endpoints.iter().zip(paths) {
        let Some((last, parent)) = path.split_last() else { continue };
        let under_collection = found.contains(&key(parent));
        if endpoint.method == "GET"
            && !is_parameter(last)
            && !under_collection
            && answers_list(endpoint, models)
        {
            found.insert(key(path));
        }
    }
    found
}

/// The deepest collection of a path, and what the rest of the path says.
fn place(path: &[&str], collections: &HashSet<String>) -> Option<(String, Scope)> {
    for end in (1..=path.len()).rev() {
        if is_parameter(path[end - 1]) {
            continue;
        }
        let key = key(&path[..end]);
        if !collections.contains(&key) {
            continue;
        }
        let rest = &path[end..];
        let scope = match rest {
            [] => Scope::Collection,
            rest if rest.iter().all(|segment| is_parameter(segment)) => Scope::Item,
            [first, ..] if is_parameter(first) => Scope::ItemAction,
            _ => Scope::CollectionAction,
        };
        return Some((key, scope));
    }
    None
}

/// Where there is no collection: by the thing that an action is about, by tag, or by the first telling segment.
fn loose_key(endpoint: &Endpoint, path: &[&str], prefix: usize) -> String {
    if let Some((thing, _)) = rpc::subject(endpoint, path.get(prefix..).unwrap_or(path)) {
        return format!("rpc:{thing}");
    }
    match &endpoint.tag {
        Some(tag) => format!("tag:{tag}"),
        None => {
            let segment = path.get(prefix).or(path.last()).copied().unwrap_or("root");
            format!("loose:{}", segment.split(['.', ':']).next().unwrap_or(segment))
        }
    }
}

/// What has only the tag `Users` belongs to the collection `/users`, if there is one.
fn adopt_loose(placed: &mut IndexMap<String, Vec<Placed>>) {
    let plain = |name: &str| singular(&split(name).concat().to_lowercase());
    let mut by_name: HashMap<String, String> = HashMap::new();
    for key in placed.keys().filter(|key| key.starts_with('/')) {
        let last = key.rsplit('/').next().unwrap_or_default();
        by_name.entry(plain(last)).or_insert_with(|| key.clone());
    }
    let loose: Vec<String> = placed.keys().filter(|key| key.starts_with("tag:")).cloned().collect();
    for key in loose {
        let Some(target) = by_name.get(&plain(&key["tag:".len()..])) else { continue };
        let members = placed.shift_remove(&key).unwrap_or_default();
        if let Some(group) = placed.get_mut(target) {
            group.extend(members);
        }
    }
}

/// How many leading segments all paths share (`api`, `v1`).
fn shared_prefix(paths: &[Vec<&str>]) -> usize {
    let Some(first) = paths.first() else { return 0 };
    let longest = paths.iter().map(|path| path.len().saturating_sub(1)).min().unwrap_or(0);
    (0..longest)
        .take_while(|at| !is_parameter(first[*at]) && paths.iter().all(|path| path[*at] == first[*at]))
        .count()
}

/// A title for each group: the last word of its path, with those before it where two would be alike.
fn titles(
    placed: &IndexMap<String, Vec<Placed>>,
    paths: &[Vec<&str>],
    prefix: usize,
    endpoints: &[Endpoint],
) -> Vec<(String, String)> {
    let words: Vec<Vec<String>> =
        placed.iter().map(|(key, all)| title_words(key, all, paths, prefix, endpoints)).collect();
    let mut titles: Vec<(String, String)> = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let short = |words: &[String], take: usize| -> (String, String) {
        let from = words.len().saturating_sub(take);
        let mut parts: Vec<String> = words[from..].iter().map(|word| humanize(word)).collect();
        let last = parts.pop().unwrap_or_default();
        let mut before: Vec<String> = parts.iter().map(|part| singular(part)).collect();
        before.push(if before.is_empty() { last.clone() } else { lower_first(&last) });
        let mut one = before.clone();
        if let Some(last) = one.last_mut() {
            *last = singular(last);
        }
        (line(&lowered(&before), 80), line(&lowered(&one), 80))
    };
    for words in &words {
        *counts.entry(short(words, 1).0.to_lowercase()).or_default() += 1;
    }
    let mut taken: HashSet<String> = HashSet::new();
    for words in &words {
        let alone = counts.get(&short(words, 1).0.to_lowercase()) == Some(&1);
        let mut take = if alone { 1 } else { 2 };
        let mut title = short(words, take);
        while taken.contains(&title.0.to_lowercase()) && take < words.len() {
            take += 1;
            title = short(words, take);
        }
        let mut number = 2;
        let base = title.clone();
        while !taken.insert(title.0.to_lowercase()) {
            title = (format!("{} {number}", base.0), format!("{} {number}", base.1));
            number += 1;
        }
        titles.push(title);
    }
    titles
}

fn lowered(parts: &[String]) -> String {
    let rest = parts.iter().skip(1).map(|part| lower_first(part));
    parts.first().cloned().into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}

pub(super) fn lower_first(text: &str) -> String {
    // An abbreviation keeps its capitals.
    if text.chars().nth(1).is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    let mut characters = text.chars();
    characters.next().into_iter().flat_map(char::to_lowercase).chain(characters).collect()
}

fn title_words(
    key: &str,
    all: &[Placed],
    paths: &[Vec<&str>],
    prefix: usize,
    endpoints: &[Endpoint],
) -> Vec<String> {
    let (key, part) = key.split_once('#').unwrap_or((key, ""));
    let part = || Some(part.to_owned()).filter(|part| !part.is_empty());
    if let Some(name) = key.strip_prefix("tag:").or_else(|| key.strip_prefix("loose:")) {
        return std::iter::once(name.to_owned()).chain(part()).collect();
    }
    if let Some(thing) = key.strip_prefix("rpc:") {
        return std::iter::once(plural(thing)).chain(part()).collect();
    }
    let path = all.first().map(|first| paths[first.index].as_slice()).unwrap_or_default();
    // The key has no versions, so the path of its first operation may be longer.
    let mut depth = segments(key).len();
    depth += path.iter().take(depth + 2).filter(|segment| is_version(segment)).count();
    let statics: Vec<String> = path
        .iter()
        .take(depth)
        .skip(prefix.min(depth.saturating_sub(1)))
        .filter(|segment| !is_parameter(segment) && !is_version(segment) && !split(segment).is_empty())
        .map(|segment| (*segment).to_owned())
        .chain(part())
        .collect();
    if statics.is_empty() {
        let tag = all.first().and_then(|first| endpoints[first.index].tag.clone());
        return vec![tag.unwrap_or_else(|| "API".to_owned())];
    }
    statics
}

fn group<'s>(roles: &Roles<'_, 's>, (title, singular): (String, String)) -> Group<'s> {
    let mut group = Group {
        title,
        singular,
        members: roles.all.iter().map(|placed| placed.index).collect(),
        ..Group::default()
    };
    group.tag = most_common_tag(roles.endpoints, &group.members);
    group.list = roles.list();
    group.detail = roles.detail();
    group.create = roles.create();
    let listed = group.list.and_then(|index| roles.listed(index));
    group.edit = roles.edit(listed);
    group.body_key = roles.body_key(group.edit, listed);
    group.delete = roles.delete();
    group.item = group
        .detail
        .and_then(|index| success(&roles.endpoints[index]))
        .and_then(|response| response.schema.as_ref());
    group
}

/// `/pet` with items of the type `Pet` is called Pets, unless something else is.
fn pluralize<'s>(groups: &mut [Group<'s>], models: &Models<'s>, endpoints: &'s [Endpoint]) {
    let mut taken: HashSet<String> = groups.iter().map(|group| group.title.to_lowercase()).collect();
    for group in groups {
        let listed = group.list.and_then(|index| success(&endpoints[index])?.schema.as_ref());
        let item =
            listed.and_then(|answer| lists::find(models, answer, lists::Eager::Yes)).map(|found| found.item);
        let Some(name) = item.or(group.item).and_then(|item| models.name(item)) else { continue };
        let many = plural(&group.title);
        if split(name).concat().to_lowercase() == split(&group.title).concat().to_lowercase()
            && taken.insert(many.to_lowercase())
        {
            group.title = many;
        }
    }
}

fn most_common_tag(endpoints: &[Endpoint], members: &[usize]) -> String {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for tag in members.iter().filter_map(|index| endpoints[*index].tag.as_deref()) {
        *counts.entry(tag).or_default() += 1;
    }
    // The first of the most frequent, so that order decides ties.
    let mut best = ("", 0);
    for (tag, count) in counts {
        if count > best.1 {
            best = (tag, count);
        }
    }
    line(best.0, 80)
}
