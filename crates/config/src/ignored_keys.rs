//! The keys of a layer that have no effect: unknown ones, each with its place and the nearest known key, and those of
//! ECA that are not supported, in one notice.

use std::fmt::Write;

use domain::{Level, Notice};

use crate::layer::{Layer, notice};
use crate::origin::Origin;
use crate::schema::{self, KeyFinding};
use crate::tree::dotted;

/// A key that is set and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredKey {
    /// The dotted path.
    pub key: String,
    pub origin: Origin,
    /// Whether the key is unknown; otherwise it is known and not supported.
    pub unknown: bool,
}

/// More notices of one file tell nothing new.
const MAX_NOTICES: usize = 20;
const MAX_NAMES: usize = 40;

pub(crate) fn find(layer: &Layer) -> (Vec<IgnoredKey>, Vec<Notice>) {
    let (mut keys, mut notices, mut unsupported) = (Vec::new(), Vec::new(), Vec::new());
    let mut unknown = 0;
    for finding in schema::find_in_object(&layer.values) {
        let (path, is_unknown) = match finding {
            KeyFinding::Unknown { path } if is_reported_elsewhere(layer, &path) => continue,
            KeyFinding::Unknown { path } => (path, true),
            KeyFinding::Unsupported { path } => (path, false),
        };
        let key = dotted(path.iter().map(String::as_str));
        if is_unknown {
            unknown += 1;
            if unknown <= MAX_NOTICES {
                notices.push(unknown_key(layer, &path));
            }
        } else {
            unsupported.push(key.clone());
        }
        keys.push(IgnoredKey { key, origin: layer.origin.clone(), unknown: is_unknown });
    }
    if unknown > MAX_NOTICES {
        let more = unknown - MAX_NOTICES;
        notices.push(notice(
            Level::Warning,
            format!("{}: {more} more unknown settings are ignored.", layer.origin),
        ));
    }
    notices.extend((!unsupported.is_empty()).then(|| unsupported_keys(layer, &unsupported)));
    (keys, notices)
}

/// Clients send options of their own beside settings, and the reader of approval rules fails closed at unknown keys.
fn is_reported_elsewhere(layer: &Layer, path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        [_] => layer.origin == Origin::InitializationOptions,
        ["toolCall", "approval", ..] | ["agent", _, "toolCall", "approval", ..] => true,
        _ => false,
    }
}

fn unknown_key(layer: &Layer, path: &[String]) -> Notice {
    let mut what = String::from("is not a known setting and is ignored.");
    if let Some(suggestion) = schema::suggest(path) {
        let _ = write!(what, " Did you mean `{suggestion}`?");
    }
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    layer.describe_invalid(Level::Warning, &path, &what)
}

fn unsupported_keys(layer: &Layer, keys: &[String]) -> Notice {
    let mut names = keys.iter().take(MAX_NAMES).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    if keys.len() > MAX_NAMES {
        let _ = write!(names, " and {} more", keys.len() - MAX_NAMES);
    }
    notice(Level::Info, format!("{}: not supported, ignored: {names}.", layer.origin))
}
