//! One view of an element, whether it is written as JSX or, after the transform, as a call of React's `jsx`. Owns
//! that reading; must not know what is allowed.
//!
//! Invariant: every attribute and child that React will see is in the view, or `is_open` says that more may come.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    ArrayExpressionElement, CallExpression, Expression, IdentifierReference, JSXAttributeItem,
    JSXAttributeName, JSXAttributeValue, JSXChild, JSXElement, JSXElementName, JSXExpression,
    JSXMemberExpressionObject, ObjectPropertyKind,
};
use oxc::span::GetSpan;

pub(super) use super::element_view::{Attribute, Child, Element, Kind, Value};
use super::tree::{Declared, Tree, key_name};

/// The module that the transform imports.
pub(super) const RUNTIME: &str = "react/jsx-runtime";

/// The element that this node is.
pub(super) fn element<'a>(tree: &Tree<'_, 'a>, node: AstKind<'a>) -> Option<Element<'a>> {
    match node {
        AstKind::JSXElement(element) => Some(from_jsx(element)),
        AstKind::CallExpression(call) => from_call(tree, call),
        _ => None,
    }
}

/// Which function of the JSX runtime this name stands for.
pub(super) fn runtime_name<'a>(tree: &Tree<'_, 'a>, identifier: &IdentifierReference<'a>) -> Option<&'a str> {
    match tree.declared(tree.symbol(identifier)?) {
        Declared::Import(import, Some(name)) if import.source.value == RUNTIME => Some(name),
        _ => None,
    }
}

fn from_jsx<'a>(element: &'a JSXElement<'a>) -> Element<'a> {
    let opening = &element.opening_element;
    let kind = match &opening.name {
        JSXElementName::Identifier(name) => Kind::Intrinsic(name.name.as_str()),
        JSXElementName::IdentifierReference(name) => Kind::Component(name),
        JSXElementName::MemberExpression(member) => match &member.object {
            JSXMemberExpressionObject::IdentifierReference(object) => {
                Kind::Member(object, member.property.name.as_str())
            }
            _ => Kind::Unknown,
        },
        JSXElementName::NamespacedName(_) | JSXElementName::ThisExpression(_) => Kind::Unknown,
    };
    let mut view =
        Element { kind, attributes: Vec::new(), children: Vec::new(), span: opening.span, spread: None };
    for item in &opening.attributes {
        match item {
            JSXAttributeItem::SpreadAttribute(spread) => view.spread = Some(spread.span),
            JSXAttributeItem::Attribute(attribute) => view.attributes.push(Attribute {
                name: match &attribute.name {
                    JSXAttributeName::Identifier(name) => name.name.to_string(),
                    JSXAttributeName::NamespacedName(name) => {
                        format!("{}:{}", name.namespace.name, name.name.name)
                    }
                },
                value: attribute.value.as_ref().map_or(Value::True, jsx_value),
                span: attribute.span,
            }),
        }
    }
    view.children = element.children.iter().filter_map(jsx_child).collect();
    view
}

fn jsx_value<'a>(value: &'a JSXAttributeValue<'a>) -> Value<'a> {
    match value {
        JSXAttributeValue::StringLiteral(text) => Value::Text(text.value.as_str()),
        JSXAttributeValue::ExpressionContainer(container) => {
            container.expression.as_expression().map_or(Value::True, Value::Expression)
        }
        JSXAttributeValue::Element(_) | JSXAttributeValue::Fragment(_) => Value::Element,
    }
}

fn jsx_child<'a>(child: &'a JSXChild<'a>) -> Option<Child<'a>> {
    Some(match child {
        JSXChild::Text(text) => Child::Text(text.value.as_str()),
        JSXChild::ExpressionContainer(container) => match &container.expression {
            JSXExpression::EmptyExpression(_) => return None,
            expression => expression.as_expression().map_or(Child::Other, Child::Expression),
        },
        JSXChild::Element(_) | JSXChild::Fragment(_) | JSXChild::Spread(_) => Child::Other,
    })
}

fn from_call<'a>(tree: &Tree<'_, 'a>, call: &'a CallExpression<'a>) -> Option<Element<'a>> {
    let Expression::Identifier(callee) = &call.callee else { return None };
    if !matches!(runtime_name(tree, callee)?, "jsx" | "jsxs") {
        return None;
    }
    let kind = match call.arguments.first().and_then(|argument| argument.as_expression()) {
        Some(Expression::StringLiteral(name)) => Kind::Intrinsic(name.value.as_str()),
        Some(Expression::Identifier(name)) if runtime_name(tree, name) == Some("Fragment") => Kind::Fragment,
        Some(Expression::Identifier(name)) => Kind::Component(name),
        Some(Expression::StaticMemberExpression(member)) => match &member.object {
            Expression::Identifier(object) => Kind::Member(object, member.property.name.as_str()),
            _ => Kind::Unknown,
        },
        _ => Kind::Unknown,
    };
    let mut view =
        Element { kind, attributes: Vec::new(), children: Vec::new(), span: call.span, spread: None };
    let properties = match call.arguments.get(1).and_then(|argument| argument.as_expression()) {
        Some(Expression::ObjectExpression(object)) if call.arguments.len() <= 3 => &object.properties,
        _ => {
            view.spread = Some(call.span);
            return Some(view);
        }
    };
    for property in properties {
        match property {
            ObjectPropertyKind::SpreadProperty(spread) => view.spread = Some(spread.span),
            ObjectPropertyKind::ObjectProperty(property) => {
                match key_name(&property.key, property.computed) {
                    Some("children") => view.children = call_children(&property.value),
                    Some(name) => view.attributes.push(Attribute {
                        name: name.to_owned(),
                        value: Value::Expression(&property.value),
                        span: property.span(),
                    }),
                    None => view.spread = Some(property.span()),
                }
            }
        }
    }
    Some(view)
}

fn call_children<'a>(value: &'a Expression<'a>) -> Vec<Child<'a>> {
    match value {
        Expression::ArrayExpression(list) => {
            let child = |item: &'a ArrayExpressionElement<'a>| {
                item.as_expression().map_or(Child::Other, Child::Expression)
            };
            list.elements.iter().map(child).collect()
        }
        one => vec![Child::Expression(one)],
    }
}
