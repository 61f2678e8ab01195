//! The parts of an element, however it was written. Plain data; `element` reads it.

use oxc::ast::ast::{Expression, IdentifierReference};
use oxc::span::Span;

pub(super) struct Element<'a> {
    pub kind: Kind<'a>,
    pub attributes: Vec<Attribute<'a>>,
    pub children: Vec<Child<'a>>,
    pub span: Span,
    /// The place of a spread into the element.
    pub spread: Option<Span>,
}

pub(super) enum Kind<'a> {
    Intrinsic(&'a str),
    Component(&'a IdentifierReference<'a>),
    Member(&'a IdentifierReference<'a>, &'a str),
    /// `<>` after the transform; before it, a fragment is no element.
    Fragment,
    Unknown,
}

pub(super) struct Attribute<'a> {
    pub name: String,
    pub value: Value<'a>,
    pub span: Span,
}

#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    /// There is no such attribute.
    Nothing,
    True,
    Text(&'a str),
    Expression(&'a Expression<'a>),
    /// An element as a value.
    Element,
}

pub(super) enum Child<'a> {
    Text(&'a str),
    Expression(&'a Expression<'a>),
    Other,
}

impl<'a> Element<'a> {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }
}
