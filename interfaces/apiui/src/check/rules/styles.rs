//! Styles: the `style` of an element, its colors, and the text of a `<style>`. No style may hold an address, since
//! a browser would fetch it.

use oxc::ast::ast::{Expression, ObjectExpression, ObjectPropertyKind};
use oxc::span::Span;

use super::Rules;
use crate::check::css;
use crate::check::element::{Attribute, Child, Element, Value};
use crate::check::lists::{CONSTANT_STYLES, FREE_STYLES};
use crate::check::refusal::Rule;
use crate::check::tree::{key_name, literal_text};

const OBJECT_ADVICE: &str = "Write `style={{ color: \"red\" }}`, or name a constant that is such an object.";
const CONSTANT_ADVICE: &str =
    "Give it a constant text of this module without an address, or use `backgroundColor` and the like.";

/// How deep one style may be spread into another.
const DEPTH: usize = 8;

impl<'a> Rules<'_, 'a> {
    pub(super) fn style(&mut self, attribute: &Attribute<'a>) {
        self.style_value(attribute.value, attribute.span, DEPTH);
    }

    fn style_value(&mut self, value: Value<'a>, span: Span, depth: usize) {
        let Some(values) = self.tree.possible(value).filter(|_| depth > 0) else {
            return self.refuse(span, Rule::Style, "A style with too many possible values", OBJECT_ADVICE);
        };
        for value in values {
            match value {
                Value::Expression(Expression::ObjectExpression(object)) => self.style_object(object, depth),
                Value::Nothing => {}
                Value::Expression(other) if self.is_nothing(other) => {}
                _ => self.refuse(span, Rule::Style, "`style` is not an object written here", OBJECT_ADVICE),
            }
        }
    }

    fn style_object(&mut self, object: &'a ObjectExpression<'a>, depth: usize) {
        for part in &object.properties {
            match part {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    self.style_value(Value::Expression(&spread.argument), spread.span, depth - 1);
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    match key_name(&property.key, property.computed) {
                        // Said by the rule on keys.
                        None => {}
                        Some(name) if FREE_STYLES.contains(name) => {}
                        Some(name) if CONSTANT_STYLES.contains(name) || name.starts_with("--") => {
                            let constant = self.is_constant_style(&property.value);
                            if !constant {
                                let what = format!(
                                    "The style `{name}`, which could hold an address, is not constant"
                                );
                                self.refuse(property.span, Rule::Style, what, CONSTANT_ADVICE);
                            }
                        }
                        Some(name) => {
                            let what = format!("The style `{name}` is not on the list");
                            self.refuse(
                                property.span,
                                Rule::Style,
                                what,
                                "Use the properties of text, boxes, colors and layout.",
                            );
                        }
                    }
                }
            }
        }
    }

    fn is_constant_style(&self, expression: &'a Expression<'a>) -> bool {
        let possible = self.tree.possible(Value::Expression(expression));
        possible.is_some_and(|values| values.iter().all(|value| self.is_addressless(*value)))
    }

    fn is_addressless(&self, value: Value<'a>) -> bool {
        let expression = match value {
            Value::Nothing | Value::True => return true,
            // Entities are not yet read here.
            Value::Text(text) => return css::is_addressless(text) && !text.contains('&'),
            Value::Expression(expression) => expression,
            Value::Element => return false,
        };
        if let Some(text) = literal_text(expression) {
            return css::is_addressless(text);
        }
        match expression {
            Expression::TemplateLiteral(template) => {
                let texts = template
                    .quasis
                    .iter()
                    .map(|part| part.value.cooked.as_ref().map_or("\\", |text| text.as_str()));
                css::is_addressless(&texts.collect::<Vec<_>>().join("0"))
                    && template.expressions.iter().all(|expression| self.tree.is_number(expression))
            }
            other => self.is_nothing(other) || self.tree.is_number(other),
        }
    }

    pub(super) fn is_nothing(&self, value: &'a Expression<'a>) -> bool {
        match value {
            Expression::NullLiteral(_) | Expression::BooleanLiteral(_) => true,
            Expression::Identifier(name) => name.name == "undefined" && self.tree.symbol(name).is_none(),
            _ => false,
        }
    }

    /// A color of a drawing: constant, or made by a color function.
    pub(super) fn paint(&mut self, attribute: &Attribute<'a>) {
        let possible = self.tree.possible(attribute.value);
        if !possible
            .is_some_and(|values| values.iter().all(|value| self.is_addressless(*value) || is_color(*value)))
        {
            let what = format!("The color `{}` is not constant", attribute.name);
            self.refuse(
                attribute.span,
                Rule::Style,
                what,
                "Use a constant color, or a template that begins with `hsl(`, `rgb(` or `#`.",
            );
        }
    }

    pub(super) fn style_element(&mut self, element: &Element<'a>) {
        for attribute in element.attributes.iter().filter(|attribute| attribute.name != "key") {
            let what = format!("The attribute `{}` of `<style>`", attribute.name);
            self.refuse(attribute.span, Rule::Attribute, what, "Leave it out.");
        }
        for child in &element.children {
            match child {
                Child::Text(text) if text.trim().is_empty() => {}
                Child::Expression(expression) => self.style_text(expression, element.span),
                Child::Text(_) | Child::Other => {
                    let advice = "Write `<style>{CSS}</style>`, where CSS is a constant text.";
                    self.refuse(
                        element.span,
                        Rule::StyleText,
                        "A `<style>` that is not one constant text",
                        advice,
                    );
                }
            }
        }
    }

    fn style_text(&mut self, expression: &'a Expression<'a>, span: Span) {
        let whole = Value::Expression(expression);
        for value in self.tree.possible(whole).unwrap_or_else(|| vec![whole]) {
            let refused = match value {
                Value::Expression(value) if self.is_nothing(value) => None,
                Value::Expression(value) => match literal_text(value) {
                    Some(text) => css::check(text).err(),
                    None => Some("it is not one constant text".to_owned()),
                },
                // The text of an attribute may hold entities, which are not yet read here.
                _ => Some("it is not one constant text".to_owned()),
            };
            if let Some(reason) = refused {
                let advice = "Each selector begins with `.dragoman`; no `url(`, `@import`, `\\`, `<`, `~` or `+`; listed properties only.";
                self.refuse(
                    span,
                    Rule::StyleText,
                    format!("The text of `<style>` is refused: {reason}"),
                    advice,
                );
            }
        }
    }
}

/// A template that begins as a color cannot end as an address.
fn is_color(value: Value<'_>) -> bool {
    let Value::Expression(Expression::TemplateLiteral(template)) = value else { return false };
    let start = template.quasis.first().map_or("", |first| first.value.raw.as_str());
    ["hsl(", "hsla(", "rgb(", "rgba(", "oklch(", "#"].iter().any(|prefix| start.starts_with(prefix))
}
