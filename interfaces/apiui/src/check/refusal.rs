//! What the checker says when it refuses. Owns the classes of reasons, the places and the bound on how many are
//! told; knows no syntax tree.
//!
//! Invariant: a refusal names its place, what was found there and what to write instead.

use std::fmt;

use oxc::span::Span;

/// One thing in a module that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Refusal {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    pub rule: Rule,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}. {}", self.line, self.column, self.what, self.advice)
    }
}

/// The classes of reasons, one for each kind of list or rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It does not parse, or it is too large or too deep to be looked at.
    Syntax,
    /// An import of something else than the listed parts of React.
    Import,
    /// Not exactly one default export of a component.
    Export,
    /// A statement on the top level that does something.
    TopLevel,
    /// A construct of the language that is not on the list.
    Construct,
    /// A comment that tools act upon.
    Comment,
    /// A name is bound or written that must keep its meaning.
    Reserved,
    /// A vetted definition was changed, or stands where it must not.
    Approved,
    /// The list of addresses is not a list of addresses, or is changed.
    Servers,
    /// A global that is not on the list, or used in a way that is not.
    Global,
    /// A React function used in a way that is not on the list.
    React,
    /// A property name that is not on the list.
    Member,
    /// A property key that is not literal.
    ComputedKey,
    /// A key of an object literal that changes what the object is.
    ObjectKey,
    /// A spread that could carry anything.
    Spread,
    /// A write to an object that the code did not make.
    Assignment,
    /// An argument that would turn text into code or data into more than data.
    Argument,
    /// An element that is not on the list.
    Element,
    /// An element type that is not literal.
    ElementType,
    /// An attribute that is not on the list.
    Attribute,
    /// An address that did not come through the vetted function.
    Url,
    /// A handler that is not a function of the module, or an event handed on.
    Event,
    /// A reference to an element used for more than focus.
    Ref,
    /// An id that could take the place of something of the page.
    Id,
    /// A style that is not on the list.
    Style,
    /// Text of a style element that is not on the list.
    StyleText,
    /// A form that could be sent by the browser.
    Form,
}

/// How many refusals one check tells; the rest would not be read.
const MOST: usize = 50;

/// Collects refusals by place in the text.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    found: Vec<(Span, Rule, String, String)>,
}

impl Refusals {
    pub(super) fn add(&mut self, span: Span, rule: Rule, what: impl Into<String>, advice: impl Into<String>) {
        // Keeps far more than the report shows, so that the first ones by position are among them; still bounded.
        if self.found.len() < MOST * 100 {
            self.found.push((span, rule, what.into(), advice.into()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn into_refusals(mut self, source: &str) -> Vec<Refusal> {
        self.found.sort_by_key(|(span, rule, ..)| (span.start, *rule));
        self.found.dedup_by(|one, other| one.0.start == other.0.start && one.1 == other.1);
        self.found.truncate(MOST);
        let mut place = TextPosition { offset: 0, line: 1, column: 1 };
        let told = self.found.into_iter().map(|(span, rule, what, advice)| {
            place.advance(source, span.start as usize);
            Refusal { line: place.line, column: place.column, rule, what, advice }
        });
        told.collect()
    }
}

/// Walks forward through the text once, however many places are asked for.
struct TextPosition {
    offset: usize,
    line: usize,
    column: usize,
}

impl TextPosition {
    fn advance(&mut self, source: &str, to: usize) {
        for character in source.get(self.offset..to).unwrap_or_default().chars() {
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.offset = self.offset.max(to);
    }
}
