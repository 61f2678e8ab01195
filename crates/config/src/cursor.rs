//! Reads typed values from the merged tree. A value of the wrong type is reported by file, line and column, and the
//! default takes its place.

use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use domain::{Level, Notice};
use serde_json::Value;

use crate::environment::Environment;
use crate::layer::{Layer, notice};
use crate::lazy_text::{LazyText, LookupContext, Reference, SecretSource};
use crate::origin::Origin;
use crate::secret::Redactor;
use crate::tree::{LayerIndex, Node, dotted};

#[cfg(test)]
thread_local! {
    /// Every path that this thread has read, for the test that compares readers and schema.
    pub(crate) static READS: RefCell<std::collections::BTreeSet<String>> = RefCell::default();
}

/// The context that all cursors of one resolution share.
pub(crate) struct Scope<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) layers: &'a [Layer],
    pub(crate) redactor: &'a Redactor,
    /// The first workspace folder, or home.
    pub(crate) directory: &'a Path,
    pub(crate) netrc_file: Option<PathBuf>,
    pub(crate) notices: RefCell<Vec<Notice>>,
    pub(crate) refused: RefCell<Vec<RefusedValue>>,
}

/// A value that is set and not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedValue {
    pub(crate) path: Vec<String>,
    pub(crate) origin: Origin,
    /// What it must be, or why it may not be set there.
    pub(crate) reason: String,
}

/// A place in the tree, which may be empty.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    scope: &'a Scope<'a>,
    node: Option<&'a Node>,
    default: Option<&'a Node>,
    path: Vec<&'a str>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(scope: &'a Scope<'a>, node: &'a Node, default: Option<&'a Node>) -> Self {
        Self { scope, node: Some(node), default, path: Vec::new() }
    }

    /// The same place with another node.
    pub(crate) fn with_node(&self, node: &'a Node) -> Self {
        Self { node: Some(node), ..self.clone() }
    }

    pub(crate) fn scope(&self) -> &'a Scope<'a> {
        self.scope
    }

    pub(crate) fn node(&self) -> Option<&'a Node> {
        self.node
    }

    pub(crate) fn name(&self) -> &'a str {
        self.path.last().copied().unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &'a str) -> Cursor<'a> {
        let below = |node: Option<&'a Node>| node.and_then(|node| node.get(key));
        let mut path = self.path.clone();
        path.push(key);
        #[cfg(test)]
        READS.with_borrow_mut(|reads| reads.insert(path.join(".")));
        Self { scope: self.scope, node: below(self.node), default: below(self.default), path }
    }

    /// Every entry of an object.
    pub(crate) fn entries(&self) -> Vec<Cursor<'a>> {
        match self.node.map(|node| node.entries()) {
            None => Vec::new(),
            Some(Some(entries)) => entries.keys().map(|key| self.get(key)).collect(),
            Some(None) => {
                self.report_invalid("must be an object");
                Vec::new()
            }
        }
    }

    /// The value of this place as plain JSON.
    pub(crate) fn value(&self) -> Option<Value> {
        self.node.map(Node::to_value)
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        self.leaf("true or false", |value| value.as_bool()).map(|(value, _)| value)
    }

    pub(crate) fn number(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let what = format!("a whole number from {} to {}", range.start(), range.end());
        self.leaf(&what, |value| value.as_u64().filter(|number| range.contains(number)))
            .map(|(value, _)| value)
    }

    /// An amount of money. A value that cannot be read counts as 0, because it was meant as a limit.
    pub(crate) fn dollars(&self) -> Option<f64> {
        let (value, _) = self.node?.leaf()?;
        let dollars = value.as_f64().filter(|dollars| dollars.is_finite() && *dollars >= 0.0);
        if dollars.is_none() {
            self.report(Level::Error, "must be a number of dollars. Nothing is spent until it is corrected.");
        }
        dollars.or(Some(0.0))
    }

    /// A text whose references are looked up now. An empty text counts as absent.
    pub(crate) fn text(&self) -> Option<String> {
        self.now(&self.lazy_text()?)
    }

    /// The value of a text that is needed at once.
    pub(crate) fn now(&self, text: &LazyText) -> Option<String> {
        match text.get_blocking() {
            Ok(text) => Some(text).filter(|text| !text.is_empty()),
            Err(failure) => {
                self.report(Level::Warning, &format!("is left out. {failure}"));
                None
            }
        }
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.text().map(|path| self.scope.environment.expand_home(&path))
    }

    /// A path that starts from the folder of the file that names it.
    pub(crate) fn file_beside(&self, path: &str) -> PathBuf {
        let path = self.scope.environment.expand_home(path);
        self.layer().map_or(self.scope.directory, |layer| &layer.base).join(path)
    }

    /// A text that is looked up at its first use. A text that is known to be empty counts as absent.
    pub(crate) fn lazy_text(&self) -> Option<LazyText> {
        let (text, layer) = self.written()?;
        let lazy_text = LazyText::new(&self.dotted(), text, true, &self.lookup_context(layer));
        Some(lazy_text).filter(|lazy_text| lazy_text.known() != Some(""))
    }

    /// An address, for which no default may stand in: empty when the value is not a text.
    pub(crate) fn url_text(&self) -> Option<LazyText> {
        let node = self.node?;
        let text = node.leaf().and_then(|(value, layer)| Some((value.as_str()?, layer)));
        Some(match text {
            Some((text, layer)) => LazyText::new(&self.dotted(), text, true, &self.lookup_context(layer)),
            None => LazyText::plain(self.dotted(), ""),
        })
    }

    /// A text for the model, in which white space matters.
    pub(crate) fn prompt(&self) -> Option<LazyText> {
        let (text, layer) = self.written()?;
        let prompt = LazyText::new(&self.dotted(), text, false, &self.lookup_context(layer));
        if prompt.needs_class_path() {
            self.report_invalid("refers to a file of ECA's own program");
            return None;
        }
        Some(prompt).filter(|prompt| prompt.known() != Some(""))
    }

    pub(crate) fn secret(&self) -> Option<SecretSource> {
        self.masked(Some(self.scope.redactor))
    }

    fn masked(&self, redactor: Option<&Redactor>) -> Option<SecretSource> {
        let (text, layer) = self.written()?;
        let secret = SecretSource::new(&self.dotted(), text, &self.lookup_context(layer), redactor);
        Some(secret).filter(|secret| secret.known().is_none_or(|secret| !secret.expose().is_empty()))
    }

    /// Headers or variables: each may be a secret and is shown masked, but only those whose name says so are
    /// looked for in logs, where `production` or `application/json` must stay readable.
    pub(crate) fn secrets(&self) -> Vec<(String, SecretSource)> {
        let named = |entry: Cursor<'a>| {
            let name = entry.name().to_ascii_lowercase();
            let words = ["auth", "token", "key", "secret", "pass", "cookie", "credential"];
            let telling = words.iter().any(|word| name.contains(word));
            Some((entry.name().to_owned(), entry.masked(telling.then_some(self.scope.redactor))?))
        };
        self.entries().into_iter().filter_map(named).collect()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.lazy_texts().iter().filter_map(|text| self.now(text)).collect()
    }

    pub(crate) fn lazy_texts(&self) -> Vec<LazyText> {
        let list = |value: &'a Value| -> Option<Vec<&'a str>> {
            value.as_array()?.iter().map(Value::as_str).collect()
        };
        let Some((texts, layer)) = self.leaf("a list of texts", list) else { return Vec::new() };
        let context = self.lookup_context(layer);
        texts.iter().map(|text| LazyText::new(&self.dotted(), text, false, &context)).collect()
    }

    /// Reports that the value here `must be …`; the default is used.
    pub(crate) fn report_invalid(&self, what: &str) {
        self.report(Level::Warning, &format!("{what}; the default is used instead."));
    }

    pub(crate) fn report(&self, level: Level, what: &str) {
        let notice = match self.layer() {
            Some(layer) => layer.describe_invalid(level, &self.path, what),
            None => notice(level, format!("`{}` {what}", self.dotted())),
        };
        self.scope.notices.borrow_mut().push(notice);
        if self.node.is_some() {
            let path = self.path.iter().map(|part| (*part).to_owned()).collect();
            let refused = RefusedValue { path, origin: self.origin(), reason: what.to_owned() };
            self.scope.refused.borrow_mut().push(refused);
        }
    }

    /// The origin of the value here, or of its first part.
    pub(crate) fn origin(&self) -> Origin {
        self.layer().map_or(Origin::Default, |layer| layer.origin.clone())
    }

    /// The folder of the project whose file has the value here, where a project's file has it.
    pub(crate) fn project_root(&self) -> Option<&'a Path> {
        match &self.layer()?.origin {
            Origin::ProjectFile { root, .. } => Some(root),
            Origin::Default
            | Origin::Variable(_)
            | Origin::InitializationOptions
            | Origin::GlobalFile(_)
            | Origin::ExtraFile(_)
            | Origin::ManagedFile(_)
            | Origin::CommandLine => None,
        }
    }

    /// No part of what is here comes from a project.
    pub(crate) fn is_wholly_the_users(&self) -> bool {
        fn all(node: &Node, is_the_users: &dyn Fn(LayerIndex) -> bool) -> bool {
            match node {
                Node::Leaf { layer, .. } => is_the_users(*layer),
                Node::Branch(branch) => branch.values().all(|node| all(node, is_the_users)),
            }
        }
        let is_the_users = |layer| self.scope.layers.get(layer).is_some_and(crate::sandbox::is_the_users);
        self.node.is_some_and(|node| all(node, &is_the_users))
    }

    /// Whether a text here refers to a value that is the user's own: a variable, a command, an entry of netrc, or a file
    /// that is not one of the project.
    pub(crate) fn refers_outside_project(&self) -> bool {
        let Some((text, layer)) =
            self.node.and_then(Node::leaf).and_then(|(value, layer)| Some((value.as_str()?, layer)))
        else {
            return false;
        };
        let (context, root) = (self.lookup_context(layer), self.project_root());
        crate::lazy_text::references(text, &context).iter().any(|reference| match reference {
            Reference::File(file) => root.is_none_or(|root| !is_inside(file, root)),
            Reference::OfUser => true,
        })
    }

    /// The texts that layers other than a project's have at this place.
    pub(crate) fn texts_of_the_user(&self) -> Vec<String> {
        let layers = self.scope.layers.iter().enumerate();
        let of_user = layers.filter(|(_, layer)| !matches!(layer.origin, Origin::ProjectFile { .. }));
        of_user
            .filter_map(|(index, layer)| Some((index, layer.at(&self.path)?.as_str()?)))
            .filter_map(|(index, text)| {
                LazyText::new(&self.dotted(), text, true, &self.lookup_context(index)).get_blocking().ok()
            })
            .collect()
    }

    pub(crate) fn dotted(&self) -> String {
        dotted(self.path.iter().copied())
    }

    fn layer(&self) -> Option<&'a Layer> {
        let mut node = self.node?;
        loop {
            match node {
                Node::Leaf { layer, .. } => return self.scope.layers.get(*layer),
                Node::Branch(branch) => node = branch.first()?.1,
            }
        }
    }

    fn written(&self) -> Option<(&'a str, LayerIndex)> {
        self.leaf("a text", Value::as_str)
    }

    /// Reads the leaf here; when it is wrong it is reported and the default is read.
    fn leaf<T>(&self, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Option<(T, LayerIndex)> {
        let read_node = |node: &'a Node| node.leaf().and_then(|(value, layer)| Some((read(value)?, layer)));
        let node = self.node?;
        read_node(node).or_else(|| {
            self.report_invalid(&format!("must be {what}"));
            read_node(self.default?)
        })
    }

    fn lookup_context(&self, layer: LayerIndex) -> LookupContext<'_> {
        let layer = self.scope.layers.get(layer);
        // The user's own commands never run in the folder of a repository.
        let directory = match layer.map(|layer| &layer.origin) {
            Some(Origin::ProjectFile { root, .. }) => root,
            _ => self.scope.environment.home(),
        };
        LookupContext {
            environment: self.scope.environment,
            base: layer.map_or(self.scope.directory, |layer| &layer.base),
            directory,
            netrc_file: self.scope.netrc_file.as_deref(),
        }
    }
}

/// Whether a file lies in a folder, by the way that links lead.
fn is_inside(file: &Path, root: &Path) -> bool {
    let real = file.canonicalize().ok().zip(root.canonicalize().ok());
    real.is_some_and(|(file, root)| file.starts_with(root))
}
