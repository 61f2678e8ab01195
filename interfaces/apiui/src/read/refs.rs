//! All files of one specification, and `$ref` between and within them.
//!
//! Owns reference syntax and the loading of further files through the caller's `Load`, once each, before
//! anything is converted. Knows no schema. Invariant: resolving never loads, loops or panics.

use super::{LIMIT_BYTES, Load, text};
use crate::problem::{Problem, ProblemKind, ProblemLocation, excerpt};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// More files than any real specification has.
const MAX_FILES: usize = 2_000;
/// References that lead nowhere and get a suggestion; whoever reads more of them needs none.
const MAX_COMPARISONS: usize = 100;

pub(super) struct Documents<'a> {
    files: Vec<Cow<'a, Value>>,
    locations: Vec<String>,
    index: HashMap<String, usize>,
    /// How many references may still be compared with what is there, to find what was meant.
    comparisons: std::cell::Cell<usize>,
}

/// A place that a reference leads to.
#[derive(Debug, Clone)]
pub(super) struct Spot<'d> {
    pub file: usize,
    pub pointer: String,
    pub value: &'d Value,
}

/// Why a reference leads nowhere, as a sentence, and what to do.
#[derive(Debug, Clone)]
pub(super) struct Dangling {
    pub message: String,
    pub advice: String,
}

impl<'a> Documents<'a> {
    /// Loads every file that is reachable by references. Files that cannot be had are warnings.
    pub(super) fn load(
        root: Cow<'a, Value>,
        location: Option<&str>,
        mut load: Option<&mut Load>,
    ) -> (Self, Vec<Problem>) {
        let location = location.unwrap_or_default().to_owned();
        let mut this = Self {
            files: vec![root],
            locations: vec![location],
            index: HashMap::new(),
            comparisons: std::cell::Cell::new(MAX_COMPARISONS),
        };
        this.index.insert(this.locations[0].clone(), 0);
        let (mut problems, mut bytes, mut next) = (Vec::new(), 0, 0);
        while next < this.files.len() {
            let mut wanted = Vec::new();
            external_references(&this.files[next], &mut wanted);
            for reference in wanted {
                let target = join(&this.locations[next], file_part(&reference));
                if this.index.contains_key(&target) || this.files.len() >= MAX_FILES || bytes > LIMIT_BYTES {
                    continue;
                }
                let Some(load) = load.as_deref_mut() else { continue };
                let read = match is_rooted(&this.locations[next], &reference) {
                    true => Err(rooted()),
                    false => fetch(load, &target),
                };
                match read {
                    Ok((value, size)) => {
                        bytes += size;
                        this.index.insert(target.clone(), this.files.len());
                        this.files.push(Cow::Owned(value));
                        this.locations.push(target);
                    }
                    Err(mut problem) => {
                        problem.message =
                            format!("`{}` cannot be read: {}", excerpt(&target), problem.message);
                        problems.push(problem);
                    }
                }
            }
            next += 1;
        }
        (this, problems)
    }

    pub(super) fn root(&self) -> &Value {
        &self.files[0]
    }

    /// The name of a file for messages; the first one needs none.
    pub(super) fn file_name(&self, file: usize) -> Option<String> {
        if file == 0 { None } else { self.locations.get(file).cloned() }
    }

    /// Where a reference found in `from` leads.
    pub(super) fn resolve(&self, from: usize, reference: &str) -> Result<Spot<'_>, Dangling> {
        let (file, fragment) = self.target(from, reference)?;
        let root: &Value = &self.files[file];
        let decoded = percent_decode(fragment);
        for pointer in [decoded.as_str(), fragment] {
            if let Some(value) = root.pointer(pointer) {
                return Ok(Spot { file, pointer: pointer.to_owned(), value });
            }
        }
        Err(self.nowhere(root, reference, &decoded))
    }

    fn target<'r>(&self, from: usize, reference: &'r str) -> Result<(usize, &'r str), Dangling> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if path.is_empty() {
            return Ok((from, fragment));
        }
        let location = join(&self.locations[from], path);
        match self.index.get(&location) {
            Some(file) => Ok((*file, fragment)),
            None => Err(Dangling {
                message: format!("The reference `{}` leads to another file that was not given.", excerpt(reference)),
                advice: "Give the specification by its file so that neighbors can be read, or bundle it into one document."
                    .to_owned(),
            }),
        }
    }

    fn nowhere(&self, root: &Value, reference: &str, pointer: &str) -> Dangling {
        let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let siblings = root.pointer(parent).and_then(Value::as_object);
        let left = self.comparisons.get();
        self.comparisons.set(left.saturating_sub(1));
        let nearest =
            siblings.filter(|_| left > 0).and_then(|map| nearest(name, map.keys().map(String::as_str)));
        let advice = match (nearest, siblings) {
            (Some(name), _) => {
                format!("Did you mean `{}`? Otherwise define it, or remove the reference.", excerpt(name))
            }
            (None, Some(_)) => format!("Define it under `{}`, or remove the reference.", excerpt(parent)),
            (None, None) => format!(
                "There is no `{}` in the document: define it, or remove the reference.",
                excerpt(parent)
            ),
        };
        Dangling { message: format!("The reference `{}` leads nowhere.", excerpt(reference)), advice }
    }
}

impl Dangling {
    pub(super) fn problem(self, place: ProblemLocation) -> Problem {
        Problem::warning(ProblemKind::DanglingReference, place, self.message, self.advice)
    }
}

/// One segment of a JSON pointer, escaped.
pub(super) fn escape_segment(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// The last segment of a pointer or reference, unescaped: the name of what it points to.
pub(super) fn last_segment(pointer: &str) -> String {
    let segment = pointer.rsplit(['/', '#']).next().unwrap_or(pointer);
    percent_decode(segment).replace("~1", "/").replace("~0", "~")
}

/// The closest of some names, if one is close enough to be a slip.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = name.to_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 3);
    names
        .take(5_000)
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase(), allowed), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance, swapped neighbors counting once; given up on (as `limit + 1`) where it must exceed the limit.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = substituted.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

fn fetch(load: &mut Load, location: &str) -> Result<(Value, usize), Problem> {
    let bytes = load(location).map_err(|reason| {
        Problem::warning(
            ProblemKind::DanglingReference,
            ProblemLocation::Document,
            reason,
            "Put the file where the reference looks for it, or bundle the specification into one document.",
        )
    })?;
    super::reading::within_limit(bytes.len())?;
    let text = text::decode(&bytes)?;
    let json = text.trim_start().starts_with(['{', '[']);
    let value = if json { text::json(&text)? } else { text::yaml(&text)? };
    Ok((value, bytes.len()))
}

/// Every `$ref` that names a file. Values are at most 128 deep, see `text`.
fn external_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner {
                    Value::String(reference) if key == "$ref" => {
                        if !reference.starts_with('#') && !reference.is_empty() {
                            found.push(reference.clone());
                        }
                    }
                    inner => external_references(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| external_references(item, found)),
        _ => {}
    }
}

fn file_part(reference: &str) -> &str {
    reference.split_once('#').map_or(reference, |(file, _)| file)
}

/// A reference from the root of this machine's files: no neighbor of the specification.
fn is_rooted(base: &str, reference: &str) -> bool {
    !base.contains("://") && percent_decode(reference).starts_with('/')
}

fn rooted() -> Problem {
    Problem::warning(
        ProblemKind::DanglingReference,
        ProblemLocation::Document,
        "only files beside the specification are read, and this reference starts at the root.",
        "Write it relative to the file that holds it, or bundle the specification into one document.",
    )
}

/// A relative location against the location of the file that names it.
fn join(base: &str, relative: &str) -> String {
    let relative = percent_decode(relative);
    if relative.is_empty() {
        return base.to_owned();
    }
    if relative.contains("://") {
        return relative;
    }
    let (origin, base_path) = match base.find("://") {
        Some(at) => match base[at + 3..].find('/') {
            Some(slash) => base.split_at(at + 3 + slash),
            None => (base, ""),
        },
        None => ("", base),
    };
    if relative.starts_with('/') {
        // On the server that the base is from, never on this machine.
        return format!("{origin}{relative}");
    }
    let directory = base_path.rsplit_once('/').map(|(directory, _)| directory);
    let mut parts: Vec<&str> = Vec::new();
    let absolute = base_path.starts_with('/') || !origin.is_empty();
    for part in directory.into_iter().flat_map(|directory| directory.split('/')).chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let slash = if absolute { "/" } else { "" };
    format!("{origin}{slash}{}", parts.join("/"))
}

fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_join_like_addresses() {
        let check = |base: &str, relative: &str, expected: &str| assert_eq!(join(base, relative), expected);
        check("spec/swagger.json", "parameters.json", "spec/parameters.json");
        check("spec/swagger.json", "../common/Error.json", "common/Error.json");
        check("swagger.json", "../Error.json", "../Error.json");
        check("/a/b/c.yaml", "../../../d.yaml", "/d.yaml");
        check("https://x.test/a/b.yaml", "c.yaml", "https://x.test/a/c.yaml");
        check("https://x.test", "c.yaml", "https://x.test/c.yaml");
        check("https://x.test/a/b.yaml", "/etc/passwd", "https://x.test/etc/passwd");
        check("https://x.test/a/b.yaml", "../../../etc/passwd", "https://x.test/etc/passwd");
        check("a.yaml", "https://x.test/c.yaml", "https://x.test/c.yaml");
    }

    #[test]
    fn a_slip_is_recognized_and_a_stranger_is_not() {
        assert_eq!(nearest("Pett", ["Pets", "Order", "Pet"].into_iter()), Some("Pets"));
        assert_eq!(nearest("Pgae", ["Page", "Size"].into_iter()), Some("Page"));
        assert_eq!(nearest("Invoice", ["Pets", "Order"].into_iter()), None);
    }
}
