//! One layer of settings: an object, its origin, and how much of it may take effect.

use std::path::PathBuf;

use domain::{Level, Notice, visible_line};
use serde_json::{Map, Value};

use crate::jsonc::{self, SourceError};
use crate::origin::Origin;
use crate::tree::dotted;

/// In characters.
const MAX_NOTICE_LENGTH: usize = 2000;

pub(crate) type Object = Map<String, Value>;

/// How much of a layer takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authority {
    Full,
    /// A project's file in a folder that is not trusted: only what is harmless or stricter.
    Untrusted,
    /// The user's global file while `pureConfig` is on: only its deny rules.
    DenyOnly,
}

#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) origin: Origin,
    pub(crate) values: Object,
    pub(crate) authority: Authority,
    /// What relative paths in `${file:…}` start from.
    pub(crate) base: PathBuf,
    /// The source, for the line and column of a wrong value.
    pub(crate) text: Option<String>,
    /// Its allow rules are beside those of lower layers instead of replacing them.
    pub(crate) adds_rules: bool,
    /// Names in their present spelling and as they are written.
    pub(crate) written_names: Vec<(String, String)>,
}

impl Layer {
    pub(crate) fn new(origin: Origin, values: Object, base: PathBuf) -> Self {
        Self {
            origin,
            values,
            authority: Authority::Full,
            base,
            text: None,
            adds_rules: false,
            written_names: Vec::new(),
        }
    }

    /// Reads a text of settings; an error is a notice that names the origin.
    pub(crate) fn parse(origin: Origin, text: String, base: PathBuf) -> Result<Self, Notice> {
        let values = jsonc::parse(&text).map_err(|broken| unusable(&origin, &broken))?;
        Ok(Self { text: Some(text), ..Self::new(origin, values, base) })
    }

    /// Reads a file, `None` when it is not there.
    pub(crate) fn read(origin: Origin) -> Result<Option<Self>, Notice> {
        let Some(path) = origin.file().map(ToOwned::to_owned) else { return Ok(None) };
        let base = path.parent().map(ToOwned::to_owned).unwrap_or_default();
        let read = match &origin {
            Origin::ProjectFile { root, .. } => jsonc::read_beneath(root, &path),
            Origin::Default
            | Origin::Variable(_)
            | Origin::InitializationOptions
            | Origin::GlobalFile(_)
            | Origin::ExtraFile(_)
            | Origin::ManagedFile(_)
            | Origin::CommandLine => jsonc::read(&path),
        };
        match read {
            Ok(None) => Ok(None),
            Ok(Some(text)) => Self::parse(origin, text, base).map(Some),
            Err(broken) => Err(unusable(&origin, &broken)),
        }
    }

    pub(crate) fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.values.get(*first)?, |value, key| value.get(*key))
    }

    /// The place of a key for people: file, line and column as far as they are known.
    pub(crate) fn place(&self, path: &[&str]) -> String {
        let written = |part: &&str| {
            let known = self.written_names.iter().find(|(now, _)| now == part);
            known.map_or_else(|| (*part).to_owned(), |(_, written)| written.clone())
        };
        let written: Vec<String> = path.iter().map(written).collect();
        let at = |path: Vec<&str>| self.text.as_deref().and_then(|text| jsonc::locate(text, path));
        let found = at(path.to_vec()).or_else(|| at(written.iter().map(String::as_str).collect()));
        match found {
            Some((line, column)) => format!("{}, line {line}, column {column}", self.origin),
            None => self.origin.to_string(),
        }
    }

    /// A wrong value, named by place and key.
    pub(crate) fn describe_invalid(&self, level: Level, path: &[&str], what: &str) -> Notice {
        notice(level, format!("{}: `{}` {what}", self.place(path), dotted(path.iter().copied())))
    }
}

/// A notice. Names in it may come from a repository, so every character is visible and the length is limited.
pub(crate) fn notice(level: Level, text: impl AsRef<str>) -> Notice {
    let text: String = text.as_ref().chars().take(MAX_NOTICE_LENGTH).collect();
    Notice { level, text: visible_line(&text).into_owned() }
}

fn unusable(origin: &Origin, broken: &SourceError) -> Notice {
    notice(
        Level::Error,
        format!(
            "The settings in {origin} cannot be used: {}. None of them applies, and every tool call asks, \
             until they are corrected.",
            broken.0
        ),
    )
}
