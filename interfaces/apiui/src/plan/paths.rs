//! The parts of a path, and the places of endpoints in a group.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Collection,
    CollectionAction,
    Item,
    ItemAction,
    Loose,
}

pub(super) struct Placed {
    pub index: usize,
    pub scope: Scope,
}

/// The parts of a path; a format at its end, as in `{Sid}.json`, is not one of them.
pub(super) fn segments(path: &str) -> Vec<&str> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = [".json", ".xml"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

pub(super) fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{') && segment.ends_with('}')
}

/// `v1`, `v2.1`, `v1beta1`: the same things in another version of the API.
pub(super) fn is_version(segment: &str) -> bool {
    let mut rest = segment.strip_prefix(['v', 'V']).unwrap_or_default().chars();
    rest.next().is_some_and(|first| first.is_ascii_digit())
        && segment.len() <= 10
        && rest.all(|c| c.is_ascii_digit() || c == '.' || "alphabet".contains(c))
}

/// The number of the newest version in a path; one without a version is the oldest.
pub(super) fn version(path: &str) -> u32 {
    let digits =
        |segment: &str| -> String { segment[1..].chars().take_while(char::is_ascii_digit).collect() };
    let found = path.split('/').filter(|segment| is_version(segment));
    found.filter_map(|segment| digits(segment).parse().ok()).max().unwrap_or(0)
}

/// The parts of a path without versions and without the names of parameters.
pub(super) fn normalized(path: &str) -> Vec<String> {
    let parts = segments(path);
    let is_all_version = parts.iter().all(|part| is_version(part));
    let kept = parts.into_iter().filter(|part| is_all_version || !is_version(part));
    kept.map(|part| {
        let mut out = String::new();
        let mut is_inside = false;
        for c in part.chars() {
            is_inside = if c == '{' { true } else { is_inside && c != '}' };
            if !is_inside || c == '{' {
                out.push(c);
            }
        }
        out
    })
    .collect()
}
