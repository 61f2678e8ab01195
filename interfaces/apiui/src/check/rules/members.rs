//! Names behind dots, in brackets and in patterns, and the keys of object literals.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    BindingProperty, ComputedMemberExpression, Expression, ObjectExpression, ObjectPropertyKind, PropertyKey,
    PropertyKind, StaticMemberExpression,
};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};

use super::Rules;
use crate::check::names::{self, Name};
use crate::check::refusal::Rule;
use crate::check::tree::{key_name, literal_text};

impl<'a> Rules<'_, 'a> {
    pub(super) fn static_member(&mut self, id: NodeId, member: &'a StaticMemberExpression<'a>) {
        if self.vouched.contains(&id) || self.is_of_global(&member.object) {
            return;
        }
        self.member_name(id, member.property.span, member.property.name.as_str());
    }

    pub(super) fn computed_member(&mut self, id: NodeId, member: &'a ComputedMemberExpression<'a>) {
        if let Some(name) = literal_text(&member.expression) {
            self.member_name(id, member.expression.span(), name);
        } else if !self.tree.is_number(&member.expression) {
            let advice = "Read data with `own(object, key)`, a list with `.at(index)`; make a changed copy with `withOwn(object, key, value)`.";
            self.refuse(
                member.expression.span(),
                Rule::ComputedKey,
                "A property key that is not literal",
                advice,
            );
        }
    }

    fn member_name(&mut self, id: NodeId, span: Span, name: &str) {
        let (child, _, user) = self.tree.use_of(id);
        let is_called = match user {
            AstKind::CallExpression(call) => self.tree.is_node(&call.callee, child),
            AstKind::NewExpression(new) => self.tree.is_node(&new.callee, child),
            _ => false,
        };
        match names::member(name) {
            Name::Free => {}
            Name::Field if !is_called => {}
            Name::Field => {
                let advice = "It may be read as data; give the function another name.";
                self.refuse(
                    span,
                    Rule::Member,
                    format!("`.{name}(…)` is a call of a name that browsers use"),
                    advice,
                );
            }
            Name::Platform if self.is_property_of_component(id) => {}
            Name::Platform | Name::Refused => self.refuse(
                span,
                Rule::Member,
                format!("`.{name}` is not on the list of names"),
                member_advice(name),
            ),
        }
    }

    /// `Object.keys` and the like are looked at by the rule on globals, React's by the rule on React.
    fn is_of_global(&self, object: &'a Expression<'a>) -> bool {
        match object {
            Expression::Identifier(identifier) => match self.tree.symbol(identifier) {
                None => true,
                Some(_) => self.tree.is_react(identifier),
            },
            _ => false,
        }
    }

    /// `props.open`, where `props` is what React hands to a component of the module.
    fn is_property_of_component(&self, member: NodeId) -> bool {
        let AstKind::StaticMemberExpression(member) = self.tree.semantic.nodes().kind(member) else {
            return false;
        };
        let Expression::Identifier(object) = &member.object else { return false };
        self.tree.symbol(object).is_some_and(|symbol| self.tree.is_properties(symbol))
    }

    /// A key in a pattern that declares names; the first parameter of a component takes its properties by any name.
    pub(super) fn binding_key(&mut self, id: NodeId, property: &'a BindingProperty<'a>) {
        let name = key_name(&property.key, property.computed);
        let is_property =
            name.is_some_and(|name| names::member(name) == Name::Platform) && self.tree.is_of_properties(id);
        if !is_property {
            self.pattern_key(&property.key, property.computed);
        }
    }

    /// A key of a pattern reads a property.
    pub(super) fn pattern_key(&mut self, key: &'a PropertyKey<'a>, computed: bool) {
        match key_name(key, computed) {
            None => {
                let advice = "Read it with `own(object, key)`.";
                self.refuse(key.span(), Rule::ComputedKey, "A property key that is not literal", advice);
            }
            Some(name) => self.pattern_name(key.span(), name),
        }
    }

    pub(super) fn pattern_name(&mut self, span: Span, name: &str) {
        if matches!(names::member(name), Name::Refused | Name::Platform) {
            self.refuse(
                span,
                Rule::Member,
                format!("`{name}` is not on the list of names"),
                member_advice(name),
            );
        }
    }

    pub(super) fn object(&mut self, object: &'a ObjectExpression<'a>) {
        let spreads = object.properties.iter().filter(|part| part.is_spread()).count();
        if spreads > 1 {
            let advice = "Merge two objects with `withAll(first, second)`.";
            self.refuse(object.span, Rule::Spread, "An object with more than one spread", advice);
        }
        for part in &object.properties {
            let ObjectPropertyKind::ObjectProperty(property) = part else { continue };
            if property.kind != PropertyKind::Init {
                self.refuse(
                    property.span,
                    Rule::Construct,
                    "A getter or setter",
                    "Write a plain property or a function.",
                );
            }
            let Some(name) = key_name(&property.key, property.computed) else {
                let advice = "Make a copy with `withOwn(object, key, value)`.";
                self.refuse(
                    property.key.span(),
                    Rule::ComputedKey,
                    "A property key that is not literal",
                    advice,
                );
                continue;
            };
            if names::is_hidden_hook(name) {
                let advice = "Keep such a name as text in a list, not as a key.";
                self.refuse(
                    property.key.span(),
                    Rule::ObjectKey,
                    format!("The key `{name}` changes what the object is"),
                    advice,
                );
            } else if spreads > 0 && names::is_element_part(name) {
                let advice = format!("Write `withOwn(object, \"{name}\", value)`.");
                self.refuse(
                    property.key.span(),
                    Rule::ObjectKey,
                    format!("The key `{name}` beside a spread"),
                    advice,
                );
            }
        }
    }
}

fn member_advice(name: &str) -> String {
    match name {
        "current" => "`.current` is for what `useRef` gave, by its own name; read data with `own(object, \"current\")`.".to_owned(),
        "focus" => "Only `name.current.focus()` of a `useRef` that is an element's `ref`.".to_owned(),
        "target" | "currentTarget" => "Read `event.target.value` in the handler itself.".to_owned(),
        _ => format!("If it is data, read it with `own(object, \"{name}\")`."),
    }
}
