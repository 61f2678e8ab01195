//! Elements and their attributes: which may be made, and what each attribute may hold.

use std::collections::HashSet;

use oxc::ast::ast::{Argument, Expression, IdentifierReference};
use oxc::syntax::operator::BinaryOperator;

use super::Rules;
use crate::check::element::{Attribute, Element, Kind, Value};
use crate::check::lists::{
    ATTRIBUTES, DATA_ATTRIBUTES, ELEMENTS, EVENTS, ID_ATTRIBUTES, PAINT_ATTRIBUTES, REACT_COMPONENTS,
};
use crate::check::names::{self, Name};
use crate::check::refusal::Rule;
use crate::check::tree::{Declared, literal_text};

impl<'a> Rules<'_, 'a> {
    pub(super) fn element(&mut self, element: &Element<'a>) {
        if let Some(span) = element.spread {
            let advice = "Name each attribute: `<Row name={item.name} />`.";
            self.refuse(span, Rule::Spread, "A spread into an element", advice);
        }
        let mut names = HashSet::new();
        for attribute in &element.attributes {
            if !names.insert(attribute.name.as_str()) {
                let what = format!("The attribute `{}` is given twice", attribute.name);
                self.refuse(attribute.span, Rule::Attribute, what, "Give it once.");
            }
        }
        match element.kind {
            Kind::Intrinsic(name) => self.intrinsic(name, element),
            Kind::Component(identifier) => {
                if !self.tree.symbol(identifier).is_some_and(|symbol| self.is_component(symbol)) {
                    let what = format!("`<{}>` is not a component of this module", identifier.name);
                    self.refuse(element.span, Rule::ElementType, what, TYPE_ADVICE);
                }
                self.component_attributes(element);
            }
            Kind::Member(object, property) => {
                if !self.is_component_member(object, property) {
                    let what = format!("`<{}.{property}>` is not a component of this module", object.name);
                    self.refuse(element.span, Rule::ElementType, what, TYPE_ADVICE);
                }
                self.component_attributes(element);
            }
            Kind::Fragment => {}
            Kind::Unknown => self.refuse(
                element.span,
                Rule::ElementType,
                "An element whose type is not a plain name",
                TYPE_ADVICE,
            ),
        }
    }

    fn is_component_member(&self, object: &'a IdentifierReference<'a>, property: &str) -> bool {
        if self.tree.is_react(object) {
            return REACT_COMPONENTS.contains(property);
        }
        let declared = self.tree.symbol(object).map(|symbol| self.tree.declared(symbol));
        let is_context = matches!(declared, Some(Declared::Value(value)) if self.tree.react_call(value, "createContext").is_some());
        is_context && property == "Provider"
    }

    /// A component of the module takes what it likes, except what React itself acts upon.
    fn component_attributes(&mut self, element: &Element<'a>) {
        for attribute in &element.attributes {
            let name = attribute.name.as_str();
            if name == "data-operation" {
                self.operation(attribute);
            }
            if matches!(name, "ref" | "dangerouslySetInnerHTML" | "__proto__" | "__self" | "__source")
                || name.contains(':')
            {
                let advice = "Choose another name for the property.";
                self.refuse(
                    attribute.span,
                    Rule::Attribute,
                    format!("The property `{name}` of a component"),
                    advice,
                );
            }
        }
    }

    fn intrinsic(&mut self, name: &str, element: &Element<'a>) {
        if !ELEMENTS.contains(name) {
            let advice = match name {
                "img" | "picture" | "video" | "audio" | "iframe" => {
                    "Show the address as a link: `<a href={safeUrl(text)}>`."
                }
                _ => "Use the elements of text, lists, tables, forms and plain drawings.",
            };
            self.refuse(
                element.span,
                Rule::Element,
                format!("`<{name}>` is not on the list of elements"),
                advice,
            );
            return;
        }
        if name == "form" {
            self.form(element);
        }
        if name == "style" {
            self.style_element(element);
            return;
        }
        if name == "a" && element.attribute("href").is_some() {
            self.link(element);
        }
        for attribute in &element.attributes {
            self.attribute(name, attribute);
        }
    }

    fn attribute(&mut self, element: &str, attribute: &Attribute<'a>) {
        let name = attribute.name.as_str();
        match name {
            "style" => self.style(attribute),
            "ref" => self.ref_attribute(attribute),
            "href" if element == "a" => self.href(attribute),
            "target" | "rel" if element == "a" => {}
            "name" if element == "form" => self.unlisted(element, attribute),
            "data-operation" => self.operation(attribute),
            _ if EVENTS.contains(name) => self.handler(element, attribute),
            _ if ID_ATTRIBUTES.contains(name) => self.id(attribute),
            _ if PAINT_ATTRIBUTES.contains(name) => self.paint(attribute),
            _ if ATTRIBUTES.contains(name) || DATA_ATTRIBUTES.contains(name) => {}
            _ if is_lower(name.strip_prefix("aria-")) || is_lower(name.strip_prefix("data-ui-")) => {}
            _ => self.unlisted(element, attribute),
        }
    }

    fn unlisted(&mut self, element: &str, attribute: &Attribute<'a>) {
        let name = &attribute.name;
        let advice = match name.as_str() {
            "class" | "for" => "Write `className` or `htmlFor`.",
            _ if name.starts_with("data-") => "Name it `data-ui-…`.",
            "src" | "srcSet" | "action" | "formAction" | "poster" | "href" | "xlinkHref" => {
                "An address may be only in `<a href={safeUrl(text)}>`."
            }
            _ => "Leave it out.",
        };
        self.refuse(
            attribute.span,
            Rule::Attribute,
            format!("The attribute `{name}` of `<{element}>` is not on the list"),
            advice,
        );
    }

    /// What the interface says it calls, for who wants to know.
    fn operation(&mut self, attribute: &Attribute<'a>) {
        let text = match attribute.value {
            Value::Text(text) => Some(text),
            Value::Expression(expression) => literal_text(expression),
            Value::Nothing | Value::True | Value::Element => None,
        };
        self.facts.operations.extend(text.map(str::to_owned));
    }

    /// `href={safeUrl(text)}`, perhaps as a choice or by a constant, or a literal place on the page.
    fn href(&mut self, attribute: &Attribute<'a>) {
        let possible = self.tree.possible(attribute.value);
        if !possible.is_some_and(|values| values.iter().all(|value| self.is_safe_address(*value))) {
            let advice = "Write `href={safeUrl(text)}`.";
            self.refuse(attribute.span, Rule::Url, "An address that did not come through `safeUrl`", advice);
        }
    }

    fn is_safe_address(&self, value: Value<'a>) -> bool {
        let expression = match value {
            Value::Nothing => return true,
            Value::Text(text) => return is_place(text),
            Value::Expression(expression) => expression,
            Value::True | Value::Element => return false,
        };
        match expression {
            Expression::CallExpression(call) => {
                let Expression::Identifier(callee) = &call.callee else { return false };
                let declared = self.tree.symbol(callee).map(|symbol| self.tree.declared(symbol));
                let is_vetted = matches!(declared, Some(Declared::Function(function)) if self.approved.contains(&function.node_id.get()));
                is_vetted && callee.name == "safeUrl" && !call.arguments.iter().any(Argument::is_spread)
            }
            other => self.is_nothing(other) || literal_text(other).is_some_and(is_place),
        }
    }

    /// An id becomes a name on the page's `window` and `document`, and a label acts on the element it names: data must
    /// not be able to choose one, and a module must name its own elements only.
    fn id(&mut self, attribute: &Attribute<'a>) {
        let possible = self.tree.possible(attribute.value);
        let starts: Option<Vec<&str>> =
            possible.and_then(|values| values.iter().map(|value| self.id_start(*value)).collect());
        let name = &attribute.name;
        let Some(starts) = starts else {
            let advice = format!(
                "Begin it with a text of your own that holds a `-`: `{name}={{`field-${{name}}`}}`; or use `useId()`."
            );
            return self.refuse(
                attribute.span,
                Rule::Id,
                format!("`{name}` is an id that data could choose"),
                advice,
            );
        };
        let starts = starts.into_iter().filter(|start| !start.is_empty());
        if name == "id" {
            self.ids.extend(starts);
        } else {
            self.named.extend(starts.map(|start| (attribute.span, start)));
        }
    }

    /// Every id that the module names is one that it gives, or begins as one does.
    pub(super) fn named_ids(&mut self) {
        for (span, start) in std::mem::take(&mut self.named) {
            if !self.ids.contains(start) {
                let advice = "Give the element that is meant the same id, written in the same way.";
                self.refuse(
                    span,
                    Rule::Id,
                    format!("`{start}` is the id of no element of this module"),
                    advice,
                );
            }
        }
    }

    /// The literal id, or the literal text that it begins with; empty if it is made by `useId` or is nothing.
    fn id_start(&self, value: Value<'a>) -> Option<&'a str> {
        let expression = match value {
            Value::Nothing => return Some(""),
            Value::Text(text) => return is_id(text).then_some(text),
            Value::Expression(expression) => expression,
            Value::True | Value::Element => return None,
        };
        if let Some(text) = literal_text(expression) {
            return is_id(text).then_some(text);
        }
        match expression {
            Expression::TemplateLiteral(template) => {
                let start = template.quasis.first().map_or("", |first| first.value.raw.as_str());
                let is_made = || {
                    start.is_empty()
                        && template.expressions.first().is_some_and(|first| self.is_made_id(first))
                };
                (is_prefix(start) || is_made()).then_some(start)
            }
            Expression::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
                match literal_text(&sum.left) {
                    Some(start) => is_prefix(start).then_some(start),
                    None => self.is_made_id(&sum.left).then_some(""),
                }
            }
            other => (self.is_nothing(other) || self.is_made_id(other)).then_some(""),
        }
    }

    fn is_made_id(&self, value: &'a Expression<'a>) -> bool {
        let is_made = |value: &Value<'a>| matches!(value, Value::Expression(value) if self.tree.react_call(value, "useId").is_some());
        self.tree
            .possible(Value::Expression(value))
            .is_some_and(|values| !values.is_empty() && values.iter().all(is_made))
    }

    /// A link that leaves the page opens elsewhere, so that the host's page stays and cannot be reached back.
    fn link(&mut self, element: &Element<'a>) {
        let text = |name: &str| match element.attribute(name)?.value {
            Value::Text(text) => Some(text),
            Value::Expression(expression) => literal_text(expression),
            Value::Nothing | Value::True | Value::Element => None,
        };
        let stays = element.attribute("target").is_none() && text("href").is_some_and(is_place);
        let is_closed = text("rel")
            .is_some_and(|rel| rel.split(' ').any(|word| word == "noopener" || word == "noreferrer"));
        if !stays && (text("target") != Some("_blank") || !is_closed) {
            let advice = "Write `target=\"_blank\" rel=\"noopener noreferrer\"`.";
            self.refuse(
                element.span,
                Rule::Attribute,
                "A link that does not open in a window of its own",
                advice,
            );
        }
    }
}

const TYPE_ADVICE: &str =
    "Name a function of this module directly, or choose between elements: `ready ? <List /> : <Empty />`.";

/// `#name`: a place on the same page.
fn is_place(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|name| !name.is_empty() && name.chars().all(is_word))
}

/// Names of the page's own machinery cannot be spelled with a `-`, and common words are no such names.
fn is_id(text: &str) -> bool {
    let is_name = !text.is_empty()
        && text.chars().all(|character| is_word(character) || matches!(character, ' ' | ':' | '.'));
    is_name && (text.contains('-') || !matches!(names::member(text), Name::Refused | Name::Platform))
}

fn is_prefix(text: &str) -> bool {
    text.contains('-') && text.starts_with(|first: char| first.is_ascii_alphabetic())
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

fn is_lower(rest: Option<&str>) -> bool {
    rest.is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|character| character.is_ascii_lowercase() || character == '-')
    })
}
